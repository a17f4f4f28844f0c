//! Requests for tests.

use export::requests::Row;
use record::{Part, Phase, Protocol, Served, Timeline};
use units::Nanos;

/// A request that arrived, was read and was done at these milliseconds, on the CPU the whole time.
pub(crate) fn served(arrived: u64, read: u64, done: u64) -> Served {
    let [arrived, read, done] = [arrived, read, done].map(Nanos::from_millis);
    let mut parts = [Nanos::ZERO; Part::COUNT];
    parts[Part::OnCpu as usize] = done - read;
    Served {
        connection: 1,
        peer: Some("127.0.0.1:41000".parse().unwrap()),
        local: Some("127.0.0.1:80".parse().unwrap()),
        n: 0,
        arrived: Some(arrived),
        read,
        first_sent: done,
        done,
        parts,
        preempted: Nanos::ZERO,
        preemptions: 0,
        socket_run_queue: Nanos::ZERO,
        socket_throttled: Nanos::ZERO,
        culprit: None,
        contended: Nanos::ZERO,
        socket_contended: Nanos::ZERO,
        waits: None,
        pid: 10,
        tid: 10,
        hand_offs: 0,
        protocol: Protocol::Http1,
        digest: 0,
        session: 0,
        rows: None,
        sleep: None,
        status: Some(200),
        class: None,
        request_bytes: 1,
        statements: 1,
        response_bytes: 1,
    }
}

/// A row due at `intended` whose phases have these lengths.
pub(crate) fn row(intended: u64, lengths: [Option<u64>; Phase::COUNT]) -> Row {
    let mut timeline = Timeline::due(Nanos(intended));
    for (phase, length) in Phase::ALL.into_iter().zip(lengths) {
        match length {
            Some(length) => drop(timeline.end(phase, timeline.last() + Nanos(length))),
            None => timeline.skip(phase),
        }
    }
    Row {
        n: 0,
        target: "GET /".into(),
        connection: Some(0),
        carried: None,
        failure: None,
        code: Some(units::Code::status(200)),
        intended: Nanos(intended),
        response: timeline.response(),
        service: Some(timeline.service()),
        phases: Phase::ALL.map(|phase| timeline.phase(phase)),
    }
}
