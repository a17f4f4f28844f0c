//! The hot path does not allocate.

use std::sync::Arc;

use testkit::{LineProtocol, Piece, Script, Service, SimReactor, Text, Turns};

use super::{START, closed, ms};
use crate::controls::Controls;
use crate::plan::RunPlan;
use crate::recorder::{Boundaries, Recorder};
use crate::worker::{Job, Stage, Worker};

/// Allocations in a whole simulated run, including its beginning and end.
fn allocations(requests: u64, pipeline: usize, script: &Script) -> u64 {
    // One interval: handing over is not part of the hot path.
    let plan = RunPlan { window: None, interval: ms(1_000_000), ..closed(4, 12, requests) };
    let (parts_in, _parts) = std::sync::mpsc::sync_channel(1);
    let (_emptied_in, emptied) = std::sync::mpsc::sync_channel(1);
    let recorder = Recorder::new(0, Boundaries::new(plan.interval, None), None, parts_in, emptied);
    let mut reactor = SimReactor::new(script.clone(), START);
    let controls = Controls::new(Arc::default());
    let protocol = LineProtocol::new(pipeline);
    let job = Job { plan: &plan, protocol: &protocol, controls: &controls, start: START, stage: Stage::Run };
    let mut worker = Worker::new(&mut reactor, job, plan.share(0), recorder);
    allocation_counter::measure(|| assert!(worker.run_stage().is_ok())).count_total
}

/// If this fails, the instrument measures its own allocator. Both runs have the same warm-up, to numbers of five
/// digits, so the difference is the cost of 10 000 requests.
#[test]
fn ten_thousand_requests_more_allocate_nothing_more() {
    let script = Script::answering_after(ms(1));
    for pipeline in [1, 3] {
        let count = |requests| allocations(requests, pipeline, &script);
        assert_eq!(count(30_000), count(20_000), "pipeline of {pipeline}");
    }
}

/// Responses that are longer than what a connection may read in one turn.
#[test]
fn long_answers_allocate_nothing_either() {
    let long = "long ".repeat(200_000).leak();
    let text = vec![Text::of("ok "), Text::Number, Text::of(" "), Text::of(long), Text::of("\n")];
    let script = Script::serving(Turns::always(Service::pieces(ms(1), vec![Piece { after: ms(1), text }])));
    assert_eq!(allocations(99, 1, &script), allocations(49, 1, &script));
}
