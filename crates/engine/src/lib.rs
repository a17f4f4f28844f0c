//! The load engine: a schedule and a protocol in, timelines of requests out.
//!
//! There is one worker per core; each owns its reactor, its share of the connections and of the schedule, and its
//! histograms. Nothing is shared while requests are in progress. Workers hand over what they measured once per
//! interval; [`run`] merges the intervals and passes them to a [`Listener`].
//!
//! The engine knows no protocol, prints nothing, and writes no file.

mod collector;
mod connection;
mod controls;
mod cpu_pinning;
mod demand;
mod journeys;
mod keeping;
mod leases;
mod pacer;
mod plan;
mod pool;
mod recorder;
mod run;
mod tempo;
#[cfg(test)]
mod tests;
mod timers;
mod worker;

pub use controls::{Change, Controls, Order};
pub use keeping::{Batch, Keep, Keeping};
pub use pacer::Pace;
pub use plan::{Load, Peer, Place, PoolPlan, RunPlan, Share};
pub use run::{Finished, Listener, RunError, StampFacts, Started, run};
pub use tempo::Tempo;
pub use worker::{JOURNEYS_APART, KINDS_APART};
