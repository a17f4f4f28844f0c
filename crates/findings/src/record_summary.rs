//! A summary of a record, for a list of many: from its document alone.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use record::document::{Document, Envelope, QuantileValue, State, VerdictWord};
use record::search::{is_search, read_search};
use record::{RecordError, kind_of, read_whole};
use units::escape_text;

/// One entry in a list of records. Texts are escaped.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordSummary {
    pub folder: PathBuf,
    /// The verb that created it; `search` for a search.
    pub kind: String,
    pub state: State,
    /// When it began, as RFC 3339.
    pub started: String,
    /// What was requested; `None` for everything but runs and searches.
    pub subject: Option<String>,
    /// `ok` responses per second of a run; the highest rate that holds of a search.
    pub per_s: Option<f64>,
    /// 99th percentile of the response time.
    pub p99: Option<QuantileValue>,
    pub verdict: Option<VerdictWord>,
}

/// The records directly in the directory `parent`, the latest last, and the number of directories in it that are
/// something else or cannot be read.
///
/// # Errors
///
/// When the directory itself cannot be read. One that does not exist has no records.
///
/// # Cost
///
/// Reads one document per record, no histogram.
pub fn summaries(parent: &Path) -> io::Result<(Vec<RecordSummary>, usize)> {
    let entries = match fs::read_dir(parent) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), 0)),
        entries => entries?,
    };
    let (mut found, mut others) = (Vec::new(), 0);
    for entry in entries {
        let entry = entry?;
        // The type of the entry itself: links are not followed.
        if !entry.file_type()?.is_dir() {
            continue;
        }
        match summary(&entry.path()) {
            Ok(summary) => found.push(summary),
            Err(_) => others += 1,
        }
    }
    found.sort_by(|a, b| (&a.started, &a.folder).cmp(&(&b.started, &b.folder)));
    Ok((found, others))
}

/// The summary of the record in `folder`.
///
/// # Errors
///
/// As [`read`](record::read), of the document.
pub fn summary(folder: &Path) -> Result<RecordSummary, RecordError> {
    if is_search(folder) {
        let search = read_search(folder)?;
        let per_s = search.answer.as_ref().and_then(|answer| answer.holds_per_s);
        let subject = Some(search.subject.url.clone());
        return Ok(RecordSummary { subject, per_s, ..of_envelope(folder, "search", &search.envelope) });
    }
    let kind = kind_of(folder)?;
    if kind != "drive" {
        return Ok(of_envelope(folder, &kind, &read_whole::<Envelope>(folder)?));
    }
    let document: Document = read_whole(folder)?;
    let results = document.results.as_ref();
    let quantiles = results.into_iter().flat_map(|results| &results.response.quantiles);
    let p99 = quantiles.clone().find(|quantile| quantile.q == 0.99).map(|quantile| quantile.value);
    Ok(RecordSummary {
        subject: Some(escape_text(&document.subject.url)),
        per_s: results.map(|results| results.totals.throughput_per_s),
        p99,
        ..of_envelope(folder, &kind, &document.envelope)
    })
}

fn of_envelope(folder: &Path, kind: &str, envelope: &Envelope) -> RecordSummary {
    RecordSummary {
        folder: folder.to_owned(),
        kind: kind.to_owned(),
        state: envelope.state,
        started: escape_text(&envelope.time.started),
        subject: None,
        per_s: None,
        p99: None,
        verdict: envelope.verdict.as_ref().map(|verdict| verdict.word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, a run cannot be found by its time and result.
    #[test]
    fn a_list_has_every_record_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let golden = include_str!("../../../formats/golden/run/run.json");
        for (name, started) in [("later", "2026-01-02T00:00:00Z"), ("earlier", "2026-01-01T00:00:00Z")] {
            let mut document: Document = serde_json::from_str(golden).unwrap();
            document.envelope.time.started = started.to_owned();
            fs::create_dir(root.path().join(name)).unwrap();
            let text = serde_json::to_string(&document).unwrap();
            fs::write(root.path().join(name).join("run.json"), text).unwrap();
        }
        fs::create_dir(root.path().join("something")).unwrap();
        fs::write(root.path().join("note"), "").unwrap();
        std::os::unix::fs::symlink(root.path().join("later"), root.path().join("link")).unwrap();
        let (found, others) = summaries(root.path()).unwrap();
        let names: Vec<_> =
            found.iter().map(|one| one.folder.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!((names.as_slice(), others), (&["earlier", "later"][..], 1));
        assert_eq!(found[0].kind, "drive");
        assert!(
            found[0].per_s.is_some() && found[0].p99.is_some() && found[0].verdict.is_some(),
            "{found:?}"
        );
        assert_eq!(summaries(&root.path().join("nowhere")).unwrap(), (Vec::new(), 0));
    }
}
