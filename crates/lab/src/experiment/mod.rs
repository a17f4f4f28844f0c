//! Experiment files: what they say, the plan that is made of them, and the runs.
//!
//! Starts servers and loads, and reads the records that they leave; links no engine, prints nothing, judges nothing.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use anyhow::{Context, ensure};

mod against;
mod documents;
mod export;
mod factors;
mod forecast;
mod format;
mod life;
mod load;
mod order;
mod pending;
mod place;
mod plan_text;
mod probe;
mod progress;
mod read;
mod rerun;
mod results;
#[cfg(test)]
mod schema;
mod selection;
mod session;
mod spec;
mod status;
mod store;
mod template;
#[cfg(test)]
mod tests;
mod values;

pub use self::export::{Exported, export};
pub use against::results_against;
pub use forecast::{Forecast, ForecastRun};
pub use order::PlannedRun;
pub use rerun::{Reruns, set_aside_invalid};
pub use results::{Results, results};
pub use selection::{Choice, Selection};
pub use session::{SessionEnd, carry_on, create};
pub use spec::{Experiment, ExperimentFactor, Level};
pub use status::{Status, status};

/// The largest experiment file.
const LONGEST: u64 = 1 << 20;

impl Experiment {
    /// Reads an experiment file: what it means, and its text.
    ///
    /// # Errors
    ///
    /// One line: the file cannot be read, or its first mistake with its place.
    pub fn read_file(file: &Path) -> anyhow::Result<(Experiment, String)> {
        let shown = file.display();
        let length = fs::metadata(file).with_context(|| format!("cannot read `{shown}`"))?.len();
        ensure!(length <= LONGEST, "`{shown}` is no experiment: it has more than {LONGEST} bytes");
        let text = fs::read_to_string(file).with_context(|| format!("cannot read `{shown}`"))?;
        let experiment = Experiment::read(&shown.to_string(), &text).map_err(anyhow::Error::msg)?;
        Ok((experiment, text))
    }
}

/// Writes [`START`] to a new file; returns what to tell the user.
///
/// # Errors
///
/// One line, also if the file exists.
pub fn init(file: &Path) -> anyhow::Result<String> {
    let shown = file.display();
    let mut created = File::create_new(file)
        .with_context(|| format!("cannot create the experiment `{shown}`; give the name of a new file"))?;
    // The text mentions its own file name.
    let text = START.replace("start.toml", &file.file_name().unwrap_or_default().to_string_lossy());
    created.write_all(text.as_bytes()).with_context(|| format!("cannot write `{shown}`"))?;
    let shown = units::escape_text(&shown.to_string());
    Ok(format!("Wrote {shown}. Next: `parallax lab plan {shown}`, then `parallax lab run {shown}`"))
}

/// The JSON Schema of experiment files as text, for editors.
pub const SCHEMA: &str = include_str!("../../../../formats/lab.schema.json");

/// The experiment to begin with, which runs against the built-in server.
pub const START: &str = include_str!("../../../../lab/experiments/start.toml");
