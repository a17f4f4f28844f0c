//! Counts, shares and rates in readable form: for reports, progress lines and messages.

/// A count in plain digits, without spaces, so that it can be pasted, and a program can split the line.
pub fn count(value: u64) -> String {
    value.to_string()
}

/// A count with its noun, `1 request` or `2 requests`; the plural is the noun with an `s`.
pub fn plural(value: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(value), if value == 1 { "" } else { "s" })
}

/// For example `99.2 %`. A share above 0 that would round to 0 is `< 0.1 %`, and one below 1 is never `100 %`.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        p if p <= 0.0 => "0 %".to_owned(),
        p if p < 0.1 => "< 0.1 %".to_owned(),
        p if p >= 100.0 - 1e-9 => "100 %".to_owned(),
        p if p >= 99.95 => "> 99.9 %".to_owned(),
        p => format!("{p:.1} %"),
    }
}

/// A rate per second with at least three significant digits: `0.50/s`, `12.3/s`, `998/s`, `9876/s`, `61.2k/s`, `1M/s`.
pub fn rate(per_s: f64) -> String {
    match per_s {
        r if r >= 9_999.5 => format!("{}/s", scaled(r)),
        r if r >= 99.95 || r == r.trunc() => format!("{}/s", r.round() as u64),
        r if r >= 9.995 => format!("{r:.1}/s"),
        r => format!("{r:.2}/s"),
    }
}

/// From ten thousand on: three digits and `k`, `M` or `G`, without trailing zeros.
fn scaled(value: f64) -> String {
    let (by, unit) = match value {
        v if v >= 999.5e6 => (1e9, 'G'),
        v if v >= 999.5e3 => (1e6, 'M'),
        _ => (1e3, 'k'),
    };
    let number = match value / by {
        n if n >= 99.95 => format!("{n:.0}"),
        n if n >= 9.995 => format!("{n:.1}"),
        n => format!("{n:.2}"),
    };
    let number =
        if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { &number };
    format!("{number}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_has_a_space_in_it() {
        for (value, text) in [(0, "0"), (10_000, "10000"), (1_234_567, "1234567")] {
            assert_eq!(count(value), text);
        }
        for (per_s, text) in [
            (0.5, "0.50/s"),
            (12.34, "12.3/s"),
            (998.0, "998/s"),
            (9_999.0, "9999/s"),
            (9_999.7, "10k/s"),
            (61_234.0, "61.2k/s"),
            (100_000.0, "100k/s"),
            (999_600.0, "1M/s"),
            (1_250_000.0, "1.25M/s"),
            (1e9, "1G/s"),
        ] {
            assert_eq!(rate(per_s), text);
        }
    }

    #[test]
    fn shares_never_round_to_all_or_nothing() {
        for (share, text) in
            [(0.0, "0 %"), (0.000_1, "< 0.1 %"), (0.5, "50.0 %"), (0.999_9, "> 99.9 %"), (1.0, "100 %")]
        {
            assert_eq!(percent(share), text);
        }
    }
}
