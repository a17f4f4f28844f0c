//! What `hiccup` keeps: how long this host did not run.
//!
//! Wire types only; the verb fills them, `report` and `explain` read them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What `hiccup` saw, over the whole record.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HiccupResults {}

/// What `hiccup` says of one interval, beside the frame of the line.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HiccupLine {}
