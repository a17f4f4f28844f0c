//! What reading requests, statements or a scenario gives, whatever the protocol: what `prepare` makes a run of.

use std::collections::BTreeMap;

use engine::Peer;
use protocols::DriveProtocol;
use record::document::{EffectiveOption, ReplayFacts};
use schedule::Recorded;

use crate::options::GivenOptions;
use crate::spec::RunSpec;

/// The common result of reading requests or a scenario.
pub struct Parts {
    pub spec: RunSpec,
    pub given: GivenOptions,
    pub protocol: DriveProtocol,
    pub peers: Vec<Peer>,
    /// As in [`PreparedRun`](crate::prepare::PreparedRun), as are the others of the same name.
    pub depth: u64,
    pub url: String,
    pub method: String,
    pub names: Vec<String>,
    pub values: BTreeMap<String, EffectiveOption>,
    pub seed: Option<u64>,
    pub data_limit: Option<u64>,
    /// The times of a recording whose requests are sent, and which part of it that is.
    pub recorded: Option<Recorded>,
    pub replay: Option<ReplayFacts>,
}
