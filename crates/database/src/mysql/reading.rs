//! Reads numbers and strings of MySQL's protocol from a packet.

use codec::DecodeError;

pub(super) use crate::reading::Reader;

impl<'a> Reader<'a> {
    pub(super) fn u16(&mut self) -> Result<u16, DecodeError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(super) fn u32(&mut self) -> Result<u32, DecodeError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// A number whose first byte says how long it is. NULL is not one.
    pub(super) fn length(&mut self) -> Result<u64, DecodeError> {
        let first = self.u8()?;
        let bytes = match first {
            0..=0xfa => return Ok(u64::from(first)),
            0xfc => 2,
            0xfd => 3,
            0xfe => 8,
            0xfb | 0xff => return Err(self.malformed()),
        };
        let mut number = [0; 8];
        number[..bytes].copy_from_slice(self.take(bytes)?);
        Ok(u64::from_le_bytes(number))
    }

    /// Bytes with their length before them.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = self.length()?;
        let length = usize::try_from(length).map_err(|_| self.malformed())?;
        self.take(length)
    }

    /// A value of a row of text: `None` is NULL.
    pub(super) fn text_value(&mut self) -> Result<Option<&'a [u8]>, DecodeError> {
        if self.rest().first() == Some(&0xfb) {
            self.take(1)?;
            return Ok(None);
        }
        self.bytes().map(Some)
    }
}

/// Appends a number whose first byte says how long it is.
pub(super) fn push_length(number: u64, out: &mut Vec<u8>) {
    let bytes = number.to_le_bytes();
    match number {
        0..=0xfa => out.push(bytes[0]),
        0xfb..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&bytes[..2]);
        }
        0x1_0000..=0xff_ffff => {
            out.push(0xfd);
            out.extend_from_slice(&bytes[..3]);
        }
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_takes_as_many_bytes_as_its_first_one_says() {
        for number in [0, 1, 0xfa, 0xfb, 0xff, 0xffff, 0x1_0000, 0xff_ffff, 0x100_0000, u64::MAX] {
            let mut bytes = Vec::new();
            push_length(number, &mut bytes);
            let mut reader = Reader::new(&bytes, "number");
            assert_eq!((reader.length(), reader.rest()), (Ok(number), &[][..]));
            let cut = Reader::new(&bytes[..bytes.len() - 1], "number").length();
            assert_eq!(cut, Err(DecodeError::Malformed { what: "number" }));
        }
    }

    #[test]
    fn null_is_a_value_and_no_length() {
        assert_eq!(Reader::new(&[0xfb, 1], "row").text_value(), Ok(None));
        assert!(Reader::new(&[0xfb], "row").length().is_err());
        assert!(Reader::new(&[0xff], "row").length().is_err());
    }
}
