//! Counts, shares and rates as people read them: for reports, progress lines and messages.

/// `30 000`: groups of three, apart from numbers of four digits.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    if digits.len() < 5 {
        return digits;
    }
    let head = digits.len() % 3;
    let mut text = digits[..head].to_owned();
    for group in digits.as_bytes()[head..].chunks(3) {
        if !text.is_empty() {
            text.push(' ');
        }
        text.extend(group.iter().map(|&digit| char::from(digit)));
    }
    text
}

/// A count with its noun, `1 request` or `2 requests`: the plural is the noun with an `s`.
pub fn plural(value: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(value), if value == 1 { "" } else { "s" })
}

/// `99.2 %`. A share that is there but rounds to nothing is `< 0.1 %`, one that is not whole never `100 %`.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        p if p <= 0.0 => "0 %".to_owned(),
        p if p < 0.1 => "< 0.1 %".to_owned(),
        p if p >= 100.0 - 1e-9 => "100 %".to_owned(),
        p if p >= 99.95 => "> 99.9 %".to_owned(),
        p => format!("{p:.1} %"),
    }
}

/// A rate per second with at least three digits: `0.50/s`, `12.3/s`, `998/s`, `12 345/s`.
pub fn rate(per_s: f64) -> String {
    match per_s {
        r if r >= 99.95 || r == r.trunc() => format!("{}/s", count(r.round() as u64)),
        r if r >= 9.995 => format!("{r:.1}/s"),
        r => format!("{r:.2}/s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_from_five_digits() {
        for (value, text) in [(0, "0"), (9_999, "9999"), (10_000, "10 000"), (1_234_567, "1 234 567")] {
            assert_eq!(count(value), text);
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
