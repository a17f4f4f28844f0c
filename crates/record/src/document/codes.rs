//! How often the server sent each of its codes: three-digit statuses as numbers, as readers of 1.0 expect them, other
//! codes as text. Also samples of responses that failed a check.

use intervals::{Interval, Reason};
use serde::{Deserialize, Serialize};
use units::Code;

/// How many responses carried one three-digit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct CodeCount {
    pub code: u16,
    pub count: u64,
}

/// How many responses carried one code that is no three-digit status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct TextCodeCount {
    /// 1 to 15 printable ASCII characters: `40001/1213`, `WRONGTYPE`.
    pub code: String,
    pub count: u64,
}

impl CodeCount {
    /// The three-digit statuses of `interval`, in the order of their first occurrence.
    pub fn of(interval: &Interval) -> Vec<CodeCount> {
        let counted = |&(code, count): &(Code, u64)| Some(CodeCount { code: code.as_status()?, count });
        interval.codes().iter().filter_map(counted).collect()
    }
}

impl TextCodeCount {
    /// The codes of `interval` that are not three-digit statuses, in the order of their first occurrence.
    pub fn of(interval: &Interval) -> Vec<TextCodeCount> {
        let texts = interval.codes().iter().filter(|(code, _)| code.as_status().is_none());
        texts.map(|&(code, count)| TextCodeCount { code: code.to_string(), count }).collect()
    }
}

/// A response that failed a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct CheckSample {
    /// The check and what it expected: one of the reasons.
    pub check: String,
    /// What came instead, or its beginning.
    pub got: String,
}

impl CheckSample {
    /// The samples of `interval`, in the order in which they were recorded.
    pub fn of(interval: &Interval) -> Vec<CheckSample> {
        let sample = |(check, got): &(Reason, String)| CheckSample {
            check: check.clone().into_owned(),
            got: got.clone(),
        };
        interval.check_samples().iter().map(sample).collect()
    }
}
