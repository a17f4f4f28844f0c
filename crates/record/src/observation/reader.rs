//! Reads the record of an observation as untrusted input: sizes are limited, names are checked before they become
//! paths, texts are escaped, and inconsistent figures are an error.

use intervals::hlog::Decoder;

use super::*;
use crate::compatibility::Ignored;
use crate::escape::escaped;
use crate::folder_reader::{
    LONGEST_EVENTS, check_kind, check_zero, each_json_line, each_line, kind_of, read_record,
};
use crate::log_reader::{Awaited, read_log};
use crate::tree;

/// A line of `watch` has about two kilobytes: this is enough for a day and a half at one line per second.
const LONGEST_SERIES: u64 = 256 << 20;

/// An observation as read from its record.
#[derive(Debug, Clone)]
pub struct Observed {
    pub document: Observation,
    /// Every committed interval, in order.
    pub lines: Vec<ObservedLine>,
    pub events: Vec<Event>,
    /// The histograms of all committed intervals, merged, by the log's name without `.hlog`.
    pub logs: BTreeMap<String, Durations>,
}

/// A line of the series.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedLine {
    /// Offset from the record's zero.
    pub start: Nanos,
    pub length: Nanos,
    /// The line as it is in the file: a parsed tree would take many times the memory.
    text: Box<[u8]>,
}

impl ObservedLine {
    /// The verb's own fields, as `T` or as [`Value`]; strings are escaped.
    ///
    /// # Errors
    ///
    /// [`Damage::Json`] if the line cannot be parsed as a `T`.
    pub fn fields<T: DeserializeOwned>(&self) -> Result<T, Damage> {
        let mut value: Value = serde_json::from_slice(&self.text)?;
        if let Value::Object(map) = &mut value {
            map.retain(|key, _| !matches!(key.as_str(), "start_ns" | "length_ns" | "logs"));
        }
        Ok(tree::read(&escaped(value))?)
    }
}

impl Observed {
    /// Whether the document was never finished: the observation is in progress, or its process is gone. The record
    /// alone does not show which.
    pub fn is_cut_off(&self) -> bool {
        self.document.state == State::Running
    }
}

/// Reads the record in the directory `path`.
///
/// # Errors
///
/// [`RecordError::NoRun`], [`RecordError::OtherKind`] for the record of a run or an import,
/// [`RecordError::OtherMajor`], and others for a damaged or hostile directory.
///
/// # Cost
///
/// One pass over every file. Uses memory for the series, as large as its file, and 270 KiB per log.
pub fn read_observation(path: &Path) -> Result<Observed, RecordError> {
    // The document is read first: if it states that the observation is over, everything else has been written.
    let mut ignored = Ignored::default();
    let mut document = read_document(path, &mut ignored)?;
    let (lines, frames) = read_lines(&path.join(SERIES))?;
    ignored.extend(ignored_in_lines(document.body.kind(), &lines));
    let names: BTreeSet<&String> = frames.iter().flat_map(|frame| frame.logs.keys()).collect();
    let mut logs = BTreeMap::new();
    let digits = document.body.kind().digits();
    let mut decoder = Decoder::new(digits);
    for name in names {
        let mut total = Durations::with_digits(digits);
        read_histograms(&path.join(format!("{name}.hlog")), name, &frames, &mut decoder, &mut total)?;
        logs.insert(name.clone(), total);
    }
    let mut events = Vec::new();
    each_json_line(&path.join(EVENTS), LONGEST_EVENTS, Some(&mut ignored), |event| {
        events.push(escaped::<Event>(event));
        Ok(())
    })?;
    if let ObservationBody::Disturb(results) = &mut document.body {
        disturb::settle(results, &mut events);
    }
    ignored.note_in(&mut document);
    Ok(Observed { document, lines, events, logs })
}

fn read_document(path: &Path, ignored: &mut Ignored) -> Result<Observation, RecordError> {
    if ObservationKind::from_name(&kind_of(path)?).is_none() {
        check_kind(path, "an observing verb")?;
    }
    let mut document: Observation = read_record(&path.join(RUN), ignored)?;
    if document.schema_version.minor == 0
        && let ObservationBody::Disturb(results) = &mut document.body
    {
        results.relay = disturb::RelayAddresses::of_1_0(&results.what);
    }
    check_zero(path, &document)?;
    if document.kind != document.body.kind().into() {
        let (kind, body) = (document.kind.name(), document.body.kind().name());
        let damage = Damage::sum(format!("kind is {kind}, but the content is that of {body}"));
        return Err(RecordError::Damaged { path: path.join(RUN), line: 1, damage });
    }
    Ok(document)
}

