//! `run.json`'s results from the summed histograms of a run.
//!
//! The one place where totals, shares and percentiles are worked out, at a run's end and again whenever its
//! folder is read, so that what is printed can always be recomputed.

use std::collections::BTreeMap;

use record::document::{
    ArrivalStamps, CodeCount, Cpu, Distribution, OutcomeCount, PhaseResult, Results, Stamps, Subject, Totals,
};
use record::{Durations, Interval, Outcome, Phase};
use units::Nanos;

use crate::distribution;

/// What the histograms do not hold.
#[derive(Debug, Clone, Copy)]
pub struct RunFacts<'a> {
    pub subject: &'a Subject,
    pub stamps: &'a Stamps,
    /// From the run's zero until nothing more was scheduled.
    pub window: Nanos,
    /// `ok` requests that ended within the window: see [`ok_within`].
    pub ok_in_window: f64,
    /// User and system time of this process over the run.
    pub process_cpu: Option<Nanos>,
    /// Of the busiest worker thread, in its busiest full second, between 0 and 1.
    pub busiest_worker_share: Option<f64>,
}

/// Works out the results of a whole run from the sum of its intervals.
pub fn summarize(total: &Interval, facts: &RunFacts<'_>) -> Results {
    Results {
        totals: totals(total, facts),
        outcomes: outcomes(total),
        codes: codes(total),
        response: distribution::response(total),
        service: distribution::plain(total.service()),
        phases: Phase::ALL.into_iter().map(|phase| phase_result(total, phase, facts)).collect(),
        failed: failed(total),
        cpu: cpu(total, facts),
    }
}

/// How many of the `ok` requests ended within the window, of intervals given as (start, length, ok).
///
/// An interval that passes the window's end counts by the part of it that lies within. The engine ends an
/// interval with the window, so that nothing is shared out when requests were scheduled for whole seconds.
pub fn ok_within(window: Nanos, intervals: impl IntoIterator<Item = (Nanos, Nanos, u64)>) -> f64 {
    let part = |start: Nanos, length: Nanos| {
        let within = window.min(start + length).saturating_sub(start);
        if length == Nanos::ZERO { 0.0 } else { within.0 as f64 / length.0 as f64 }
    };
    intervals.into_iter().map(|(start, length, ok)| ok as f64 * part(start, length)).sum()
}

fn totals(total: &Interval, facts: &RunFacts<'_>) -> Totals {
    let counts = &total.counts;
    Totals {
        scheduled: counts.scheduled,
        sent: counts.sent,
        ok: counts.ok,
        failed: total.ended() - counts.ok,
        throughput_per_s: per_second(facts.ok_in_window, facts.window),
        bytes_sent: counts.bytes_sent,
        bytes_received: counts.bytes_received,
        body_bytes: counts.body_bytes,
        connections_opened: counts.connections_opened,
        idle_closes: counts.idle_closes,
        unstamped: counts.unstamped,
        stamps_moved: counts.stamps_moved,
        out_of_range: out_of_range(total),
    }
}

fn per_second(count: f64, window: Nanos) -> f64 {
    if window == Nanos::ZERO { 0.0 } else { count / window.as_secs_f64() }
}

/// Of whole requests only: a phase that is out of range makes its response so, and would count twice.
fn out_of_range(total: &Interval) -> u64 {
    let failed = Outcome::ALL.into_iter().filter_map(|outcome| total.failed(outcome));
    total.response().into_iter().chain(failed).map(Durations::out_of_range).sum()
}

fn outcomes(total: &Interval) -> Vec<OutcomeCount> {
    let mut failures = total.failures().to_vec();
    // By count, and where counts are equal in the order of the vocabulary: the same run prints the same.
    failures.sort_by_key(|&(failure, count)| (std::cmp::Reverse(count), failure));
    let ok = (total.counts.ok > 0).then(|| OutcomeCount {
        outcome: Outcome::Ok.name().to_owned(),
        phase: None,
        blame: None,
        count: total.counts.ok,
    });
    let failed = failures.into_iter().filter(|&(_, count)| count > 0).map(|(failure, count)| OutcomeCount {
        outcome: failure.outcome.name().to_owned(),
        phase: Some(failure.phase.name().to_owned()),
        blame: Some(failure.blame.name().to_owned()),
        count,
    });
    ok.into_iter().chain(failed).collect()
}

fn codes(total: &Interval) -> Vec<CodeCount> {
    let mut codes: Vec<_> = total.codes().iter().map(|&(code, count)| CodeCount { code, count }).collect();
    codes.sort_by_key(|code| (std::cmp::Reverse(code.count), code.code));
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

fn cpu(total: &Interval, facts: &RunFacts<'_>) -> Cpu {
    Cpu {
        process_ns: facts.process_cpu.map(|cpu| cpu.0),
        per_request_ns: facts.process_cpu.and_then(|cpu| cpu.0.checked_div(total.counts.sent)),
        busiest_worker_share: facts.busiest_worker_share,
    }
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

/// Why no `ok` request passed a phase. What the run could never have shown goes before what it did not show.
fn absence(total: &Interval, phase: Phase, facts: &RunFacts<'_>) -> String {
    let by_nature = match phase {
        Phase::Resolve if is_address(&facts.subject.url) => Some("the target is an address"),
        Phase::Tls if !is_secure(&facts.subject.url) => Some("no TLS"),
        Phase::Auth if facts.subject.protocol.starts_with("http") => Some("the protocol has no login"),
        Phase::ClientLag if facts.stamps.arrival == ArrivalStamps::Read => {
            Some(facts.stamps.reason.as_deref().unwrap_or("no kernel arrival stamps"))
        }
        _ => None,
    };
    let reason = by_nature.unwrap_or(match phase {
        _ if total.counts.ok == 0 => "no request ended ok",
        Phase::Resolve => "no ok request needed a name lookup",
        Phase::Connect | Phase::Tls => "no ok request opened a connection",
        Phase::Auth => "no ok request logged in",
        Phase::ClientLag => "no ok answer carried a kernel stamp",
        _ => "no ok request passed it",
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
        let s = Nanos::from_secs;
        let intervals = [(s(0), s(1), 100), (s(1), s(1), 90), (s(2), s(1), 40)];
        assert_eq!(ok_within(s(2), intervals), 190.0);
        assert_eq!(ok_within(Nanos::from_millis(2_500), intervals), 210.0);
        assert_eq!(ok_within(s(9), intervals), 230.0);
        assert_eq!(ok_within(s(2), [(s(0), s(0), 7)]), 0.0);
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
