//! Reads bytes and texts from a message that is whole. Numbers are read as each protocol writes them.

use codec::DecodeError;

/// The rest of a message's payload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    /// What the message is, for errors.
    what: &'static str,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(payload: &'a [u8], what: &'static str) -> Reader<'a> {
        Reader { rest: payload, what }
    }

    pub(crate) fn malformed(&self) -> DecodeError {
        DecodeError::Malformed { what: self.what }
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(|| self.malformed())?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| self.malformed())
    }

    pub(crate) fn u8(&mut self) -> Result<u8, DecodeError> {
        Ok(self.array::<1>()?[0])
    }

    /// Bytes that a zero ends.
    pub(crate) fn until_zero(&mut self) -> Result<&'a [u8], DecodeError> {
        let end = memchr::memchr(0, self.rest).ok_or_else(|| self.malformed())?;
        let taken = self.take(end)?;
        self.take(1)?;
        Ok(taken)
    }
}
