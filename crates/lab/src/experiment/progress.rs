//! What happens while a plan is carried out, as lines for a user: one per run, with the time left.

use std::path::Path;

use units::Nanos;

/// Hands out a line for each thing that happens.
pub(super) struct Lines<'a> {
    pub say: &'a mut dyn FnMut(&str),
    all: usize,
    /// Runs of this session, and how long they took together.
    made: (u64, Nanos),
}

/// A run that has ended.
#[derive(Debug)]
pub(super) struct RunReport<'a> {
    pub number: usize,
    pub block: usize,
    /// The values of all factors, with the twin marked.
    pub name: &'a str,
    pub took: Nanos,
    /// Why it failed.
    pub failure: Option<String>,
    /// Runs of the plan that are not committed.
    pub left: usize,
}

impl<'a> Lines<'a> {
    pub(super) fn new(say: &'a mut dyn FnMut(&str)) -> Lines<'a> {
        Lines { say, all: 0, made: (0, Nanos::ZERO) }
    }

    /// `left` of all `runs` are to be made in this session.
    pub(super) fn begins(&mut self, runs: usize, left: usize, folder: &Path) {
        self.all = runs;
        let made = if left < runs { format!(", {} of them made before", runs - left) } else { String::new() };
        (self.say)(&format!("{runs} runs{made}; directory {}", folder.display()));
    }

    /// Something that the user should know.
    pub(super) fn note(&mut self, line: &str) {
        (self.say)(line);
    }

    /// A build has ended.
    pub(super) fn built(&mut self, command: &str, took: Nanos, cause: Option<&str>) {
        let end = cause.map_or(String::new(), |cause| format!("   FAILED: {cause}"));
        (self.say)(&format!("built {took}   {command}{end}"));
    }

    /// A run has ended.
    pub(super) fn ran(&mut self, run: &RunReport<'_>) {
        let (count, sum) = self.made;
        self.made = (count + 1, sum + run.took);
        let left = Nanos((self.made.1.0 / self.made.0).saturating_mul(run.left as u64));
        let left = if run.left > 0 { format!("   {left} left") } else { String::new() };
        let end = run.failure.as_ref().map_or(String::new(), |cause| format!("   FAILED: {cause}"));
        let (number, all, block) = (run.number, self.all, run.block);
        (self.say)(&format!("run {number}/{all}   block {block}   {}   {}{end}{left}", run.name, run.took));
    }
}
