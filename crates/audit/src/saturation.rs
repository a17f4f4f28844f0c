//! Whether an open loop's requests were sent and got responses as fast as they were due, and if not, what was too slow:
//! this client, the server, or too few connections.

use units::{Nanos, plural, rate};

use super::{Evidence, cpu, ended_in, is_over_share, lateness, percent, quantile};
use record::document::{Finding, Model, State, VerdictWord};
use record::{Check, Durations, Lag, Outcome, Phase, Second};

/// At most 0.1 % of due requests may be left unsent: k6 counts them as `dropped_iterations`, Nighthawk as pool
/// overflow, and neither marks such a run as bad. See METHODOLOGY.md.
const UNSENT_PER_MILLE: u64 = 1;

/// Limit of the backlog at the window's end if it is more than the connections hold: above this share p99, which is
/// printed, would be among those requests. Also the share of unsent requests that makes a run with too slow a client
/// invalid.
const BACKLOG_PER_MILLE: u64 = 10;

/// Connections that are in use for less than this share of the time do not limit the rate. A server that is the limit
/// has a request on each of them nearly all the time (Little's law); a client that is the limit leaves them idle, the
/// more the slower it is.
const BUSY_PER_MILLE: u64 = 500;

/// Connections that have requests outstanding for this share of a second are all occupied.
const HELD_PER_MILLE: u64 = 900;

/// A worker that uses less CPU than this uses a good part of it for its schedule, not for requests: an open loop that is
/// due to send 1M/s and waits for the server takes 11 % of a CPU (measured on 2026-11-25), so at most a third is not
/// for requests.
const REQUESTS_PER_MILLE: u64 = 300;

/// The rate needs this many times the CPU that the workers could have. Requests in larger batches, and the part that is
/// not for requests, make a request cheaper by less.
const NEEDED_PER_MILLE: u64 = 1_500;

/// From here on a request waits in the server for at least as long as it is worked on.
const QUEUE_FACTOR: u64 = 2;

/// What an open loop should have done in its window, and did not.
struct Shortfall {
    scheduled: u64,
    /// Due, but never sent.
    unsent: u64,
    /// Outstanding at the window's end, and how many were scheduled by then; `None` if that is not a finding.
    backlog: Option<(u64, u64)>,
}

impl Shortfall {
    fn of(evidence: &Evidence<'_>) -> Option<Shortfall> {
        if evidence.model != Model::Open {
            return None;
        }
        let scheduled = evidence.total.counts.scheduled;
        let unsent = [Outcome::QueueFull, Outcome::NotSent].map(|outcome| ended_in(evidence, outcome));
        let unsent: u64 = unsent.iter().sum();
        let backlog = backlog(evidence);
        let is_short = backlog.is_some() || is_over_share(unsent, scheduled, UNSENT_PER_MILLE);
        is_short.then_some(Shortfall { scheduled, unsent, backlog })
    }

    /// Whether the shortfall is large enough to affect the printed percentiles.
    fn is_grave(&self) -> bool {
        self.backlog.is_some() || is_over_share(self.unsent, self.scheduled, BACKLOG_PER_MILLE)
    }

    /// `93.8 % of 16000 requests due were not sent`, and the backlog.
    fn in_words(&self) -> String {
        let unsent = is_over_share(self.unsent, self.scheduled, UNSENT_PER_MILLE).then(|| {
            format!(
                "{} of {} requests due were not sent",
                percent(self.unsent, self.scheduled),
                self.scheduled
            )
        });
        let backlog = self.backlog.map(|(outstanding, scheduled)| {
            format!(
                "{outstanding} of {scheduled} requests were still outstanding at the end of the window, so response \
                 time grows with the length of the run"
            )
        });
        unsent.into_iter().chain(backlog).collect::<Vec<_>>().join("; ")
    }
}

/// The client was too slow for the rate, so the figures are those of another load.
pub(super) fn offered_load(evidence: &Evidence<'_>) -> Option<Finding> {
    let shortfall = Shortfall::of(evidence)?;
    if !is_client_the_limit(evidence) {
        return None;
    }
    let in_use = percent(busy_per_mille(evidence), 1_000);
    let why = match cpus_needed(evidence) {
        Some((needed, workers)) => format!(
            "at its CPU time per request, this rate takes {needed:.1} CPUs, and its {} can use {workers}",
            plural(workers, "worker")
        ),
        None => format!("its connections were in use only {in_use} of the time"),
    };
    Some(Finding {
        check: Check::OfferedLoad,
        makes: if shortfall.is_grave() { VerdictWord::Invalid } else { VerdictWord::Degraded },
        measured: format!(
            "this client offered {} of {}: {}; {why}",
            rate(offered_per_s(evidence, &shortfall)),
            rate(per_s(evidence, shortfall.scheduled)),
            shortfall.in_words(),
        ),
        limit: "0.1 % not sent".to_owned(),
        advice: "the load generator is too slow for this rate: lower the rate, give it more CPU or --workers, or use \
                 several hosts"
            .to_owned(),
    })
}

