//! The view of what changed between two profiles. Of samples, only changes that are larger than chance are shown.

use record::observation::profile::Picture;
use record::stacks::FrameChange;
use stats::{Bounds, Sampled};

use crate::view::{Block, Cell, Phrase, Role, Row, Section, Subject, Table, Value, View, phrase};

/// Maximum number of frames that grew, and of those that shrank.
const GROWN: usize = 10;
const SHRUNK: usize = 5;
/// Smaller changes of a time that was measured and not sampled are not worth a row.
const LEAST_CHANGE: f64 = 0.005;
/// Frames that are smaller than this in both profiles are not compared: each comparison makes the intervals wider.
const LEAST_SHARE: f64 = 0.005;

/// What changed between two profiles, the frames that grew most first.
#[derive(Debug, Clone, Copy)]
pub struct ProfileChange<'a> {
    pub picture: Picture,
    pub changes: &'a [FrameChange],
    /// How many samples each profile has; `None` where time was measured.
    pub samples: Option<Samples>,
}

/// The sizes of two samples.
#[derive(Debug, Clone, Copy)]
pub struct Samples {
    pub before: u64,
    pub after: u64,
}

/// A change that is shown.
struct Claim<'a> {
    change: &'a FrameChange,
    total: Cell,
    own: Cell,
}

/// The frames that grew and those that shrank.
pub fn profile_change_view(change: &ProfileChange<'_>) -> View {
    let compared: Vec<_> =
        change.changes.iter().filter(|c| c.total_before.max(c.total_after) >= LEAST_SHARE).collect();
    let claims: Vec<_> =
        compared.iter().filter_map(|frame| claim(frame, change.samples, compared.len())).collect();
    let (grown, shrunk): (Vec<_>, Vec<_>) =
        claims.iter().partition(|claim: &&Claim<'_>| claim.change.change() > 0.0);
    let shown = grown.iter().take(GROWN).chain(shrunk.iter().skip(shrunk.len().saturating_sub(SHRUNK)));
    let rows: Vec<_> = shown.map(|claim| row(claim)).collect();
    let title = match change.picture {
        Picture::OnCpu => "on CPU",
        Picture::OffCpu => "asleep",
        Picture::RunQueue => "waiting for a CPU",
    };
    let title =
        Phrase::new(title).then(": a frame's share of the whole, with all it calls", Phrase::default());
    let mut blocks = vec![Block::line(Role::Title, title)];
    let frames = Value::items(compared.len() as u64, "frame");
    if rows.is_empty() {
        blocks.push(Block::line(Role::Line, nothing(change.samples, frames)));
    } else {
        let columns = [
            ("before", "before", "share", "of the time, with all that it calls"),
            ("after", "after", "share", "likewise, in the second profile"),
            ("change", "change", "share_change", "of that share"),
            ("own_change", "its own", "share_change", "of the share of the frame itself"),
            ("frame", "frame", "text", "the function"),
        ];
        blocks.push(Block::Table(Table::new("frame_changes", &columns, rows)));
        if change.samples.is_some() {
            let text = phrase!(
                "intervals of 95 % for {frames} together, of sampling alone: how much two runs of the same \
                 program differ, only more profiles show",
                frames = frames
            );
            blocks.push(Block::line(Role::Line, text));
        }
    }
    let mut view = View::new(Subject::ProfileChange);
    view.sections.push(Section::new("changes", blocks));
    view
}

/// A change worth showing: of samples, one whose interval excludes zero.
fn claim(change: &FrameChange, samples: Option<Samples>, comparisons: usize) -> Option<Claim<'_>> {
    let Some(samples) = samples else {
        let figure = |change: f64| Cell::from(Value::ShareChange(change));
        let (total, own) = (figure(change.change()), figure(change.own_change()));
        return (change.change().abs() >= LEAST_CHANGE).then_some(Claim { change, total, own });
    };
    let of = |share: f64, trials: u64| Sampled { hits: (share * trials as f64).round() as u64, trials };
    let grew = |before: f64, after: f64| {
        of(after, samples.after).change_from(of(before, samples.before), comparisons)
    };
    let (by, bounds) = grew(change.total_before, change.total_after)?;
    let (own_by, own_bounds) = grew(change.own_before, change.own_after)?;
    let (total, own) = (change_cell(by, bounds), change_cell(own_by, own_bounds));
    bounds.excludes_zero().then_some(Claim { change, total, own })
}

fn change_cell(by: f64, bounds: Bounds) -> Cell {
    Cell::Interval {
        value: Value::ShareChange(by),
        low: Value::ShareChange(bounds.low),
        high: Some(Value::ShareChange(bounds.high)),
    }
}

fn row(claim: &Claim<'_>) -> Row {
    let change = claim.change;
    Row::new(vec![
        Value::Share(change.total_before).into(),
        Value::Share(change.total_after).into(),
        claim.total.clone(),
        claim.own.clone(),
        change.frame.as_str().into(),
    ])
}

fn nothing(samples: Option<Samples>, frames: Value) -> Phrase {
    match samples {
        Some(Samples { before, after }) => phrase!(
            "no frame's share changed by more than chance: {frames} compared in {before} and {after} samples",
            frames = frames,
            before = Value::Count(before),
            after = Value::Count(after)
        ),
        None => phrase!("no frame's share changed by {least}", least = Value::Share(LEAST_CHANGE)),
    }
}