/// The unknown fields of the first line that has any. A line that cannot be parsed as one of `kind` is an error only
/// for a caller that needs its fields.
fn ignored_in_lines(kind: ObservationKind, lines: &[ObservedLine]) -> Ignored {
    fn compare<T: Serialize + DeserializeOwned>(line: &ObservedLine, ignored: &mut Ignored) {
        let both = line.fields::<Value>().ok().zip(line.fields::<T>().ok());
        if let Some((found, understood)) = both {
            ignored.compare(SERIES, &found, &understood);
        }
    }

    let mut ignored = Ignored::default();
    for line in lines {
        match kind {
            ObservationKind::Watch => compare::<watch::WatchLine>(line, &mut ignored),
            ObservationKind::Cpu => compare::<cpu::CpuLine>(line, &mut ignored),
            ObservationKind::Hiccup => compare::<hiccup::HiccupLine>(line, &mut ignored),
            ObservationKind::Profile => compare::<profile::ProfileLine>(line, &mut ignored),
            ObservationKind::Jvm => compare::<jvm::JvmLine>(line, &mut ignored),
            // Its series has no lines.
            ObservationKind::Disturb => {}
        }
        if !ignored.is_empty() {
            break;
        }
    }
    ignored
}

fn read_lines(path: &Path) -> Result<(Vec<ObservedLine>, Vec<LineFrame>), RecordError> {
    let (mut lines, mut frames) = (Vec::new(), Vec::<LineFrame>::new());
    let mut names = BTreeSet::new();
    let mut sums = BTreeMap::<String, u64>::new();
    each_line(path, LONGEST_SERIES, |text| {
        let frame: LineFrame = serde_json::from_slice(text)?;
        check_frame(&frame, frames.last())?;
        for (name, log) in &frame.logs {
            if names.len() == LOGS_MAX && !names.contains(name) {
                return Err(Damage::sum(format!("the record has over {LOGS_MAX} logs")));
            }
            names.insert(name.clone());
            // Checked here, so that no count of these lines can overflow later.
            let sum = sums.entry(name.clone()).or_default();
            *sum = sum.checked_add(log.count).ok_or_else(|| Damage::sum("the counts overflow"))?;
        }
        let (start, length) = (Nanos(frame.start_ns), Nanos(frame.length_ns));
        lines.push(ObservedLine { start, length, text: text.into() });
        frames.push(frame);
        Ok(())
    })?;
    Ok((lines, frames))
}

fn check_frame(frame: &LineFrame, last: Option<&LineFrame>) -> Result<(), Damage> {
    if last.is_some_and(|last| frame.start_ns <= last.start_ns) {
        return Err(Damage::sum("it does not come after the line before it"));
    }
    if frame.start_ns.checked_add(frame.length_ns).is_none() {
        return Err(Damage::sum("start_ns and length_ns reach beyond 584 years"));
    }
    for (name, log) in &frame.logs {
        if !is_log_name(name) {
            return Err(Damage::UnknownName { what: "histogram", name: name.clone() });
        }
        if log.count == 0 {
            return Err(Damage::sum(format!("{name} is there without a value")));
        }
    }
    Ok(())
}

fn read_histograms(
    path: &Path,
    name: &str,
    frames: &[LineFrame],
    decoder: &mut Decoder,
    total: &mut Durations,
) -> Result<(), RecordError> {
    let awaited = (0..).zip(frames).filter_map(|(index, frame)| {
        let log = frame.logs.get(name)?;
        Some(Awaited {
            index,
            start_ns: frame.start_ns,
            length_ns: frame.length_ns,
            counts: (log.count, log.count),
            sum_ns: log.sum_ns,
            out_of_range: log.out_of_range,
        })
    });
    let committed = |start_ns| {
        let found = frames.binary_search_by_key(&start_ns, |frame| frame.start_ns);
        found.ok().map(|index| index as u64)
    };
    read_log(path, awaited, committed, decoder, |durations| total.merge(durations))
}
