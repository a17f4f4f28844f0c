//! The hot path takes no memory.

use testkit::{LineProtocol, Script, SimReactor};

use super::{START, closed, ms};
use crate::plan::Plan;
use crate::recorder::{Boundaries, Recorder};
use crate::worker::{Job, Worker};

/// Allocations of a whole simulated run, its beginning and its end included.
fn allocations(requests: u64, pipeline: usize) -> u64 {
    // One interval: handing over is not the hot path.
    let plan = Plan { window: None, interval: ms(1_000_000), ..closed(4, 12, requests) };
    let script = Script::answering_after(ms(1));
    let (parts_in, _parts) = std::sync::mpsc::sync_channel(1);
    let (_emptied_in, emptied) = std::sync::mpsc::sync_channel(1);
    let recorder = Recorder::new(0, Boundaries::new(plan.interval, None), parts_in, emptied);
    let mut reactor = SimReactor::new(script, START);
    let stop = std::sync::atomic::AtomicBool::new(false);
    let protocol = LineProtocol::new(pipeline);
    let job = Job { plan: &plan, protocol: &protocol, stop: &stop, start: START };
    let worker = Worker::new(&mut reactor, job, plan.share(0), recorder);
    allocation_counter::measure(|| assert!(worker.run().is_ok())).count_total
}

/// If this fails, the instrument measures its own allocator. Both runs warm up alike, to numbers of
/// five digits, so the difference is what 10 000 requests cost.
#[test]
fn ten_thousand_requests_more_allocate_nothing_more() {
    for pipeline in [1, 3] {
        assert_eq!(allocations(30_000, pipeline), allocations(20_000, pipeline), "pipeline of {pipeline}");
    }
}
