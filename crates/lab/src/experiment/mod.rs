//! Experiment files: what they say, the plan that is made of them, and the runs.
//!
//! Starts servers and loads, and reads the records that they leave; links no engine, prints nothing, judges nothing.

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

/// The JSON Schema of experiment files as text, for editors.
pub const SCHEMA: &str = include_str!("../../../../formats/lab.schema.json");

/// The experiment to begin with, which runs against the built-in server.
pub const START: &str = include_str!("../../../../lab/experiments/start.toml");
