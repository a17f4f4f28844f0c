//! The effective value of every option, including defaults: a default that mattered must be in the record.

use std::collections::BTreeMap;
use std::path::Path;

use record::document::{EffectiveOption, OptionSource};
use scenario::workloads::Size;
use units::Nanos;

use crate::options::OPTIONS;
use crate::prepare::PreparedRun;
use crate::{load, secrets};

/// Effective options by name.
pub type EffectiveOptions = BTreeMap<String, EffectiveOption>;

/// All options of a run that is kept in `folder`.
pub fn effective(prepared: &PreparedRun, folder: &Path) -> EffectiveOptions {
    let mut options: EffectiveOptions = OPTIONS
        .iter()
        .map(|option| {
            let value = match (prepared.given.0.get(option.name), option.default) {
                (Some(given), _) => {
                    EffectiveOption { value: shown(option.name, &given.texts), source: given.source }
                }
                // Every virtual user has its own connection.
                (None, _) if option.name == "connections" && prepared.given.has("users") => EffectiveOption {
                    value: prepared.plan.pool.connections.to_string(),
                    source: OptionSource::Derived,
                },
                (None, Some(default)) => {
                    EffectiveOption { value: default.to_owned(), source: OptionSource::Default }
                }
                (None, None) => EffectiveOption {
                    value: derived(option.name, prepared, folder),
                    source: OptionSource::Derived,
                },
            };
            (option.name.to_owned(), value)
        })
        .collect();
    options.extend(prepared.values.clone());
    options
}

/// The value as the record keeps it: without credentials, several values as a JSON list.
fn shown(name: &str, texts: &[String]) -> String {
    let kept: Vec<String> = texts.iter().map(|text| secrets::option(name, text)).collect();
    match kept.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        // No option that may be repeated takes a value that begins with a bracket, so this is unambiguous.
        several => serde_json::to_string(several).expect("a list of texts is JSON"),
    }
}

/// The derived value of an option that was not given.
fn derived(name: &str, prepared: &PreparedRun, folder: &Path) -> String {
    let plan = &prepared.plan;
    let is_open = plan.load.is_open();
    let no_rate = if is_open { "none: the schedule sets it" } else { "none: closed loop" };
    let count = |wanted: bool, otherwise: &str| {
        if wanted { plan.pool.users.to_string() } else { otherwise.to_owned() }
    };
    match name {
        "url" => prepared.url.clone(),
        "users" => count(!is_open, "none: open loop"),
        "max-in-flight" => count(is_open, "none: closed loop"),
        "workers" => plan.workers.to_string(),
        "rate" => no_rate.to_owned(),
        "arrivals" if prepared.given.has("rate") => "even".to_owned(),
        "arrivals" => no_rate.to_owned(),
        "seed" => match load::effective_seed(plan).or(prepared.seed) {
            Some(seed) => seed.to_string(),
            None => "none: nothing is random".to_owned(),
        },
        "speed" if prepared.given.has("replay") => "1x".to_owned(),
        "replay-methods" if prepared.replay.is_some() => crate::replay::METHODS.to_owned(),
        "duration" => plan.window.map_or("no limit".to_owned(), Nanos::written),
        "drain" => plan.drain.map_or("off".to_owned(), Nanos::written),
        "count" => prepared.data_limit.map_or("no limit".to_owned(), |count| count.to_string()),
        "requests" => "none: only sums are kept".to_owned(),
        "method" => prepared.method.clone(),
        "expect-status" => "below 400".to_owned(),
        "tables" | "rows" => match prepared.given.first("workload").map(Size::default_of) {
            Some(size) if name == "tables" => size.tables.to_string(),
            Some(size) => size.rows.to_string(),
            None => "none".to_owned(),
        },
        "output" if prepared.spec.output.no_record => "none".to_owned(),
        "output" => folder.to_string_lossy().into_owned(),
        _ => "none".to_owned(),
    }
}
