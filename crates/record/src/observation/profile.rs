//! What `profile` keeps: where stacks were sampled, and how many.
//!
//! Wire types only; the verb fills them, `report` and `explain` read them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What `profile` saw, over the whole record.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProfileResults {}

/// What `profile` says of one interval, beside the frame of the line.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProfileLine {}
