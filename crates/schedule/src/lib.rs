//! When request *n* is due: pure functions of *n* and a seed, with no clock.
//!
//! There is one global schedule. Workers split it by residue ([`Residue`]), so the union of what they send is exactly
//! the schedule, whatever their number; each walks along its share with a [`Cursor`]. A schedule is a sequence of
//! stages ([`Stage`]), each with a shape of the rate ([`Shape`]) and a process that places requests along it
//! ([`Process`]). Stages and think times are also parsed from text and printed here, for command lines and files.
//! Disturbances have their own schedule ([`Episodes`]).

mod arrivals;
mod cursor;
mod episodes;
mod jitter;
mod poisson;
mod random;
mod replay;
mod residue;
mod sample;
mod shape;
mod shares;
mod stage;
mod stages;
mod text;
mod think;

pub use self::arrivals::Arrivals;
pub use self::cursor::Cursor;
pub use self::episodes::{Episode, Episodes, Timing, TimingError};
pub use self::random::{Stream, next_splitmix64, splitmix64};
pub use self::replay::{Reader, Recorded, ReplayError, Speed};
pub use self::residue::Residue;
pub use self::sample::Sample;
pub use self::shape::Shape;
pub use self::shares::{ShareError, Written, share_out};
pub use self::stage::{Jitter, Process, Stage};
pub use self::stages::{Stages, StagesError};
pub use self::text::{StageError, parse_stage, parse_written};
pub use self::think::{Think, ThinkTimes};
