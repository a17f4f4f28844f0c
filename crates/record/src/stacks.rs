//! Weighted stacks of a profile: collapsed text, the share of each frame, and the change between two profiles.
//!
//! A stack is a line `root;…;leaf` followed by a space and its weight, the format of flame-graph tools. Names of frames
//! are untrusted: [`clean_frame`] makes a name safe for a line. [`waits`] defines which frames wait for what asleep, and [`spins`] which
//! do so on a CPU; [`focus`] is the place of one function.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write};

pub mod focus;
pub mod spins;
pub mod waits;

/// The maximum length of a frame in characters: C++ templates reach kilobytes.
pub const FRAME_LONGEST: usize = 400;
/// The maximum length of a line: 127 frames each of user space and kernel, all of maximum length with escapes.
const LINE_LONGEST: usize = 1 << 20;

/// Stacks and their weights, in a unit chosen by the caller.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stacks {
    weights: BTreeMap<String, u64>,
}

/// The weight of one frame.
#[derive(Debug, Clone, PartialEq)]
pub struct FrameWeight {
    pub frame: String,
    /// Where it is the leaf.
    pub own: u64,
    /// Where it is anywhere in the stack.
    pub total: u64,
}

/// A frame in two pictures, as shares of each picture's weight.
#[derive(Debug, Clone, PartialEq)]
pub struct FrameChange {
    pub frame: String,
    pub own_before: f64,
    pub own_after: f64,
    pub total_before: f64,
    pub total_after: f64,
}

impl FrameChange {
    /// By how much its share grew, including all that it calls.
    pub fn change(&self) -> f64 {
        self.total_after - self.total_before
    }

    /// By how much the share of the frame itself grew.
    pub fn own_change(&self) -> f64 {
        self.own_after - self.own_before
    }
}

impl Stacks {
    /// Adds a stack, root first. Frames must have been passed through [`clean_frame`].
    pub fn add<'a>(&mut self, frames: impl IntoIterator<Item = &'a str>, weight: u64) {
        let mut line = String::new();
        for frame in frames {
            if !line.is_empty() {
                line.push(';');
            }
            line.push_str(frame);
        }
        self.add_line(line, weight);
    }

    fn add_line(&mut self, line: String, weight: u64) {
        if line.is_empty() || weight == 0 {
            return;
        }
        let sum = self.weights.entry(line).or_default();
        *sum = sum.saturating_add(weight);
    }

    /// Divides every weight by `by`, rounded to the nearest; stacks whose weight becomes 0 are removed.
    pub fn scaled_down(self, by: u64) -> Stacks {
        let scaled = self.weights.into_iter().map(|(line, weight)| (line, (weight + by / 2) / by));
        Stacks { weights: scaled.filter(|(_, weight)| *weight > 0).collect() }
    }

    /// Each stack without the kernel's frames at its leaf, unless it has no others: the place in the program that
    /// waits.
    pub fn outside_kernel(&self) -> Stacks {
        let mut outside = Stacks::default();
        for (line, weight) in &self.weights {
            let mut rest = line.as_str();
            while rest.ends_with("_[k]") {
                rest = rest.rsplit_once(';').map_or("", |(rest, _)| rest);
            }
            let kept = if rest.contains(';') { rest } else { line };
            outside.add_line(kept.to_owned(), *weight);
        }
        outside
    }

    /// Whether there are no stacks.
    pub fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }

    /// How many different stacks there are.
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// The sum of all weights.
    pub fn total(&self) -> u64 {
        self.weights.values().fold(0, |sum, weight| sum.saturating_add(*weight))
    }

    /// The stacks in order, each with its frames from the root and its weight.
    pub fn iter(&self) -> impl Iterator<Item = (std::str::Split<'_, char>, u64)> {
        self.weights.iter().map(|(line, weight)| (line.split(';'), *weight))
    }

    /// The stacks as lines of collapsed text.
    pub fn lines(&self) -> impl Iterator<Item = String> + '_ {
        self.weights.iter().map(|(line, weight)| format!("{line} {weight}"))
    }

    /// Writes collapsed text.
    ///
    /// # Errors
    ///
    /// Errors of `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        self.lines().try_for_each(|line| writeln!(out, "{line}"))
    }

    /// Parses collapsed text from any tool: frames are cleaned.
    ///
    /// # Errors
    ///
    /// The number of the first invalid line, from 1, and what is wrong with it.
    pub fn parse(text: &str) -> Result<Stacks, (usize, &'static str)> {
        let mut stacks = Stacks::default();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            if line.len() > LINE_LONGEST {
                return Err((number + 1, "it is over 1 MiB long"));
            }
            let parts = line.trim_end().rsplit_once(' ');
            let (frames, weight) = parts.ok_or((number + 1, "there is no weight after the frames"))?;
            let weight = weight.parse().map_err(|_| (number + 1, "its weight is no whole number"))?;
            let frames: Vec<_> = frames.split(';').map(clean_frame).collect();
            stacks.add(frames.iter().map(String::as_str), weight);
        }
        Ok(stacks)
    }

    /// Each frame's weights, the largest own weight first. A frame that is in a stack twice is counted once in its
    /// total.
    ///
    /// The root of a stack names the thread and is not counted as a frame.
    pub fn frames(&self) -> Vec<FrameWeight> {
        let mut sums: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        let mut seen = HashSet::new();
        for (line, weight) in &self.weights {
            seen.clear();
            let mut leaf = None;
            for frame in line.split(';').skip(1) {
                leaf = Some(frame);
                if seen.insert(frame) {
                    sums.entry(frame).or_default().1 += weight;
                }
            }
            if let Some(leaf) = leaf {
                sums.entry(leaf).or_default().0 += weight;
            }
        }
        let weights = sums.into_iter();
        let mut frames: Vec<_> = weights
            .map(|(frame, (own, total))| FrameWeight { frame: frame.to_owned(), own, total })
            .collect();
        frames.sort_by(|a, b| (b.own, b.total, &a.frame).cmp(&(a.own, a.total, &b.frame)));
        frames
    }
}