/// The server, or what its connections can carry, was too slow for the rate: there is a backlog that grew during the
/// whole run, or that was cut by dropping requests.
pub(super) fn kept_up(evidence: &Evidence<'_>) -> Option<Finding> {
    let shortfall = Shortfall::of(evidence)?;
    if is_client_the_limit(evidence) {
        return None;
    }
    // Without a response there is no rate at which the server works.
    let head = if shortfall.is_grave() && evidence.total.counts.ok > 0 {
        let (done, due) = (answered_per_s(evidence), per_s(evidence, shortfall.scheduled));
        let what = if is_queue_in_server(evidence) { "server" } else { "connections" };
        format!("{what} saturated: {} of {}; ", rate(done), rate(due))
    } else {
        String::new()
    };
    Some(Finding {
        check: Check::KeptUp,
        makes: VerdictWord::Degraded,
        measured: format!("{head}{}", shortfall.in_words()),
        limit: format!(
            "0.1 % not sent; outstanding: 1 % or {} (what the connections carry), whichever is more",
            evidence.slots
        ),
        advice: "lower the rate, allow more connections if the server has room for them, or find the highest rate \
                 with --search"
            .to_owned(),
    })
}

/// Whether requests took far longer in the server than the fastest did: most of them, or those on all connections
/// while no response came. Otherwise nothing shows that the server was saturated: a request took no longer than with
/// little load, and more connections might have got more responses.
fn is_queue_in_server(evidence: &Evidence<'_>) -> bool {
    let service = evidence.total.service();
    let Some((service, least)) = service.and_then(|service| Some((service, service.min()?))) else {
        return true;
    };
    let long = least.0.saturating_mul(QUEUE_FACTOR);
    is_mostly_silent(evidence, long) || quantile(service, 50).is_none_or(|median| median.0 > long)
}

/// Whether no response came in at least half of the seconds although all connections were occupied, so that the
/// requests on them took longer than `long`. The service times of `ok` requests do not show such a server.
fn is_mostly_silent(evidence: &Evidence<'_>, long: u64) -> bool {
    let within = within(evidence);
    let is_silent = |second: &&&Second| {
        let occupied = u128::from(evidence.slots) * u128::from(second.length_ns);
        let on_connections = u128::from(second.outstanding_ns.unwrap_or(0));
        let responded = |outcome: &str| Outcome::from_name(outcome).is_none_or(|it| !it.is_unanswered());
        second.length_ns > long
            && second.ok == 0
            && !second.failures.iter().any(|entry| responded(&entry.outcome))
            && on_connections * 1_000 >= occupied * u128::from(HELD_PER_MILLE)
    };
    let silent = within.iter().filter(is_silent).count();
    silent > 0 && silent * 2 >= within.len()
}

/// Whether this client had more to do than it could, and left its connections idle in the meantime; or whether the rate
/// is beyond it however fast the server is. If client and server share the CPUs of a host, both are slow, and how long
/// connections are idle depends on chance.
fn is_client_the_limit(evidence: &Evidence<'_>) -> bool {
    let signs = [
        lateness::schedule_lag,
        lateness::client_lag,
        cpu::worker_cpu,
        cpu::process_cpu,
        cpu::cpu_quota,
        cpu::run_queue,
    ];
    let leaves_idle = busy_per_mille(evidence) < BUSY_PER_MILLE;
    cpus_needed(evidence).is_some() || leaves_idle && signs.iter().any(|sign| sign(evidence).is_some())
}

/// The CPUs that it takes to send all that was due, at the CPU time per request of those that were sent, and the CPUs
/// that the workers could use, if that is far less. `None` also if the server had requests on all connections all the
/// time, because then it shows nothing how fast a faster server would have been asked.
fn cpus_needed(evidence: &Evidence<'_>) -> Option<(f64, u64)> {
    if busy_per_mille(evidence) >= HELD_PER_MILLE {
        return None;
    }
    let seconds = within(evidence);
    let sum = |of: fn(&Second) -> u64| seconds.iter().map(|second| u128::from(of(second))).sum::<u128>();
    let (length, cpu) = (sum(|second| second.length_ns), sum(worker_cpu_ns));
    let (due, sent) = (sum(|second| second.scheduled), sum(|second| second.sent));
    let workers = seconds.iter().map(|second| second.workers.len() as u64).max().filter(|&n| n > 0)?;
    let workers = evidence.host.cpus.map_or(workers, |cpus| workers.min(cpus.max(1)));
    let busiest = sum(|second| second.worker_cpu_max_ns.saturating_sub(second.worker_spin_ns));
    if sent == 0 || busiest * 1_000 <= length * u128::from(REQUESTS_PER_MILLE) {
        return None;
    }
    let needed = cpu as f64 / length as f64 * (due as f64 / sent as f64);
    (needed * 1_000.0 >= (workers * NEEDED_PER_MILLE) as f64).then_some((needed, workers))
}

