//! The view of what `profile --focus` and `--highlight` ask: a frame's share, its callers and its callees.

use record::observation::profile::{Picture, Spin};
use record::stacks::FrameWeight;
use record::stacks::focus::{Focus, Neighbor};
use stats::Sampled;

use crate::profile_view::{share_cell, spins};
use crate::view::{Block, Cell, Phrase, Role, Row, Section, Subject, Table, Value, View, phrase};

/// Maximum number of rows per table.
const ROWS: usize = 10;

/// The frames that a question found in a picture.
#[derive(Debug, Clone, Copy)]
pub struct FoundFrames<'a> {
    pub picture: Picture,
    /// The frame as it was asked for.
    pub question: &'a str,
    pub focus: &'a Focus,
}

/// The answers to questions about one profile.
#[derive(Debug, Clone, Default)]
pub struct FrameAnswers<'a> {
    pub focused: Vec<FoundFrames<'a>>,
    pub highlighted: Vec<FoundFrames<'a>>,
    /// What spins on a CPU.
    pub spins: &'a [Spin],
    /// The samples of which they are a part.
    pub samples: u64,
}

/// The view of the answers; pictures without a match are left out.
pub fn focus_view(answers: &FrameAnswers<'_>) -> View {
    let mut view = View::new(Subject::Profile);
    let highlights: Vec<_> = answers.highlighted.iter().filter(|found| found.focus.total > 0).collect();
    if !highlights.is_empty() {
        let lines = highlights.iter().map(|found| Block::line(Role::Line, highlight(found)));
        view.sections.push(Section::new("highlight", lines.collect()));
    }
    for found in answers.focused.iter().filter(|found| found.focus.total > 0) {
        let id = match found.picture {
            Picture::OnCpu => "focus_on_cpu",
            Picture::OffCpu => "focus_off_cpu",
            Picture::RunQueue => "focus_run_queue",
        };
        view.sections.push(Section::new(id, focus(found)));
    }
    let spins = spins(answers.spins, answers.samples);
    if !spins.is_empty() {
        view.sections.push(Section::new("spins", spins));
    }
    view
}

fn highlight(found: &FoundFrames<'_>) -> Phrase {
    let share = phrase!(
        "{share} in {frames}: coloured",
        share = found.of(found.focus.total, found.focus.whole),
        frames = Value::items(found.focus.matched.len() as u64, "frame")
    );
    Phrase::new(place(found.picture)).then(", `", Phrase::text(found.question)).then("`: ", share)
}

fn place(picture: Picture) -> &'static str {
    match picture {
        Picture::OnCpu => "on CPU",
        Picture::OffCpu => "asleep",
        Picture::RunQueue => "waiting for a CPU",
    }
}

fn focus(found: &FoundFrames<'_>) -> Vec<Block> {
    let focus = found.focus;
    let shares = phrase!(
        "{total} with all it calls, {own} in itself",
        total = found.of(focus.total, focus.whole),
        own = found.of(focus.own, focus.whole)
    );
    let title =
        Phrase::new(place(found.picture)).then(", `", Phrase::text(found.question)).then("`: ", shares);
    let mut blocks = vec![Block::line(Role::Title, title)];
    let columns = [
        ("own", "own", "share", "of the time, in the frame itself"),
        ("total", "total", "share", "of the time, with all that it calls"),
        ("frame", "frame", "text", "a frame that matches"),
    ];
    let row = |frame: &FrameWeight| {
        let shares = [frame.own, frame.total].map(|weight| found.of(weight, focus.whole));
        Row::new(shares.into_iter().chain([frame.frame.as_str().into()]).collect())
    };
    let rows = focus.matched.iter().take(ROWS).map(row).collect();
    blocks.push(Block::Table(Table::new("matches", &columns, rows)));
    blocks.push(neighbors(found, CALLERS, &focus.callers));
    if !focus.callees.is_empty() {
        blocks.push(neighbors(found, CALLEES, &focus.callees));
    }
    blocks
}

/// A table of neighbors: its ID, the title of the frames, and what they are.
type Neighborhood = (&'static str, &'static str, &'static str);

const CALLERS: Neighborhood = ("callers", "caller", "a frame that leads to it");
const CALLEES: Neighborhood = ("callees", "callee", "a frame that it calls");

fn neighbors(found: &FoundFrames<'_>, (id, title, meaning): Neighborhood, all: &[Neighbor]) -> Block {
    let columns = [
        ("of_focus", "of it", "share", "of the time with the frame"),
        ("of_all", "of all", "share", "of all time"),
        ("frame", title, "text", meaning),
    ];
    let row = |neighbor: &Neighbor| {
        Row::new(vec![
            found.of(neighbor.weight, found.focus.total),
            Value::Share(neighbor.weight as f64 / found.focus.whole.max(1) as f64).into(),
            neighbor.frame.as_str().into(),
        ])
    };
    Block::Table(Table::new(id, &columns, all.iter().take(ROWS).map(row).collect()))
}

impl FoundFrames<'_> {
    /// The share of the picture's weight in stacks with a match, 0 to 1.
    pub fn share(&self) -> f64 {
        self.focus.total as f64 / self.focus.whole.max(1) as f64
    }

    /// A share of samples with its interval, or one of measured time.
    fn of(&self, part: u64, whole: u64) -> Cell {
        match self.picture {
            Picture::OnCpu => share_cell(Sampled { hits: part, trials: whole }),
            Picture::OffCpu | Picture::RunQueue => Value::Share(part as f64 / whole.max(1) as f64).into(),
        }
    }
}
