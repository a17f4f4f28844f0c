//! A whole histogram log as text.

use std::fmt::Write as _;

use intervals::Durations;
use intervals::hlog::Encoder;
use units::Nanos;

use crate::error::RecordError;

/// The lines before the first interval. `started` is the run's zero in wall-clock time.
///
/// Timestamps in the log are offsets from the run's zero. `BaseTime` tells the tools that, which would otherwise guess.
pub(crate) fn header(started: jiff::Timestamp) -> String {
    let epoch_s = started.as_millisecond() as f64 / 1e3;
    format!(
        "#[Histogram log format version 1.3]\n\
         #[StartTime: {epoch_s:.3} (seconds since epoch), {started}]\n\
         #[BaseTime: {epoch_s:.3} (seconds since epoch)]\n\
         \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n"
    )
}

/// One line of [`histogram_log`].
#[derive(Debug, Clone, Copy)]
pub struct LogLine<'a> {
    /// Distinguishes several histograms in one log; tools can select by it.
    pub tag: Option<&'a str>,
    pub start: Nanos,
    pub length: Nanos,
    pub durations: &'a Durations,
}

/// A whole log as text, for callers that write no results directory. `started` is the run's zero, in RFC 3339.
///
/// # Errors
///
/// [`RecordError::StartTime`] if `started` cannot be parsed.
pub fn histogram_log<'a>(
    started: &str,
    lines: impl IntoIterator<Item = LogLine<'a>>,
) -> Result<String, RecordError> {
    let zero = started.parse::<jiff::Timestamp>();
    let zero = zero.map_err(|_| RecordError::StartTime { started: started.to_owned() })?;
    let mut encoder = Encoder::default();
    let mut text = header(zero);
    for line in lines {
        if let Some(tag) = line.tag {
            write!(text, "Tag={tag},").expect("a String takes every write");
        }
        encoder.line(&mut text, line.start, line.length, line.durations);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use intervals::hlog::parse;

    use super::*;

    #[test]
    fn the_header_says_that_timestamps_are_offsets() {
        let text = header("2026-01-31T12:00:00.25Z".parse().unwrap());
        assert!(
            text.contains("#[StartTime: 1769860800.250 (seconds since epoch), 2026-01-31T12:00:00.25Z]\n")
        );
        assert!(text.contains("#[BaseTime: 1769860800.250 (seconds since epoch)]\n"));
        assert!(text.lines().all(|line| parse(line.as_bytes()).unwrap().is_none()));
    }
}
