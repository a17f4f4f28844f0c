//! How requests must end: an outcome with its phase and blame, for every single one.

use std::collections::BTreeMap;

use record::document::VerdictWord;
use units::Nanos;

use crate::drive::Run;

/// Outcome, phase and blame, as named in the record; phase and blame of `ok` are empty.
pub type End = (&'static str, &'static str, &'static str);

pub const OK: End = ("ok", "", "");

/// The engine counts it as a stall if a worker wakes this much later than intended.
const LONGEST_WAKE: Nanos = Nanos::from_millis(50);

impl Run {
    /// How many requests ended in each way.
    pub fn ends(&self) -> BTreeMap<(&str, &str, &str), u64> {
        let mut ends = BTreeMap::new();
        for row in &self.results().outcomes {
            let phase = row.phase.as_deref().unwrap_or_default();
            let blame = row.blame.as_deref().unwrap_or_default();
            *ends.entry((row.outcome.as_str(), phase, blame)).or_default() += row.count;
        }
        ends
    }

    /// Every request ended in one of these ways, with these counts.
    #[track_caller]
    pub fn expect(&self, ends: &[(End, u64)]) {
        let expected: BTreeMap<_, _> = ends.iter().copied().filter(|(_, count)| *count > 0).collect();
        let mut seen = BTreeMap::new();
        for (end, count) in self.ends() {
            *seen.entry(self.excused(end, ends)).or_default() += count;
        }
        assert_eq!(seen, expected, "{}", self.line);
    }

    /// A timeout that expired while this client did not run, or a request that it could not take up in time, is the
    /// client's own fault, and is blamed on it. That happens on a busy host, and the record must report it. Such an
    /// end counts as the expected one.
    fn excused<'a>(
        &self,
        end: (&'a str, &'a str, &'a str),
        expected: &[(End, u64)],
    ) -> (&'a str, &'a str, &'a str) {
        let (outcome, phase, blame) = end;
        let stalled = self.recording.total.worker_stall_max > LONGEST_WAKE;
        let late = outcome == "not_sent" && phase == "schedule_lag";
        let of_client = (outcome.ends_with("_timeout") || late) && blame == "client";
        let meant = expected.iter().find(|((name, at, _), _)| *name == outcome && (*at == phase || late));
        match meant {
            Some(&((_, at, blame), _)) if of_client && stalled => (outcome, at, blame),
            _ => end,
        }
    }

    #[track_caller]
    pub fn expect_exit(&self, exit: i32) {
        assert_eq!(self.exit, exit, "{}\n{}", self.line, self.stdout);
    }

    /// It ended with 0; or with 3 if the audit found only that this host was too busy to measure anything.
    #[track_caller]
    pub fn expect_done(&self) {
        let findings = &self.recording.document.verdict.as_ref().unwrap().findings;
        let grave: Vec<&str> = findings
            .iter()
            .filter(|finding| finding.makes == VerdictWord::Invalid)
            .map(|finding| finding.check.name())
            .collect();
        assert!(grave.iter().all(|check| ["schedule_lag", "client_lag"].contains(check)), "{grave:?}");
        self.expect_exit(if grave.is_empty() { 0 } else { 3 });
    }
}
