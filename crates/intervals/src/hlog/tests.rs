//! Tests of histogram log lines: round trips, and forged payloads that must not cause allocations.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use proptest::prelude::*;

use super::*;
use crate::durations::DIGITS;

fn line_of(durations: &Durations) -> String {
    let mut text = String::new();
    Encoder::default().line(&mut text, Nanos(1_000_000_001), Nanos(999_999_999), durations);
    text.pop();
    text
}

fn decode(line: &str) -> Result<Histogram<u64>, LogDamage> {
    Decoder::new(DIGITS).decode(&parse(line.as_bytes())?.expect("not a comment"))
}

/// A line with counts that our encoder never writes. `stated` is the length in its header.
fn forged(high: u64, stated: u32, counts: &[u8]) -> String {
    let mut payload = Vec::new();
    for word in [V2, stated, 0, u32::from(DIGITS)] {
        payload.extend(word.to_be_bytes());
    }
    for word in [1, high, 1f64.to_bits()] {
        payload.extend(word.to_be_bytes());
    }
    payload.extend(counts);
    let mut deflater = ZlibEncoder::new(Vec::new(), Compression::default());
    deflater.write_all(&payload).unwrap();
    let deflated = deflater.finish().unwrap();
    let mut bytes = V2_DEFLATE.to_be_bytes().to_vec();
    bytes.extend(u32::try_from(deflated.len()).unwrap().to_be_bytes());
    bytes.extend(deflated);
    format!("0.000000000,1.000000000,0.0,{}", STANDARD.encode(bytes))
}

#[test]
fn timestamps_keep_their_nanoseconds() {
    let mut durations = Durations::new();
    durations.record(Nanos(1_500));
    let text = line_of(&durations);
    assert!(text.starts_with("1.000000001,0.999999999,0.001500,"), "{text}");
    let line = parse(text.as_bytes()).unwrap().unwrap();
    assert_eq!((line.start, line.length), (Nanos(1_000_000_001), Nanos(999_999_999)));
}

#[test]
fn lines_in_another_form_are_refused() {
    for text in [
        "",
        "1.000000000",
        "1.000000000,1.000000000,1.0",
        "1.000000000,1.000000000,1.0,AAAA,AAAA",
        "Tag=A,1.000000000,1.000000000,1.0,AAAA",
        "1.0,1.000000000,1.0,AAAA",
        "-1.000000000,1.000000000,1.0,AAAA",
        "+1.000000000,1.000000000,1.0,AAAA",
        "1,1.000000000,1.0,AAAA",
        "99999999999.000000000,1.000000000,1.0,AAAA",
        "1.\u{660}00000000,1.000000000,1.0,AAAA",
    ] {
        assert!(parse(text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn forged_histograms_are_refused() {
    assert_eq!(decode(&forged(LONGEST.0, 1, &[2])).unwrap().len(), 1);
    let huge = vec![0; 8 << 20];
    for (why, text) in [
        ("memory for a day", forged(86_400_000_000_000, 1, &[2])),
        ("memory for all", forged(u64::MAX, 1, &[2])),
        ("states four gigabytes", forged(LONGEST.0, u32::MAX, &[2])),
        ("states too little", forged(LONGEST.0, 0, &[2])),
        ("unpacks a thousandfold", forged(LONGEST.0, 8 << 20, &huge)),
        ("a run of 2^63 zeros", forged(LONGEST.0, 9, &[0xff; 9])),
        ("a torn count", forged(LONGEST.0, 1, &[0x80])),
        ("more slots than there are", forged(LONGEST.0, 4, &[0xff, 0xff, 0x7f, 2])),
        (
            "counts above 2^64",
            forged(LONGEST.0, 27, &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff].repeat(3)),
        ),
    ] {
        assert!(matches!(decode(&text), Err(LogDamage::Histogram { .. })), "{why}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// If this fails, a record's percentiles are not those that were measured.
    #[test]
    fn a_histogram_survives_its_line(values in proptest::collection::vec((0u32..43, any::<u64>()), 1..200)) {
        let mut durations = Durations::new();
        values.iter().for_each(|(bits, value)| durations.record(Nanos(value & ((1 << bits) - 1))));
        let histogram = decode(&line_of(&durations)).unwrap();
        prop_assert_eq!(&histogram, durations.histogram());
    }

    /// Damage to a line causes an error or leaves an equal histogram, never a panic.
    #[test]
    fn a_damaged_line_never_decodes_to_another_histogram(at in 0usize..400, byte in 0x20u8..0x7f) {
        let mut durations = Durations::new();
        (1..200u64).for_each(|i| durations.record(Nanos(i * i * i)));
        let mut text = line_of(&durations).into_bytes();
        let payload_at = 1 + text.iter().rposition(|&byte| byte == b',').unwrap();
        let at = payload_at + at % (text.len() - payload_at);
        text[at] = byte;
        if let Ok(Some(line)) = parse(&text)
            && let Ok(histogram) = Decoder::new(DIGITS).decode(&line)
        {
            prop_assert_eq!(&histogram, durations.histogram());
        }
    }

    #[test]
    fn any_counts_are_read_or_refused(counts in proptest::collection::vec(any::<u8>(), 0..64)) {
        let stated = u32::try_from(counts.len()).unwrap();
        let _ = decode(&forged(LONGEST.0, stated, &counts));
    }
}
