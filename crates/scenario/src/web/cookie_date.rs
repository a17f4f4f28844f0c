//! Dates in cookies: RFC 6265, section 5.1.1, which accepts every format that servers have used.

/// Unix seconds. `None` if the text is not a date.
pub(crate) fn parse(text: &str) -> Option<i64> {
    let mut date = Date::default();
    let is_delimiter = |c: char| !(c.is_ascii_alphanumeric() || c == ':' || !c.is_ascii());
    for token in text.split(is_delimiter).filter(|token| !token.is_empty()) {
        date.take(token);
    }
    let (hour, minute, second) = date.time?;
    let (day, month, year) = (date.day?, date.month?, date.year?);
    let year = match year {
        70..=99 => year + 1_900,
        0..=69 => year + 2_000,
        year => year,
    };
    let fits = (1..=31).contains(&day) && year >= 1_601 && hour <= 23 && minute <= 59 && second <= 59;
    fits.then(|| days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second)
}

#[derive(Default)]
struct Date {
    time: Option<(i64, i64, i64)>,
    day: Option<i64>,
    /// From 1.
    month: Option<i64>,
    year: Option<i64>,
}

impl Date {
    /// Each token becomes the first of these that it can be and that is still missing.
    fn take(&mut self, token: &str) {
        if self.time.is_none() {
            self.time = time(token);
            if self.time.is_some() {
                return;
            }
        }
        if self.day.is_none() {
            self.day = leading(token, 1..=2);
            if self.day.is_some() {
                return;
            }
        }
        if self.month.is_none() {
            self.month = month(token);
            if self.month.is_some() {
                return;
            }
        }
        if self.year.is_none() {
            self.year = leading(token, 2..=4);
        }
    }
}

fn time(token: &str) -> Option<(i64, i64, i64)> {
    let mut parts = token.splitn(3, ':');
    let (hour, minute) = (parts.next()?, parts.next()?);
    Some((leading(hour, 1..=2)?, leading(minute, 1..=2)?, leading(parts.next()?, 1..=2)?))
}

/// The leading number of a token, if its number of digits is allowed.
fn leading(token: &str, digits: std::ops::RangeInclusive<usize>) -> Option<i64> {
    let end = token.find(|c: char| !c.is_ascii_digit()).unwrap_or(token.len());
    if digits.contains(&end) { token[..end].parse().ok() } else { None }
}

fn month(token: &str) -> Option<i64> {
    let name = token.get(..3)?.to_ascii_lowercase();
    (1..).zip(MONTHS).find(|(_, month)| *month == name).map(|(number, _)| number)
}

/// Days from 1970-01-01 to this date of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March here, so that the leap day is the last day.
    let year = if month <= 2 { year - 1 } else { year };
    let from_march = (month + 9) % 12;
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * from_march + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_in_every_form_that_servers_use() {
        for (text, seconds) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(784_111_777)),
            ("Sun Nov  6 08:49:37 1994", Some(784_111_777)),
            ("Thu, 29 Feb 2024 12:00:00 GMT", Some(1_709_208_000)),
            ("Fri, 31-Dec-9999 23:59:59 GMT", Some(253_402_300_799)),
            ("01 Jan 69 00:00:00", Some(3_124_224_000)),
            ("", None),
            ("tomorrow", None),
            ("Thu, 01 Jan 1970", None),
            ("Thu, 01 Jan 1600 00:00:00 GMT", None),
            ("Thu, 00 Jan 1970 00:00:00 GMT", None),
            ("Thu, 01 Jan 1970 24:00:00 GMT", None),
        ] {
            assert_eq!(parse(text), seconds, "{text}");
        }
    }
}
