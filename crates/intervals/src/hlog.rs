//! One line of a histogram log: HdrHistogram's interval log, version 1.3, with one histogram per line.
//!
//! Encodes and decodes lines; the crate `record` handles the files. Lines are not written with the `interval_log`
//! module of `hdrhistogram`, because that keeps only the milliseconds of a timestamp: a line is matched to its interval
//! by its start, so all nine digits are needed.

use std::fmt::Write as _;
use std::io::Read;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use units::Nanos;

use crate::durations::{Durations, LONGEST};
use crate::error::LogDamage;

/// The maximum length of a line of [`Encoder`]: 33 thousand counts of at most nine bytes each, barely compressed, in
/// base64, are 400 KiB.
pub const LONGEST_LINE: u64 = 1 << 20;

/// A V2 histogram with our bounds takes at most 40 bytes plus nine for each of its 33 thousand counts.
const LONGEST_PAYLOAD: u64 = 512 << 10;

const V2: u32 = 0x1c84_9313;
const V2_DEFLATE: u32 = 0x1c84_9314;
const V2_HEADER: usize = 40;

/// Converts histograms to lines, reusing its buffers.
#[derive(Default)]
pub struct Encoder {
    serializer: V2DeflateSerializer,
    bytes: Vec<u8>,
}

impl Encoder {
    /// Appends the line of `durations`, which were recorded from `start` on for `length`.
    pub fn line(&mut self, out: &mut String, start: Nanos, length: Nanos, durations: &Durations) {
        self.bytes.clear();
        self.serializer
            .serialize(durations.histogram(), &mut self.bytes)
            .expect("a count of requests is below 2^63 and a Vec takes every write");
        let max = durations.histogram().max();
        write!(out, "{},{},{}.{:06},", Seconds(start), Seconds(length), max / 1_000_000, max % 1_000_000)
            .expect("a String takes every write");
        STANDARD.encode_string(&self.bytes, out);
        out.push('\n');
    }
}

/// One line, with its histogram still encoded.
#[derive(Debug, PartialEq, Eq)]
pub struct Line<'a> {
    pub start: Nanos,
    pub length: Nanos,
    payload: &'a [u8],
}

/// Splits a line, given without its line feed; `None` for a comment or the legend.
///
/// # Errors
///
/// When it has not the four fields of a line.
pub fn parse(line: &[u8]) -> Result<Option<Line<'_>>, LogDamage> {
    if line.starts_with(b"#") || line.starts_with(b"\"StartTimestamp\"") {
        return Ok(None);
    }
    let mut fields = line.split(|&byte| byte == b',');
    let mut next = || fields.next().ok_or(LogDamage::Line { what: "it has less than four fields" });
    let (start, length, _max, payload) = (next()?, next()?, next()?, next()?);
    if fields.next().is_some() {
        return Err(LogDamage::Line { what: "it has more than four fields" });
    }
    let seconds = |text| parse_seconds(text).ok_or(LogDamage::Line { what: "a timestamp is not in seconds" });
    Ok(Some(Line { start: seconds(start)?, length: seconds(length)?, payload }))
}

/// Converts lines to histograms, reusing its buffers.
///
/// Every length and every count is checked before [`hdrhistogram`] processes it, since that allocates what a header
/// claims, and overflows on runs of zeros that are longer than a histogram.
pub struct Decoder {
    deserializer: Deserializer,
    compressed: Vec<u8>,
    payload: Vec<u8>,
    digits: u8,
    /// The number of counts in a histogram.
    slots: u64,
}

impl Decoder {
    /// A decoder for histograms with that many significant digits, and for no others.
    pub fn new(digits: u8) -> Decoder {
        let slots = Durations::with_digits(digits).histogram().distinct_values() as u64;
        let (compressed, payload) = (Vec::new(), Vec::new());
        Decoder { deserializer: Deserializer::new(), compressed, payload, digits, slots }
    }

    /// The histogram of a line.
    ///
    /// # Errors
    ///
    /// When it is damaged, or has other bounds.
    pub fn decode(&mut self, line: &Line<'_>) -> Result<Histogram<u64>, LogDamage> {
        self.inflate(line.payload)?;
        check_header(&self.payload, self.digits)?;
        check_counts(&self.payload[V2_HEADER..], self.slots)?;
        let histogram = self.deserializer.deserialize(&mut self.payload.as_slice());
        histogram.map_err(|error| damage(error.to_string()))
    }

