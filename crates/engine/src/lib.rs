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
mod permits;
mod plan;
mod pool;
mod recorder;
mod run;
mod team;
mod tempo;
#[cfg(test)]
mod tests;
mod timers;
mod worker;

pub use controls::{Change, Controls, Order};
pub use keeping::{Batch, Keep, Keeping};
pub use pacer::Pace;
pub use plan::{Load, Peer, Place, PoolPlan, RunPlan, Share};
pub use run::{Finished, Listener, Prepared, RunError, StampFacts, Started, WarmUp, run};
pub use tempo::Tempo;
pub use worker::{IdleConnections, JOURNEYS_APART, KINDS_APART};
