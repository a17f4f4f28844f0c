//! The view of disturbances: what was disturbed, and when.

use record::Observed;
use record::observation::disturb::DisturbResults;

use crate::jvm_view::events_table;
use crate::view::{Block, Role, Section, Subject, Value, View, phrase};

/// The view of a record of `disturb`.
pub fn disturb_view(observed: &Observed, results: &DisturbResults) -> View {
    let mut view = View::new(Subject::Disturb);
    let text = phrase!(
        "{what}: {done} of {episodes} done",
        what = results.what.as_str(),
        done = Value::Id(results.episodes.saturating_sub(results.skipped)),
        episodes = Value::Id(results.episodes)
    );
    let events = events_table("disturbances", observed.events.iter());
    let blocks = vec![Block::line(Role::Title, text), Block::Table(events)];
    view.sections.push(Section::new("disturbances", blocks));
    view
}
