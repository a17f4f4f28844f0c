//! Reads one histogram log and checks it against the series: it must have exactly one line for each histogram that the
//! series names, with the length, count and sum that the series states. Anything else is damage. Driven by the readers
//! of records.

use std::path::Path;

use intervals::Durations;
use intervals::hlog::{self, Decoder};

use crate::commit::SERIES;
use crate::error::{Damage, RecordError};
use crate::lines::Lines;

/// A histogram that a committed interval must have in a log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Awaited {
    /// The number of its interval.
    pub(crate) index: u64,
    pub(crate) start_ns: u64,
    pub(crate) length_ns: u64,
    /// The minimum and maximum number of its values.
    pub(crate) counts: (u64, u64),
    pub(crate) sum_ns: u64,
    pub(crate) out_of_range: u64,
}

/// Passes every awaited histogram of the log at `path` to `take`, in order. `committed` returns the number of the
/// interval that begins at a given time, if there is one.
pub(crate) fn read_log(
    path: &Path,
    awaited: impl IntoIterator<Item = Awaited>,
    committed: impl Fn(u64) -> Option<u64>,
    decoder: &mut Decoder,
    mut take: impl FnMut(&Durations),
) -> Result<(), RecordError> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let mut awaited = awaited.into_iter();
    let mut next = awaited.next();
    let missing = |one: Awaited| {
        Damage::sum(format!("{SERIES} has interval {} in {name}, and it is not here", one.index))
    };
    let Some(mut lines) = Lines::open(path, hlog::LONGEST_LINE, u64::MAX)? else {
        return next
            .map_or(Ok(()), |one| Err(RecordError::NoLog { path: path.to_owned(), index: one.index }));
    };
    while let Some(text) = lines.next()? {
        // In two steps: the line borrows the reader, and the error needs it too.
        let step = match hlog::parse(text) {
            Ok(None) => continue,
            Ok(Some(line)) => match next {
                Some(one) if line.start.0 == one.start_ns => decode(&line, one, decoder).map(|durations| {
                    take(&durations);
                    next = awaited.next();
                }),
                Some(one) if line.start.0 > one.start_ns => Err(missing(one)),
                _ => check_uncommitted(committed(line.start.0)),
            },
            Err(damage) => Err(damage.into()),
        };
        step.map_err(|damage| lines.damaged(damage))?;
    }
    next.map_or(Ok(()), |one| Err(lines.damaged(missing(one))))
}

/// Checks a line that no committed interval waits for: it was cut off before its commit, or does not belong here.
fn check_uncommitted(committed: Option<u64>) -> Result<(), Damage> {
    match committed {
        Some(index) => Err(Damage::sum(format!("interval {index} should have no line here"))),
        None => Ok(()),
    }
}

fn decode(line: &hlog::Line<'_>, one: Awaited, decoder: &mut Decoder) -> Result<Durations, Damage> {
    if line.length.0 != one.length_ns {
        return Err(Damage::sum(format!("its length is not the {} ns of {SERIES}", one.length_ns)));
    }
    let histogram = decoder.decode(line)?;
    let (least, most) = one.counts;
    if !(least..=most).contains(&histogram.len()) || histogram.is_empty() {
        let count = histogram.len();
        return Err(Damage::sum(format!("it has {count} values, but {SERIES} allows {least} to {most}")));
    }
    if one.out_of_range > histogram.len() {
        let count = histogram.len();
        return Err(Damage::sum(format!("{} of its {count} values are out of range", one.out_of_range)));
    }
    let sum_ns = u128::from(one.sum_ns);
    let (low, high) = histogram.iter_recorded().fold((0u128, 0u128), |(low, high), bucket| {
        let count = u128::from(bucket.count_at_value());
        let value = bucket.value_iterated_to();
        (low + count * u128::from(histogram.lowest_equivalent(value)), high + count * u128::from(value))
    });
    // Values out of range are greater than their bucket, and a sum may have been limited to a u64.
    if sum_ns < low.min(u128::from(u64::MAX)) || (one.out_of_range == 0 && sum_ns > high) {
        return Err(Damage::sum(format!("its values cannot sum to the {sum_ns} ns of {SERIES}")));
    }
    Ok(Durations::from_parts(histogram, sum_ns, one.out_of_range))
}
