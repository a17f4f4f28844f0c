//! The results in `run.json`, from the summed histograms of a run.
//!
//! The only place where totals, shares and percentiles are computed, at the end of a run and again whenever its record
//! is read, so that what is printed can always be recomputed.

use std::collections::BTreeMap;

use record::document::{
    ArrivalStamps, CheckSample, CodeCount, Cpu, Distribution, JourneyFacts, JourneyResult, OutcomeCount,
    PhaseResult, ReasonCount, Results, Stamps, Subject, TargetResult, TextCodeCount, Totals, WarmUpFacts,
};
use record::{Durations, Failure, GroupResources, Interval, KindFigures, Outcome, Phase, Second};
use units::Nanos;

use crate::distribution;

/// Facts of a run that are not in its histograms.
#[derive(Debug, Clone, Copy)]
pub struct RunFacts<'a> {
    pub subject: &'a Subject,
    pub stamps: &'a Stamps,
    /// From the run's zero to the end of the schedule.
    pub window: Nanos,
    /// Every interval of the run.
    pub seconds: &'a [Second],
}

/// Computes the results of a whole run from the sum of its intervals.
pub fn summarize(total: &Interval, facts: &RunFacts<'_>) -> Results {
    Results {
        totals: totals(total, facts),
        outcomes: outcomes(total),
        reasons: reasons(total),
        check_samples: CheckSample::of(total),
        targets: total.kinds().iter().map(target).collect(),
        journeys: journeys(total, &facts.subject.journeys),
        codes: codes(total),
        text_codes: text_codes(total),
        other_codes: total.other_codes(),
        response: distribution::response(total),
        service: distribution::plain(total.service()),
        phases: Phase::ALL.into_iter().map(|phase| phase_result(total, phase, facts)).collect(),
        failed: failed(total),
        cpu: cpu(total, facts.seconds),
        kept: None,
    }
}

/// What a warm-up of `window`, which ended after `elapsed`, measured.
pub fn warm_up(total: &Interval, window: Nanos, elapsed: Nanos) -> WarmUpFacts {
    WarmUpFacts {
        window_ns: window.0,
        elapsed_ns: elapsed.0,
        scheduled: total.counts.scheduled,
        outcomes: outcomes(total),
        reasons: reasons(total),
        connections_opened: total.counts.connections_opened,
        response_mean_ns: distribution::plain(total.response()).mean_ns,
    }
}

/// How many of the `ok` requests ended within the window.
///
/// An interval that extends past the window's end counts with the part of it that is within. This matters only if the
/// window is not a whole number of seconds: otherwise an interval ends with the window.
fn ok_within(window: Nanos, seconds: &[Second]) -> f64 {
    within(window, seconds, |second| second.ok)
}

fn within(window: Nanos, seconds: &[Second], count: impl Fn(&Second) -> u64) -> f64 {
    let part = |second: &Second| {
        let within = window.0.saturating_sub(second.start_ns).min(second.length_ns);
        if second.length_ns == 0 { 0.0 } else { within as f64 / second.length_ns as f64 }
    };
    seconds.iter().map(|second| count(second) as f64 * part(second)).sum()
}

fn totals(total: &Interval, facts: &RunFacts<'_>) -> Totals {
    let counts = &total.counts;
    Totals {
        scheduled: counts.scheduled,
        sent: counts.sent,
        ok: counts.ok,
        failed: total.ended() - counts.ok,
        throughput_per_s: per_second(ok_within(facts.window, facts.seconds), facts.window),
        journeys_per_s: (!total.journeys().is_empty()).then(|| {
            let completed = |second: &Second| second.journeys.iter().map(|journey| journey.ok).sum();
            per_second(within(facts.window, facts.seconds, completed), facts.window)
        }),
        bytes_sent: counts.bytes_sent,
        bytes_received: counts.bytes_received,
        body_bytes: counts.body_bytes,
        connections_opened: counts.connections_opened,
        idle_closes: counts.idle_closes,
        unstamped: counts.unstamped,
        stamps_moved: counts.stamps_moved,
        out_of_range: out_of_range(total),
        retries: counts.retries,
    }
}

fn per_second(count: f64, window: Nanos) -> f64 {
    if window == Nanos::ZERO { 0.0 } else { count / window.as_secs_f64() }
}

/// Counts whole requests only: a phase that is out of range also makes its response so, and would be counted twice.
fn out_of_range(total: &Interval) -> u64 {
    let failed = Outcome::ALL.into_iter().filter_map(|outcome| total.failed(outcome));
    total.response().into_iter().chain(failed).map(Durations::out_of_range).sum()
}

fn outcomes(total: &Interval) -> Vec<OutcomeCount> {
    let ok = (total.counts.ok > 0).then(|| OutcomeCount {
        outcome: Outcome::Ok.name().to_owned(),
        phase: None,
        blame: None,
        count: total.counts.ok,
    });
    ok.into_iter().chain(failures(total.failures())).collect()
}

