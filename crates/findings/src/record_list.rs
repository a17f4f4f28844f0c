//! The list of records, one line each.

use record::document::{QuantileValue, State, VerdictWord};
use units::Nanos;

use crate::record_summary::RecordSummary;

/// A heading, then one line per record: when, what, rate, p99, verdict, directory. Columns are aligned; a figure has no
/// spaces inside, so that `awk` can read it.
pub fn record_list(records: &[RecordSummary]) -> Vec<String> {
    let heading = ["started", "kind", "rate", "p99", "verdict", "directory", "subject"].map(str::to_owned);
    let rows: Vec<[String; 7]> = std::iter::once(heading).chain(records.iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..7).map(width).collect();
    let line = |row: &[String; 7]| {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

fn row(record: &RecordSummary) -> [String; 7] {
    let none = || "-".to_owned();
    let compact = |ns: u64| Nanos(ns).to_string().replace(' ', "");
    let p99 = match record.p99 {
        Some(QuantileValue::Known { ns, .. }) => compact(ns),
        Some(QuantileValue::Above { ns }) => format!(">{}", compact(ns)),
        Some(QuantileValue::TooFew { .. }) | None => none(),
    };
    let verdict = match (record.state, record.verdict) {
        (State::Running, _) => "unfinished",
        (_, Some(VerdictWord::Valid)) => "valid",
        (_, Some(VerdictWord::Degraded)) => "degraded",
        (_, Some(VerdictWord::Invalid)) => "invalid",
        (_, None) => "-",
    };
    // Whole seconds are enough to distinguish records.
    let started = record.started.split('.').next().unwrap_or_default().trim_end_matches('Z').to_owned();
    [
        started,
        record.kind.clone(),
        record.per_s.map_or_else(none, |per_s| format!("{per_s:.0}/s")),
        p99,
        verdict.to_owned(),
        units::escape_text(&record.folder.to_string_lossy()),
        record.subject.clone().unwrap_or_default(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_record_is_one_aligned_line() {
        let run = RecordSummary {
            folder: "parallax-runs/20260101-120000-7".into(),
            kind: "drive".to_owned(),
            state: State::Finished,
            started: "2026-01-01T12:00:00.123456789Z".to_owned(),
            subject: Some("http://127.0.0.1:8080/".to_owned()),
            per_s: Some(499.7),
            p99: Some(QuantileValue::Known { ns: 2_270_000, low_ns: 2_000_000, high_ns: None }),
            verdict: Some(VerdictWord::Valid),
        };
        let cpu = RecordSummary {
            folder: "parallax-runs/x".into(),
            kind: "cpu".to_owned(),
            state: State::Running,
            subject: None,
            per_s: None,
            p99: None,
            verdict: None,
            ..run.clone()
        };
        assert_eq!(
            record_list(&[run, cpu]),
            [
                "started              kind   rate   p99     verdict     directory                        subject",
                "2026-01-01T12:00:00  drive  500/s  2.27ms  valid       parallax-runs/20260101-120000-7  http://127.0.0.1:8080/",
                "2026-01-01T12:00:00  cpu    -      -       unfinished  parallax-runs/x",
            ]
        );
    }
}
