//! The truth as JSON. Times are nanoseconds; instants are on this host's monotonic clock.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use serde::Serialize;

use crate::arrivals::Summary;
use crate::capacity::Admissions;
use crate::distribution::Distribution;
use crate::fault::Fault;
use crate::freeze::FreezeRecord;
use crate::route::RouteKind;
use crate::tally::Tally;
use crate::truth::{Connections, Truth};

pub(crate) fn render(truth: &Truth, tally: &Tally) -> String {
    let document = Document {
        schema_version: 1,
        started_ns: truth.started().0,
        since_ns: truth.since().0,
        taken_ns: truth.taken().0,
        thread_count: truth.thread_count(),
        connections: truth.connections(),
        requests: Requests {
            read: truth.requests(),
            carried: tally.carried,
            answered: truth.responses(),
            ended_by_fault: tally.ended_by_fault,
            abandoned: tally.abandoned,
            in_flight: tally.in_flight,
            unstamped: tally.unstamped,
            pipelined: tally.pipelined,
        },
        requests_by_route: RouteKind::ALL
            .iter()
            .map(|kind| (kind.name(), tally.requests[kind.index()]))
            .collect(),
        answers_by_status: (0u16..)
            .zip(&tally.responses)
            .filter(|(_, count)| **count > 0)
            .map(|(status, &count)| (status, count))
            .collect(),
        refusals_by_status: &tally.refusals,
        faults: Fault::ALL.iter().map(|fault| (fault.name(), tally.faults[fault.index()])).collect(),
        capacity: tally.capacity,
        read_bytes: tally.bytes_read,
        written_bytes: tally.bytes_written,
        clock_steps: tally.clock_steps,
        freezes: tally.freezes.iter().map(FreezeEntry::from).collect(),
        freezes_unlisted: tally.freezes_unlisted,
        arrivals: tally.arrivals.summary(),
        handed: Durations::from(truth.handed()),
        response: Durations::from(truth.response()),
        lateness: Durations::from(truth.lateness()),
    };
    let mut text =
        serde_json::to_string_pretty(&document).expect("names, numbers and lists always have a JSON form");
    text.push('\n');
    text
}

#[derive(Serialize)]
struct Document<'a> {
    schema_version: u32,
    started_ns: u64,
    since_ns: u64,
    taken_ns: u64,
    thread_count: usize,
    connections: Connections,
    requests: Requests,
    requests_by_route: BTreeMap<&'static str, u64>,
    answers_by_status: BTreeMap<u16, u64>,
    refusals_by_status: &'a BTreeMap<u16, u64>,
    /// Every name, with 0 for those that never occurred: a reader need not know the list.
    faults: BTreeMap<&'static str, u64>,
    capacity: Admissions,
    read_bytes: u64,
    written_bytes: u64,
    clock_steps: u64,
    freezes: Vec<FreezeEntry>,
    freezes_unlisted: u64,
    /// `null` unless they were kept.
    arrivals: Option<Summary>,
    handed: Durations,
    response: Durations,
    lateness: Durations,
}

/// `carried + read = answered + ended_by_fault + abandoned + in_flight`.
#[derive(Serialize)]
struct Requests {
    read: u64,
    carried: u64,
    answered: u64,
    ended_by_fault: u64,
    abandoned: u64,
    in_flight: u64,
    unstamped: u64,
    pipelined: u64,
}

#[derive(Serialize)]
struct FreezeEntry {
    index: Option<u64>,
    thread: usize,
    planned_begin_ns: u64,
    planned_end_ns: u64,
    begin_ns: u64,
    end_ns: u64,
}

impl From<&FreezeRecord> for FreezeEntry {
    fn from(record: &FreezeRecord) -> FreezeEntry {
        FreezeEntry {
            index: record.index,
            thread: record.thread,
            planned_begin_ns: record.planned_begin.0,
            planned_end_ns: record.planned_end.0,
            begin_ns: record.begin.0,
            end_ns: record.end.0,
        }
    }
}

/// One distribution. `null` where nothing was recorded: absent is not zero.
#[derive(Serialize)]
struct Durations {
    count: u64,
    sum_ns: u128,
    min_ns: Option<u64>,
    mean_ns: Option<u64>,
    max_ns: Option<u64>,
    p50_ns: Option<u64>,
    p90_ns: Option<u64>,
    p99_ns: Option<u64>,
    p99_9_ns: Option<u64>,
    p99_99_ns: Option<u64>,
    /// The number of durations above an hour; in `histogram` they count as an hour.
    out_of_range: u64,
    /// HdrHistogram V2, compressed, base64; values in nanoseconds.
    histogram: String,
}

impl From<&Distribution> for Durations {
    fn from(from: &Distribution) -> Durations {
        let quantile = |share| from.quantile(share).map(|value| value.0);
        Durations {
            count: from.count(),
            sum_ns: from.durations().sum_ns(),
            min_ns: from.min().map(|value| value.0),
            mean_ns: from.mean().map(|value| value.0),
            max_ns: from.max().map(|value| value.0),
            p50_ns: quantile(50_000),
            p90_ns: quantile(90_000),
            p99_ns: quantile(99_000),
            p99_9_ns: quantile(99_900),
            p99_99_ns: quantile(99_990),
            out_of_range: from.durations().out_of_range(),
            histogram: encoded(from),
        }
    }
}

fn encoded(distribution: &Distribution) -> String {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(distribution.durations().histogram(), &mut bytes)
        .expect("a histogram within its own bounds serializes into memory");
    STANDARD.encode(bytes)
}
