//! How requests are to end: an outcome with its phase and blame, for every single one.

use std::collections::BTreeMap;

use record::document::VerdictWord;

use crate::drive::Run;

/// Outcome, phase and blame, as the record names them; phase and blame of `ok` are empty.
pub type End = (&'static str, &'static str, &'static str);

pub const OK: End = ("ok", "", "");

impl Run {
    /// How many requests ended in which way.
    pub fn ends(&self) -> BTreeMap<(&str, &str, &str), u64> {
        let mut ends = BTreeMap::new();
        for row in &self.results().outcomes {
            let phase = row.phase.as_deref().unwrap_or_default();
            let blame = row.blame.as_deref().unwrap_or_default();
            *ends.entry((row.outcome.as_str(), phase, blame)).or_default() += row.count;
        }
        ends
    }

    /// Every request ended in one of these ways, in so many each.
    #[track_caller]
    pub fn expect(&self, ends: &[(End, u64)]) {
        let expected: BTreeMap<_, _> = ends.iter().copied().filter(|(_, count)| *count > 0).collect();
        assert_eq!(self.ends(), expected, "{}", self.line);
    }

    #[track_caller]
    pub fn expect_exit(&self, exit: i32) {
        assert_eq!(self.exit, exit, "{}\n{}", self.line, self.stdout);
    }

    /// It ended with 0; or with 3, where the audit found this host too busy to measure anything, and only that.
    #[track_caller]
    pub fn expect_done(&self) {
        let findings = &self.recording.document.verdict.as_ref().unwrap().findings;
        let grave: Vec<&str> = findings
            .iter()
            .filter(|finding| finding.makes == VerdictWord::Invalid)
            .map(|finding| finding.check.as_str())
            .collect();
        assert!(grave.iter().all(|check| ["schedule_lag", "client_lag"].contains(check)), "{grave:?}");
        self.expect_exit(if grave.is_empty() { 0 } else { 3 });
    }
}