/// Sorted by count, and for equal counts by outcome, so that the same run always prints the same.
fn failures(failures: &[(Failure, u64)]) -> Vec<OutcomeCount> {
    let mut failures = failures.to_vec();
    failures.sort_by_key(|&(failure, count)| (std::cmp::Reverse(count), failure));
    let failed = failures.into_iter().filter(|&(_, count)| count > 0).map(|(failure, count)| OutcomeCount {
        outcome: failure.outcome.name().to_owned(),
        phase: Some(failure.phase.name().to_owned()),
        blame: Some(failure.blame.name().to_owned()),
        count,
    });
    failed.collect()
}

fn reasons(total: &Interval) -> Vec<ReasonCount> {
    let mut reasons: Vec<_> = total.reasons().iter().collect();
    reasons.sort_by(|(a, a_count), (b, b_count)| b_count.cmp(a_count).then(a.cmp(b)));
    let count = |((outcome, reason), count): &((Outcome, record::Reason), u64)| ReasonCount {
        outcome: outcome.name().to_owned(),
        reason: reason.clone().into_owned(),
        count: *count,
    };
    reasons.into_iter().map(count).collect()
}

fn target(kind: &KindFigures) -> TargetResult {
    let failed = kind.failures().iter().map(|(_, count)| count).sum();
    TargetResult {
        requests: kind.ok + failed,
        ok: kind.ok,
        failed,
        outcomes: failures(kind.failures()),
        response: distribution::response_of(kind),
        service: distribution::plain(kind.service()),
    }
}

/// The results of each journey: from whole journeys, or, in records before 1.1, from its first and its last request.
fn journeys(total: &Interval, journeys: &[JourneyFacts]) -> Vec<JourneyResult> {
    let kind = |place: u64| total.kinds().get(usize::try_from(place).ok()?);
    let result = |(index, journey): (usize, &JourneyFacts)| {
        if let Some(measured) = total.journeys().get(index) {
            return JourneyResult {
                name: journey.name.clone(),
                started: measured.begun,
                completed: measured.ok,
                cut: measured.failed + measured.cut,
                failed: Some(measured.failed),
                retries: measured.retries,
                response: measured.response().map(|response| distribution::plain(Some(response))),
            };
        }
        let ended =
            |kind: &KindFigures| kind.ok + kind.failures().iter().map(|(_, count)| count).sum::<u64>();
        let started = kind(journey.first).map_or(0, ended);
        let completed = kind(journey.last).map_or(0, |kind| kind.ok);
        let cut = started.saturating_sub(completed);
        JourneyResult {
            name: journey.name.clone(),
            started,
            completed,
            cut,
            failed: None,
            retries: 0,
            response: None,
        }
    };
    journeys.iter().enumerate().map(result).collect()
}

fn codes(total: &Interval) -> Vec<CodeCount> {
    let mut codes = CodeCount::of(total);
    codes.sort_by_key(|code| (std::cmp::Reverse(code.count), code.code));
    codes
}

fn text_codes(total: &Interval) -> Vec<TextCodeCount> {
    let mut codes = TextCodeCount::of(total);
    codes.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.code.cmp(&b.code)));
    codes
}

fn failed(total: &Interval) -> BTreeMap<String, Distribution> {
    Outcome::ALL
        .into_iter()
        .filter_map(|outcome| {
            Some((outcome.name().to_owned(), distribution::plain(Some(total.failed(outcome)?))))
        })
        .collect()
}

/// A shorter second is the last one of a run; shares of it have little meaning.
const FULL_SECOND: Nanos = Nanos::from_millis(900);

fn cpu(total: &Interval, seconds: &[Second]) -> Cpu {
    // If one second lacks it, the sum is absent: a sum of the rest would be too small.
    let used = seconds.iter().map(|second| second.process_cpu_ns).sum::<Option<u64>>();
    let process_ns = used.filter(|_| !seconds.is_empty());
    let server = seconds.iter().map(|second| second.host.server_cpu_ns).sum::<Option<u64>>();
    let server_ns = server.filter(|_| !seconds.is_empty());
    let full = seconds.iter().filter(|second| second.length_ns >= FULL_SECOND.0);
    let share = |second: &Second| second.worker_cpu_max_ns as f64 / second.length_ns as f64;
    Cpu {
        process_ns,
        per_request_ns: process_ns.and_then(|ns| ns.checked_div(total.counts.sent)),
        busiest_worker_share: full.map(share).reduce(f64::max),
        server_ns,
        server_per_request_ns: server_ns.and_then(|ns| ns.checked_div(total.counts.sent)),
        server: server_resources(seconds),
        server_memory: None,
    }
}

