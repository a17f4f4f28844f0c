//! Reads numbers out of a query string. Knows no route.

use units::Nanos;

/// The part of a target after `?`, as `key=value` pairs. Unknown keys are ignored: clients add them to defeat caches.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Query<'a>(pub &'a str);

impl<'a> Query<'a> {
    /// The first value of `key`.
    pub(crate) fn text(self, key: &str) -> Option<&'a str> {
        self.0.split('&').find_map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (name == key).then_some(value)
        })
    }

    /// A whole number; `Err` when the value is not one.
    pub(crate) fn whole(self, key: &str) -> Result<Option<u64>, ()> {
        self.text(key).map(|text| text.parse().map_err(|_| ())).transpose()
    }

    /// A whole number of nanoseconds given in units of `unit`.
    pub(crate) fn nanos(self, key: &str, unit: Nanos) -> Result<Option<Nanos>, ()> {
        match self.whole(key)? {
            None => Ok(None),
            Some(number) => number.checked_mul(unit.0).map(Nanos).map(Some).ok_or(()),
        }
    }

    /// Seconds with a fraction, as httpbin writes them.
    pub(crate) fn seconds(self, key: &str) -> Result<Option<Nanos>, ()> {
        self.text(key).map(|text| seconds(text).ok_or(())).transpose()
    }

    /// A share between 0 and 1.
    pub(crate) fn share(self, key: &str) -> Result<Option<f64>, ()> {
        match self.text(key).map(str::parse::<f64>) {
            None => Ok(None),
            Some(Ok(share)) if (0.0..=1.0).contains(&share) => Ok(Some(share)),
            Some(_) => Err(()),
        }
    }
}

/// Reads `2`, `0.25` or `1.5` as seconds, exactly.
pub(crate) fn seconds(text: &str) -> Option<Nanos> {
    // The value types read decimals without a float; they need the unit after the number.
    if !text.ends_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    format!("{text}s").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_and_checked() {
        let query = Query("us=250&p=0.5&bad=x&duration=0.0015&p=0.9");
        assert_eq!(query.nanos("us", Nanos(1_000)), Ok(Some(Nanos(250_000))));
        assert_eq!(query.share("p"), Ok(Some(0.5)));
        assert_eq!(query.whole("bad"), Err(()));
        assert_eq!(query.whole("missing"), Ok(None));
        assert_eq!(query.seconds("duration"), Ok(Some(Nanos::from_micros(1_500))));
        assert_eq!(Query("us=18446744073709551615").nanos("us", Nanos(1_000)), Err(()));
        assert_eq!(Query("p=1.5").share("p"), Err(()));
        assert_eq!(Query("p=NaN").share("p"), Err(()));
        assert_eq!(seconds("1m"), None);
    }
}
