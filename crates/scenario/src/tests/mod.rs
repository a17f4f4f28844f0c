//! Tests of whole files.

mod formats;
mod journeys;
mod mistakes;
mod pgbench;
mod reading;
mod transactions;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use crate::{Draft, Mistake, Scenario, Surroundings};

/// Compiles a scenario from its text, with the files that it names.
pub(super) fn compile(text: &str, sets: &[&str], files: &[(&str, &str)]) -> Result<Scenario, Mistake> {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let files: BTreeMap<&str, &str> = files.iter().copied().collect();
    let read = |path: &Path| {
        let found = path.to_str().and_then(|path| files.get(path));
        found.map(|text| text.as_bytes().to_vec()).ok_or_else(|| io::ErrorKind::NotFound.into())
    };
    let environment = |name: &str| (name == "TOKEN").then(|| "from-outside".to_owned());
    let draft = Draft::read("s.toml", text, &sets)?;
    draft.settings()?;
    draft.compile(&Surroundings { seed: 7, read: &read, environment: &environment, now: 1_704_067_200 })
}

/// Adds the minimum around `text` that makes it a scenario.
pub(super) fn with_target(text: &str) -> String {
    format!("[targets.api]\nurl = \"http://127.0.0.1:8080\"\n{text}")
}