/// Sizes at the end, counts over the run; absent if one second lacks them.
fn server_resources(seconds: &[Second]) -> Option<GroupResources> {
    let each: Option<Vec<GroupResources>> = seconds.iter().map(|second| second.host.server).collect();
    let each = each?;
    let last = *each.last()?;
    let sum = each.into_iter().reduce(GroupResources::plus)?;
    Some(GroupResources {
        processes: last.processes,
        resident_bytes: last.resident_bytes,
        swapped_bytes: last.swapped_bytes,
        virtual_bytes: last.virtual_bytes,
        ..sum
    })
}

fn phase_result(total: &Interval, phase: Phase, facts: &RunFacts<'_>) -> PhaseResult {
    let passed = total.phase(phase);
    let response_ns = total.response().map_or(0, Durations::sum_ns);
    let share =
        |durations: &Durations| (response_ns > 0).then(|| durations.sum_ns() as f64 / response_ns as f64);
    PhaseResult {
        phase: phase.name().to_owned(),
        belongs_to: phase.belongs_to().to_owned(),
        share: passed.and_then(share),
        distribution: passed.map(|durations| distribution::plain(Some(durations))),
        absent: passed.is_none().then(|| absence(total, phase, facts)),
    }
}

/// Why no `ok` request passed through a phase; a reason that holds for every such run comes first.
fn absence(total: &Interval, phase: Phase, facts: &RunFacts<'_>) -> String {
    let by_nature = match phase {
        Phase::Resolve if is_address(&facts.subject.url) => Some("the target is an address"),
        Phase::Tls if !is_secure(&facts.subject.url) => Some("no TLS"),
        Phase::Auth if facts.subject.protocol.starts_with("http") => Some("the protocol has no login"),
        Phase::ClientLag if is_socket(facts.subject) => {
            Some("the kernel does not timestamp Unix domain sockets")
        }
        Phase::ClientLag if facts.stamps.arrival == ArrivalStamps::Read => {
            Some(facts.stamps.reason.as_deref().unwrap_or("no kernel timestamps"))
        }
        _ => None,
    };
    let reason = by_nature.unwrap_or(match phase {
        _ if total.counts.ok == 0 => "no request ended ok",
        Phase::Resolve => "no ok request needed a name lookup",
        Phase::Connect | Phase::Tls => "no ok request opened a connection",
        Phase::Auth => "no ok request logged in",
        Phase::ClientLag => "no ok response had a kernel timestamp",
        _ => "no ok request passed through it",
    });
    reason.to_owned()
}

/// The host part of a URL, without user, port and brackets.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let host_port = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    match host_port.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((inside, _)) => inside,
        None => host_port.rsplit_once(':').map_or(host_port, |(host, _)| host),
    }
}

/// Whether the target is a Unix domain socket.
fn is_socket(subject: &Subject) -> bool {
    subject.address.as_ref().is_some_and(|address| address.starts_with("unix:"))
}

fn is_address(url: &str) -> bool {
    host(url).parse::<std::net::IpAddr>().is_ok()
}

fn is_secure(url: &str) -> bool {
    url.split_once("://").is_some_and(|(scheme, _)| matches!(scheme, "https" | "wss" | "rediss"))
}

#[cfg(test)]
mod tests {
    use record::Failure;

    use super::*;

    #[test]
    fn hosts_are_found_in_urls() {
        for (url, found, address) in [
            ("http://127.0.0.1:9091/delay/2", "127.0.0.1", true),
            ("http://[::1]:80/", "::1", true),
            ("https://user:pw@example.org/a?b@c", "example.org", false),
            ("http://localhost", "localhost", false),
            ("10.0.0.1:80", "10.0.0.1", true),
        ] {
            assert_eq!(host(url), found);
            assert_eq!(is_address(url), address, "{url}");
        }
    }

    #[test]
    fn only_what_ended_within_the_window_is_throughput() {
        let second = |start: u64, ok: u64| {
            let mut interval = Interval::default();
            interval.start = Nanos::from_secs(start);
            interval.length = Nanos::from_secs(1);
            interval.counts.ok = ok;
            Second::of(&interval, None)
        };
        let seconds = [second(0, 100), second(1, 90), second(2, 40)];
        assert_eq!(ok_within(Nanos::from_secs(2), &seconds), 190.0);
        assert_eq!(ok_within(Nanos::from_millis(2_500), &seconds), 210.0);
        assert_eq!(ok_within(Nanos::from_secs(9), &seconds), 230.0);
        assert_eq!(ok_within(Nanos::ZERO, &seconds), 0.0);
    }

    #[test]
    fn outcomes_stand_in_a_fixed_order() {
        let mut total = Interval::default();
        total.counts.ok = 1;
        for (outcome, count) in [(Outcome::Reset, 3), (Outcome::AppError, 3), (Outcome::RequestTimeout, 9)] {
            total.add_failures(Failure::new(outcome, Phase::Wait), count);
        }
        let names: Vec<_> = outcomes(&total).into_iter().map(|row| row.outcome).collect();
        assert_eq!(names, ["ok", "request_timeout", "app_error", "reset"]);
    }
}
