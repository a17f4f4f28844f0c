//! What `cpu` keeps: CPU time between two instants, over the whole record.
//!
//! Wire types only; the verb fills them, `report` and `explain` read them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What `cpu` saw, over the whole record.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CpuResults {}

/// What `cpu` says of one interval, beside the frame of the line.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CpuLine {}