/// CPU time of the workers without their spinning until a request is due.
fn worker_cpu_ns(second: &Second) -> u64 {
    second.worker_cpu_ns.saturating_sub(second.worker_spin_ns)
}

/// The share of the run in which connections had requests without a response from the server. A response that waits to
/// be read occupies a connection, too, but that is this client's doing.
fn busy_per_mille(evidence: &Evidence<'_>) -> u64 {
    let total = evidence.total;
    let sum = |phase| total.phase(phase).map_or(0, Durations::sum_ns);
    let sent = [Phase::Send, Phase::Wait, Phase::Receive].into_iter().map(sum).sum();
    let unread = lateness::of_all(total, Lag::Client).sum_ns();
    let on_the_way = total.outstanding_time.map(|all| all.saturating_sub(unread));
    let whole = u128::from(evidence.slots.max(1)) * length_ns(evidence).max(1);
    // Without the counter (a record that was cut off), only the `ok` requests count.
    let share = on_the_way.unwrap_or(sent) * 1_000 / whole;
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// Length of the whole run, including its drain.
fn length_ns(evidence: &Evidence<'_>) -> u128 {
    let seconds: u128 = evidence.seconds.iter().map(|second| u128::from(second.length_ns)).sum();
    seconds.max(u128::from(evidence.window.0))
}

/// Per second of the window; while a run is in progress, of the time so far.
fn per_s(evidence: &Evidence<'_>, count: u64) -> f64 {
    let ns = if evidence.window == Nanos::ZERO { length_ns(evidence) } else { evidence.window.0.into() };
    count as f64 * 1e9 / ns.max(1) as f64
}

/// Requests sent per second of the window, to within those in flight at its end: what is sent while the run drains was
/// due earlier.
fn offered_per_s(evidence: &Evidence<'_>, shortfall: &Shortfall) -> f64 {
    let within = within(evidence);
    match within.is_empty() {
        true => per_s(evidence, shortfall.scheduled.saturating_sub(shortfall.unsent)),
        false => per_s(evidence, within.iter().map(|second| ended_after_send(second)).sum()),
    }
}

/// Requests that ended before the run did, without those that never had a connection.
fn ended_after_send(second: &Second) -> u64 {
    let unsent = [Outcome::QueueFull.name(), Outcome::CheckoutTimeout.name()];
    let unsent = second.failures.iter().filter(|entry| unsent.contains(&entry.outcome.as_str()));
    ended_by_itself(second).saturating_sub(unsent.map(|entry| entry.count).sum())
}

/// `ok` responses per second of the window.
fn answered_per_s(evidence: &Evidence<'_>) -> f64 {
    let within = within(evidence);
    match within.is_empty() {
        true => per_s(evidence, evidence.total.counts.ok),
        false => per_s(evidence, within.iter().map(|second| second.ok).sum()),
    }
}

/// The seconds that end within the window.
fn within<'a>(evidence: &Evidence<'a>) -> Vec<&'a Second> {
    let ends_within =
        |second: &&Second| second.start_ns.saturating_add(second.length_ns) <= evidence.window.0;
    evidence.seconds.iter().filter(ends_within).collect()
}

/// Requests outstanding at the window's end if there are too many, and those scheduled by then.
fn backlog(evidence: &Evidence<'_>) -> Option<(u64, u64)> {
    if evidence.state == State::Running {
        return None;
    }
    let seconds = within(evidence);
    // If only a count was given, the window may extend beyond the last request that was due.
    let due = seconds.iter().rposition(|second| second.scheduled > 0)?;
    let scheduled: u64 = seconds[..=due].iter().map(|second| second.scheduled).sum();
    let ended: u64 = seconds[..=due].iter().map(|second| ended_by_itself(second)).sum();
    let outstanding = scheduled.saturating_sub(ended);
    let is_over = outstanding > evidence.slots && is_over_share(outstanding, scheduled, BACKLOG_PER_MILLE);
    is_over.then_some((outstanding, scheduled))
}

/// Requests that ended before the run did.
fn ended_by_itself(second: &Second) -> u64 {
    let by_the_run = [Outcome::NotSent.name(), Outcome::InFlight.name()];
    let failed = second.failures.iter().filter(|entry| !by_the_run.contains(&entry.outcome.as_str()));
    second.ok + failed.map(|entry| entry.count).sum::<u64>()
}
