//! What the records of the observing verbs share: the first document, and values derived for options.

use std::collections::BTreeMap;

use record::document::{EffectiveOption, OptionSource};
use record::observation::{Observation, ObservationBody};

/// The document of an observation that starts now; `started` is the time on the monotonic clock.
pub fn opening(
    body: ObservationBody,
    options: BTreeMap<String, EffectiveOption>,
    started: units::Nanos,
) -> Observation {
    // The wall clock is read later than the monotonic one that it dates.
    let wall = clock::wall().saturating_sub(clock::now().saturating_sub(started));
    let mut observation = Observation::new(env!("CARGO_PKG_VERSION"), body);
    observation.command = std::env::args_os().map(|text| text.to_string_lossy().into_owned()).collect();
    observation.options = options;
    observation.time.started = run::date::timestamp(wall).to_string();
    observation.time.started_monotonic_ns = started.0;
    observation.host = run::conduct::host_facts();
    observation
}

/// Sets the value of an option that was derived because it was not given.
pub fn derive(options: &mut BTreeMap<String, EffectiveOption>, name: &str, value: String) {
    if let Some(option) = options.get_mut(name).filter(|option| option.source != OptionSource::Given) {
        *option = EffectiveOption { value, source: OptionSource::Derived };
    }
}
