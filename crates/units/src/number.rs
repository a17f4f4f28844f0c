//! Splits `10k/s` into a number and what follows it. Exact: decimal text becomes a fraction, never a float.

use thiserror::Error;

/// Why a value with a unit could not be parsed. The message states what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParseError {
    /// The text does not begin with a number.
    #[error("`{text}` is not a number with a unit; write for example {example}")]
    NotANumber { text: String, example: &'static str },
    /// The number has no unit and the value needs one.
    #[error("`{text}` has no unit; write for example {example}")]
    NoUnit { text: String, example: &'static str },
    /// The unit is not in the list of known ones.
    #[error("`{unit}` in `{text}` is not a known unit; use {known}")]
    UnknownUnit { text: String, unit: String, known: &'static str },
    /// The value does not fit, or is zero although zero is not allowed.
    #[error("`{text}` is out of range; {range}")]
    OutOfRange { text: String, range: &'static str },
}

/// A non-negative decimal, kept exactly: `digits / 10^scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decimal {
    digits: u128,
    scale: u32,
}

impl Decimal {
    /// `self * factor`, rounded to the nearest integer, or `None` if it does not fit a `u64`.
    pub(crate) fn times(self, factor: u64) -> Option<u64> {
        let divisor = 10u128.checked_pow(self.scale)?;
        let product = self.digits.checked_mul(u128::from(factor))?;
        u64::try_from((product + divisor / 2) / divisor).ok()
    }

    /// Digits after the decimal point.
    pub(crate) fn scale(self) -> u32 {
        self.scale
    }
}

/// Splits `text` into its leading decimal and the rest, both trimmed.
pub(crate) fn split(text: &str) -> Option<(Decimal, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let number = number.replace('_', "");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    // At most nine digits after the point keep every product in this file within a u128.
    let well_formed = (!whole.is_empty() || !fraction.is_empty())
        && whole.len() <= 20
        && fraction.len() <= 9
        && !fraction.contains('.');
    if !well_formed {
        return None;
    }
    let digits = format!("{whole}{fraction}").parse().ok()?;
    let scale = u32::try_from(fraction.len()).ok()?;
    Some((Decimal { digits, scale }, rest.trim()))
}

/// The factor of `k`, `M` and `G`, in either case; 1 for no prefix, `None` for any other text.
pub(crate) fn decimal_prefix(prefix: &str) -> Option<u64> {
    match prefix {
        "" => Some(1),
        "k" | "K" => Some(1_000),
        "m" | "M" => Some(1_000_000),
        "g" | "G" => Some(1_000_000_000),
        _ => None,
    }
}

/// Parses a count such as `200`, `10k` or `1.5M`.
///
/// # Errors
///
/// [`ParseError`] if it is not a number, has another unit, is not whole, or is 2^64 or more.
pub fn parse_count(text: &str) -> Result<u64, ParseError> {
    const EXAMPLE: &str = "200, 10k or 1M";
    let (number, unit) =
        split(text).ok_or_else(|| ParseError::NotANumber { text: text.to_owned(), example: EXAMPLE })?;
    let factor = decimal_prefix(unit).ok_or_else(|| ParseError::UnknownUnit {
        text: text.to_owned(),
        unit: unit.to_owned(),
        known: "k, M or G",
    })?;
    let out_of_range =
        || ParseError::OutOfRange { text: text.to_owned(), range: "a whole number below 2^64" };
    // A fraction of something countable, such as `1.5`, is a typing error; `1.5k` is not.
    if factor == 1 && number.scale() > 0 {
        return Err(out_of_range());
    }
    number.times(factor).ok_or_else(out_of_range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_take_decimal_prefixes() {
        assert_eq!(parse_count("200"), Ok(200));
        assert_eq!(parse_count("10k"), Ok(10_000));
        assert_eq!(parse_count("1.5M"), Ok(1_500_000));
        assert_eq!(parse_count("1_000"), Ok(1_000));
    }

    #[test]
    fn counts_refuse_nonsense() {
        for text in ["", "k", "-3", "1.5", "3s", "1..2", "99999999999999999999", "1.2.3"] {
            assert!(parse_count(text).is_err(), "{text}");
        }
    }
}
