//! Whether the servers of a run can be reached at all.

/// What the attempts to open connections have shown by the end of an interval. When workers are merged, the highest
/// value wins: one worker that gets responses outweighs all that fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Reach {
    /// Nothing was attempted, or not for long enough to decide.
    #[default]
    Unknown,
    /// No response has come since the run began, and for about a second every attempt to open a connection has failed.
    Failing,
    /// A response has come, a connection waits for one, or the first attempt at a server has not ended yet.
    Possible,
}