    /// Stores the V2 form in `payload`.
    fn inflate(&mut self, base64: &[u8]) -> Result<(), LogDamage> {
        self.compressed.clear();
        self.payload.clear();
        STANDARD.decode_vec(base64, &mut self.compressed).map_err(|error| damage(error.to_string()))?;
        if be_u32(&self.compressed, 0) != Some(V2_DEFLATE) {
            return Err(damage("it is not in the V2 deflate form"));
        }
        let deflated = &self.compressed[self.compressed.len().min(8)..];
        if be_u32(&self.compressed, 4).map(u64::from) != Some(deflated.len() as u64) {
            return Err(damage("its length is not the one it states"));
        }
        let mut inflater = ZlibDecoder::new(deflated).take(LONGEST_PAYLOAD + 1);
        inflater.read_to_end(&mut self.payload).map_err(|error| damage(error.to_string()))?;
        if self.payload.len() as u64 > LONGEST_PAYLOAD {
            return Err(damage("it unpacks to more than a histogram can take"));
        }
        Ok(())
    }
}

/// Checks the header of the V2 form, big endian: cookie u32, length of the counts u32, normalizing offset u32,
/// significant digits u32, lowest u64, highest u64, ratio f64.
fn check_header(payload: &[u8], digits: u8) -> Result<(), LogDamage> {
    let u64_at = |at| Some(u64::from(be_u32(payload, at)?) << 32 | u64::from(be_u32(payload, at + 4)?));
    let counts_len = payload.len().saturating_sub(V2_HEADER) as u64;
    let as_ours = be_u32(payload, 0) == Some(V2)
        && be_u32(payload, 4).map(u64::from) == Some(counts_len)
        && be_u32(payload, 8) == Some(0)
        && be_u32(payload, 12) == Some(u32::from(digits))
        && u64_at(16) == Some(1)
        && u64_at(24) == Some(LONGEST.0)
        && u64_at(32) == Some(1f64.to_bits());
    if as_ours { Ok(()) } else { Err(damage(format!("it has not {digits} digits from 1 ns to 1 h"))) }
}

/// Checks the counts: zig-zag LEB128 numbers of at most nine bytes, each a count or, if negative, a run of zeros.
fn check_counts(mut bytes: &[u8], slots: u64) -> Result<(), LogDamage> {
    let (mut slot, mut total) = (0u64, 0u64);
    while !bytes.is_empty() {
        let (number, rest) = zig_zag(bytes).ok_or_else(|| damage("its last count is torn"))?;
        bytes = rest;
        let (width, count) = if number < 0 { (number.unsigned_abs(), 0) } else { (1, number.unsigned_abs()) };
        let sums = slot.checked_add(width).zip(total.checked_add(count));
        (slot, total) = sums.ok_or_else(|| damage("its counts overflow"))?;
        if slot > slots {
            return Err(damage("it has more counts than a histogram"));
        }
    }
    Ok(())
}

fn zig_zag(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let mut encoded = 0u64;
    for (i, &byte) in bytes.iter().take(9).enumerate() {
        // All eight bits of the ninth byte are used.
        let last = i == 8 || byte & 0x80 == 0;
        let bits = if i == 8 { byte } else { byte & 0x7f };
        encoded |= u64::from(bits) << (7 * i);
        if last {
            let magnitude = (encoded >> 1) as i64;
            return Some((magnitude ^ -((encoded & 1) as i64), &bytes[i + 1..]));
        }
    }
    None
}

fn be_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn damage(what: impl Into<String>) -> LogDamage {
    LogDamage::Histogram { what: what.into() }
}

/// Prints as seconds with all nine digits.
struct Seconds(Nanos);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:09}", self.0.0 / 1_000_000_000, self.0.0 % 1_000_000_000)
    }
}

fn parse_seconds(text: &[u8]) -> Option<Nanos> {
    let text = std::str::from_utf8(text).ok()?;
    let (whole, fraction) = text.split_once('.')?;
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if fraction.len() != 9 || whole.is_empty() || !digits(whole) || !digits(fraction) {
        return None;
    }
    let ns = whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?;
    ns.checked_add(fraction.parse().ok()?).map(Nanos)
}

#[cfg(test)]
mod tests;
