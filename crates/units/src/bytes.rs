//! Sizes in bytes.

use std::fmt;
use std::str::FromStr;

use crate::number::{self, ParseError};

/// A number of bytes. Parses `512`, `64KiB`, `10MB`; prints one decimal (two for GiB) in a binary unit: `64.0 KiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Bytes(pub u64);

impl FromStr for Bytes {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Bytes, ParseError> {
        let (number, unit) = number::split(text)
            .ok_or_else(|| ParseError::NotANumber { text: text.to_owned(), example: "512, 64KiB or 10MB" })?;
        let factor = match unit {
            "" | "B" => 1,
            "k" | "kB" | "KB" => 1_000,
            "M" | "MB" => 1_000_000,
            "G" | "GB" => 1_000_000_000,
            "KiB" | "Ki" => 1 << 10,
            "MiB" | "Mi" => 1 << 20,
            "GiB" | "Gi" => 1 << 30,
            _ => {
                return Err(ParseError::UnknownUnit {
                    text: text.to_owned(),
                    unit: unit.to_owned(),
                    known: "B, kB, MB, GB, KiB, MiB or GiB",
                });
            }
        };
        number
            .times(factor)
            .map(Bytes)
            .ok_or_else(|| ParseError::OutOfRange { text: text.to_owned(), range: "below 2^64 bytes" })
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            b @ 0..=1_023 => format!("{b} B"),
            b if b < 1 << 20 => format!("{:.1} KiB", b as f64 / 1_024.0),
            b if b < 1 << 30 => format!("{:.1} MiB", b as f64 / 1_048_576.0),
            b => format!("{:.2} GiB", b as f64 / 1_073_741_824.0),
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints_sizes() {
        for (text, bytes, printed) in
            [("512", 512, "512 B"), ("64KiB", 65_536, "64.0 KiB"), ("10MB", 10_000_000, "9.5 MiB")]
        {
            assert_eq!(text.parse(), Ok(Bytes(bytes)));
            assert_eq!(Bytes(bytes).to_string(), printed);
        }
        assert!("5 parsecs".parse::<Bytes>().is_err());
    }
}