/// What changed from one picture to another. The frame whose total share grew most comes first; in a chain of calls
/// that grew equally, the one whose own share grew.
pub fn changes(before: &Stacks, after: &Stacks) -> Vec<FrameChange> {
    let mut changes: BTreeMap<String, FrameChange> = BTreeMap::new();
    let mut note = |stacks: &Stacks, set: fn(&mut FrameChange, f64, f64)| {
        let whole = stacks.total() as f64;
        for FrameWeight { frame, own, total } in stacks.frames() {
            let empty = FrameChange {
                frame: frame.clone(),
                own_before: 0.0,
                own_after: 0.0,
                total_before: 0.0,
                total_after: 0.0,
            };
            set(changes.entry(frame).or_insert(empty), own as f64 / whole, total as f64 / whole);
        }
    };
    note(before, |change, own, total| (change.own_before, change.total_before) = (own, total));
    note(after, |change, own, total| (change.own_after, change.total_after) = (own, total));
    let mut changes: Vec<_> = changes.into_values().collect();
    changes.sort_by(|a, b| {
        let by_total = b.change().total_cmp(&a.change());
        by_total.then(b.own_change().total_cmp(&a.own_change())).then_with(|| a.frame.cmp(&b.frame))
    });
    changes
}

/// A name made safe for one frame of collapsed text and for a terminal: no separator, no control character, not too
/// long.
///
/// An empty name becomes `[unknown]`.
pub fn clean_frame(name: &str) -> String {
    let shown = crate::escape_text(name.trim());
    let mut clean: String = shown.chars().map(|c| if c == ';' { ':' } else { c }).collect();
    if clean.chars().count() > FRAME_LONGEST {
        clean = clean.chars().take(FRAME_LONGEST - 1).collect();
        clean.push('…');
    }
    if clean.is_empty() { "[unknown]".to_owned() } else { clean }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stacks(text: &str) -> Stacks {
        Stacks::parse(text).unwrap()
    }

    #[test]
    fn collapsed_text_reads_back_as_it_was_written() {
        let text = "a;main;b 3\na;main;c d(int, long) 7\n";
        let mut written = Vec::new();
        stacks(text).write(&mut written).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), text);
        assert_eq!(stacks(text).total(), 10);
    }

    #[test]
    fn a_line_without_a_weight_is_named() {
        assert_eq!(Stacks::parse("a;b 1\n\na;b"), Err((3, "there is no weight after the frames")));
        assert_eq!(Stacks::parse("a;b x"), Err((1, "its weight is no whole number")));
        assert_eq!(Stacks::parse("a;b -1"), Err((1, "its weight is no whole number")));
        assert_eq!(Stacks::parse(&format!("{} 1", "a;".repeat(1 << 20))), Err((1, "it is over 1 MiB long")));
    }

    /// If this fails, a recursive function takes more than all of the time.
    #[test]
    fn a_frame_counts_once_a_stack() {
        let frames = stacks("t;main;f;f;f 4\nt;main;g 1").frames();
        let shown: Vec<_> = frames.iter().map(|f| (f.frame.as_str(), f.own, f.total)).collect();
        assert_eq!(shown, [("f", 4, 4), ("g", 1, 1), ("main", 0, 5)]);
    }

    /// If this fails, a longer run looks slower, function by function.
    #[test]
    fn a_change_is_one_of_shares() {
        let changes = changes(&stacks("t;main;f 50\nt;main;g 50"), &stacks("t;main;f 300\nt;main;g 100"));
        assert_eq!(changes[0].frame, "f");
        assert!((changes[0].own_change() - 0.25).abs() < 1e-9);
        assert_eq!(changes.last().unwrap().frame, "g");
        assert!((changes.last().unwrap().own_change() + 0.25).abs() < 1e-9);
    }

    /// If this fails, a slower function is hidden by the helper that everything calls.
    #[test]
    fn who_calls_a_helper_more_is_named_before_the_helper() {
        let before = stacks("t;main;f;copy 30\nt;main;g;copy 70");
        let changes = changes(&before, &stacks("t;main;f;copy 80\nt;main;g;copy 20"));
        assert_eq!(changes[0].frame, "f");
        assert_eq!(changes.last().unwrap().frame, "g");
    }

    /// If this fails, the name of a server's function adds lines or frames, or controls the terminal.
    #[test]
    fn a_name_is_one_frame_on_one_line() {
        assert_eq!(clean_frame("a;b\nc\u{1b}[2J 7"), "a:b\\u{a}c\\u{1b}[2J 7");
        assert_eq!(clean_frame("  "), "[unknown]");
        assert_eq!(clean_frame(&"x".repeat(5_000)).chars().count(), FRAME_LONGEST);
        let mut kept = Stacks::default();
        kept.add(["t", &clean_frame("operator new [](unsigned long) 12")], 5);
        let text: String = kept.lines().collect();
        assert_eq!(stacks(&text), kept);
    }

    #[test]
    fn a_wait_is_told_by_the_programs_own_frame() {
        let kept = stacks("t;main;lock;futex_[k];schedule_[k] 5\nt;schedule_[k] 1").outside_kernel();
        assert_eq!(kept, stacks("t;main;lock 5\nt;schedule_[k] 1"));
    }

    #[test]
    fn what_comes_to_nothing_is_left_out() {
        assert_eq!(stacks("a;b 1499\na;c 400").scaled_down(1000), stacks("a;b 1"));
    }
}
