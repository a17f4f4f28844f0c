//! What `disturb` keeps: which disturbances were made, and when.
//!
//! Wire types only; the verb fills them, `report` and `explain` read them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What `disturb` saw, over the whole record.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DisturbResults {}

/// What `disturb` says of one interval, beside the frame of the line.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DisturbLine {}
