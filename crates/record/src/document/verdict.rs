//! The judgement of a run: whether to trust it, and whether it met its thresholds.
//!
//! This is the wire format of the verdict and of thresholds. `audit` decides the verdict, and `findings` the
//! thresholds.

use serde::{Deserialize, Serialize};

use crate::check::Check;

/// Whether to believe the run, with reasons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Verdict {
    pub word: VerdictWord,
    /// Everything that was checked and did not hold, the gravest first.
    pub findings: Vec<Finding>,
    /// What could not be checked: it has not held, and not failed either. Left out where there is nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unchecked: Vec<Unchecked>,
}

/// One check that was not made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Unchecked {
    /// Its name, as of a finding.
    pub check: Check,
    pub reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum VerdictWord {
    /// Of a finding: noted, and no reason to doubt the run.
    Valid,
    /// Usable with care: the findings say where.
    Degraded,
    /// Not to be used.
    Invalid,
}

/// One check that did not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Finding {
    /// Its name, stable across versions.
    pub check: Check,
    /// What this finding alone makes of the run.
    pub makes: VerdictWord,
    /// What was measured, with its figure.
    pub measured: String,
    /// The limit it passed.
    pub limit: String,
    /// What to do about it.
    pub advice: String,
}

/// A condition under which the run was to fail, and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Threshold {
    /// As it was given: a metric, an operator and a value.
    pub fail_if: String,
    /// Absent where there is no figure at all.
    pub measured: Option<Reading>,
    pub limit: Quantity,
    pub result: ThresholdResult,
    /// Why it could not be decided.
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ThresholdResult {
    /// The condition does not hold.
    Met,
    /// The condition holds.
    Missed,
    /// The sample cannot tell: counts as missed.
    Undecided,
}

/// A figure of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    Known(Quantity),
    /// It falls among requests that were never answered: all that is known is that it lies above this.
    Above(Quantity),
}

/// A number with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    Ns(u64),
    PerS(f64),
    /// Between 0 and 1.
    Share(f64),
    Count(u64),
}
