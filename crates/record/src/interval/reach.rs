//! Whether the servers of a run can be reached at all.

/// What a client's attempts to open connections have come to by the end of an interval. Of several workers the highest
/// holds: one that gets responses outweighs all that fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Reach {
    /// Nothing was attempted, or not for long enough to say.
    #[default]
    Unknown,
    /// No response has come since the run began, and for about a second every attempt to open a connection has failed.
    Failing,
    /// A response has come, a connection waits for one, or the first attempt at a server has not ended.
    Possible,
}
