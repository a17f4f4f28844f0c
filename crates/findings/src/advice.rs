//! Advice on what to do next, as far as the figures alone allow it.
//!
//! Each rule is a function of results and seconds: it looks at one thing, and returns advice with figures or nothing.
//! The audit (`audit`) decides whether to trust a run; the rules here take its figures as measured.

use record::document::{Document, Load, Model, Results, Verdict};
use record::{Check, Outcome, Phase, Second};
use units::Nanos;

use crate::view::{Advice, Phrase, Value, phrase};
use crate::words::{Peer, meaning, phase, typical};

/// All advice on a run, the most important first.
pub fn advice(results: &Results, document: &Document, seconds: &[Second]) -> Vec<Advice> {
    let verdict = document.verdict.as_ref();
    let view = Run { results, load: &document.load, peer: Peer::of(document), seconds, verdict };
    RULES.iter().filter_map(|rule| rule(&view)).collect()
}

fn advice_of(rule: &str, finding: Phrase, reason: Phrase) -> Advice {
    Advice { rule: rule.to_owned(), finding, reason }
}

type Rule = fn(&Run<'_>) -> Option<Advice>;

const RULES: [Rule; 8] = [
    nothing_ok,
    server_froze,
    pool_owns,
    client_starts_late,
    client_reads_late,
    connections_not_kept,
    lookups_own,
    unanswered,
];

/// The share of the response time from which on the pool is mentioned.
const POOL_SHARE: f64 = 0.25;
/// The share of the response time from which on the load generator's own lag is mentioned: 5 %, as in Rally.
const CLIENT_SHARE: f64 = 0.05;

/// With a fast server, a few microseconds of the client are a large share, but harmless: shorter lags are not mentioned.
const FELT: Nanos = Nanos::from_millis(1);
const LOOKUP_SHARE: f64 = 0.05;
/// Connections busy for more than this share of the time queue noticeably even under steady arrivals.
const BUSY: f64 = 0.7;
/// If the median service time is more than this many times the shortest, it grew under the load or varies by itself: a
/// server that is not the limit serves most requests about as fast as the fastest.
const FLAT: f64 = 1.5;
/// From one request in a hundred on, the unanswered ones decide p99.
const UNANSWERED_SHARE: f64 = 0.01;

/// A second with fewer responses than this share of the usual number counts as silent.
const SILENT_SHARE: f64 = 0.1;
/// With at least ten responses per second, a second without any is chance in one of 22 000 (Poisson).
const FEWEST_USUAL: u64 = 10;
/// The share of a silence during which requests must occupy the connections, and the share that those must last.
const HELD_SHARE: f64 = 0.9;
/// Responses up to this many times the usual time are the server's normal pace: virtual users in lockstep get their
/// responses all at once, with silence in between.
const PACE: u64 = 3;

struct Run<'a> {
    results: &'a Results,
    load: &'a Load,
    peer: Peer,
    seconds: &'a [Second],
    verdict: Option<&'a Verdict>,
}

impl Run<'_> {
    /// How many requests ended in this outcome. Rows are split by phase and blame.
    fn ended_in(&self, outcome: Outcome) -> u64 {
        let rows = self.results.outcomes.iter().filter(|row| row.outcome == outcome.name());
        rows.map(|row| row.count).sum()
    }

    fn share(&self, of: Phase) -> f64 {
        phase(self.results, of).and_then(|result| result.share).unwrap_or(0.0)
    }

    fn typical(&self, of: Phase) -> Option<Nanos> {
        typical(phase(self.results, of)?.distribution.as_ref()?)
    }

    /// Whether the phase is long enough to matter; the audit has the same limit.
    fn is_felt(&self, of: Phase) -> bool {
        let distribution = phase(self.results, of).and_then(|result| result.distribution.as_ref());
        distribution.and_then(|lengths| lengths.mean_ns).is_some_and(|mean| mean >= FELT.0)
    }

    fn passed(&self, of: Phase) -> u64 {
        phase(self.results, of).and_then(|result| result.distribution.as_ref()).map_or(0, |d| d.count)
    }

    /// How long requests waited for a connection, and what they took then: the medians; the means if most did not
    /// wait but some waited long.
    fn wait_and_service(&self) -> Option<(Phrase, Phrase)> {
        let waits = phase(self.results, Phase::PoolWait)?.distribution.as_ref()?;
        let (median, mean) = (typical(waits)?, Nanos(waits.mean_ns?));
        Some(if median.0 < mean.0 / 2 {
            let service = Nanos(self.results.service.mean_ns?);
            (phrase!("{waited} on average", waited = mean), phrase!("took {took} on average", took = service))
        } else {
            let service = typical(&self.results.service)?;
            (phrase!("{waited}", waited = median), phrase!("typically took {took}", took = service))
        })
    }

    /// Whether the generator was too slow for the load, so that its figures are those of another load.
    fn is_client_the_limit(&self) -> bool {
        let findings = self.verdict.into_iter().flat_map(|verdict| &verdict.findings);
        findings.into_iter().any(|finding| finding.check == Check::OfferedLoad)
    }

    /// How many times the shortest service time the typical one is, and the shortest; `None` if they are about the same.
    fn service_growth(&self) -> Option<(f64, Nanos)> {
        let service = &self.results.service;
        let (middle, shortest) = (typical(service)?, Nanos(service.min_ns?));
        let times = middle.0 as f64 / shortest.0.max(1) as f64;
        (times > FLAT).then_some((times, shortest))
    }

    /// Whether a few slow requests make up most of the time for which connections are occupied, as when a server
    /// stalls.
    fn is_hold_of_a_few(&self) -> bool {
        let median = typical(&self.results.service).unwrap_or_default();
        self.mean_hold().is_some_and(|mean| mean.0 / 2 > median.0)
    }

    /// How long one request occupies a connection, on average: its phases after `pool_wait`.
    fn mean_hold(&self) -> Option<Nanos> {
        let held = Phase::ALL.into_iter().filter(|phase| *phase > Phase::PoolWait);
        let sum: u64 = held
            .filter_map(|of| phase(self.results, of)?.distribution.as_ref().map(|d| d.sum_ns))
            .fold(0, u64::saturating_add);
        sum.checked_div(self.results.response.count).map(Nanos)
    }
}

fn nothing_ok(view: &Run<'_>) -> Option<Advice> {
    let cause = Outcome::cause(|outcome| view.ended_in(outcome)).filter(|_| view.results.totals.ok == 0)?;
    let curl = match view.peer {
        Peer::Port => "`curl -v URL`",
        Peer::Socket => "`curl -v --unix-socket PATH URL`",
    };
    let reason = match (cause, view.peer) {
        (Outcome::AppError | Outcome::CheckFailed, _) => {
            format!("The server responds, but not as expected. Look at a single response first, with {curl}.")
        }
        (Outcome::ConnectRefused, Peer::Socket) => format!(
            "There were no responses, so there are no latencies to report. Check that the socket exists, and try \
             {curl} first."
        ),
        _ => format!("There were no responses, so there are no latencies to report. Try {curl} first."),
    };
    let finding = phrase!(
        "No request succeeded: {count} of {scheduled} ended in {outcome} ({meaning}).",
        count = Value::Count(view.ended_in(cause)),
        scheduled = Value::Count(view.results.totals.scheduled),
        outcome = cause.name(),
        meaning = meaning(cause.name(), view.peer)
    );
    Some(advice_of("nothing-ok", finding, Phrase::text(reason)))
}

/// Consecutive seconds in which every connection had a request and there were no responses.
struct Silence<'a> {
    seconds: &'a [Second],
    /// The longest of the responses that ended it.
    longest: Nanos,
    usual: u64,
}

/// On each connection, a freeze of the server looks like one slow request; only the per-second figures show that all
/// connections were affected at once.
fn server_froze(view: &Run<'_>) -> Option<Advice> {
    let Silence { seconds, longest, usual } = longest_silence(view)?;
    let first = seconds.first()?;
    let answered: u64 = seconds.iter().map(|second| second.ok).sum();
    let held = match view.load.connections {
        1 => Phrase::new("The only connection was"),
        all => phrase!("All {connections} connections were", connections = Value::Count(all)),
    };
    let what = phrase!(
        "occupied by requests of up to {longest} at second {second}: the server, or the network path to it, was stalled.",
        longest = longest,
        second = Value::Id(first.start_ns / 1_000_000_000)
    );
    let reason = phrase!(
        "There were {answered} responses in {silence}, compared with the usual {usual} per second, and the load \
         generator was running. Look for something that stops the whole server, such as garbage collection, a lock or a \
         checkpoint.",
        answered = Value::Count(answered),
        silence = Nanos(seconds.iter().map(|second| second.length_ns).sum()),
        usual = Value::Count(usual)
    );
    Some(advice_of("server-stood-still", held.then(" ", what), reason))
}

fn longest_silence<'a>(view: &Run<'a>) -> Option<Silence<'a>> {
    let seconds = view.seconds;
    let mut answers: Vec<u64> = seconds.iter().map(|second| second.ok).collect();
    answers.sort_unstable();
    let usual = *answers.get(answers.len() / 2)?;
    if usual < FEWEST_USUAL {
        return None;
    }
    let slots = view.load.slots();
    let pace = typical(&view.results.response)?;
    let is_silent =
        |second: &Second| (second.ok as f64) <= usual as f64 * SILENT_SHARE && is_held(second, slots);
    let mut found: Vec<Silence<'a>> = Vec::new();
    let mut at = 0;
    for part in seconds.chunk_by(|a, b| is_silent(a) == is_silent(b)) {
        let end = at + part.len();
        // The delayed responses arrive at its very end, or in the second after it.
        let until = &seconds[at..seconds.len().min(end + 1)];
        let longest = until.iter().filter_map(|second| Some(second.response_ns?.max)).max();
        let length: u64 = part.iter().map(|second| second.length_ns).sum();
        let stalled = until.iter().map(|second| second.worker_stall_max_ns).max().unwrap_or(0);
        let is_as_long = |longest: u64| {
            let is_held = longest as f64 >= length as f64 * HELD_SHARE;
            is_held && longest > pace.0.saturating_mul(PACE) && stalled.saturating_mul(2) < longest
        };
        if let Some(longest) = longest.filter(|&longest| is_silent(&part[0]) && is_as_long(longest)) {
            found.push(Silence { seconds: part, longest: Nanos(longest), usual });
        }
        at = end;
    }
    found.into_iter().max_by_key(|silence| silence.longest)
}

/// Whether every connection was fully occupied during nearly all of this second.
fn is_held(second: &Second, slots: u64) -> bool {
    let all = slots as f64 * second.length_ns as f64;
    second.outstanding >= slots && second.outstanding_ns.is_some_and(|ns| ns as f64 >= all * HELD_SHARE)
}

fn pool_owns(view: &Run<'_>) -> Option<Advice> {
    let share = view.share(Phase::PoolWait);
    if share < POOL_SHARE {
        return None;
    }
    // More connections would not make the client faster.
    if view.is_client_the_limit() {
        return None;
    }
    // How long those would have occupied a connection is unknown, so Little's law has no answer.
    if view.ended_in(Outcome::RequestTimeout) * 100 > view.results.totals.ok {
        return None;
    }
    let (waited, took) = view.wait_and_service()?;
    let connections = view.load.connections;
    // If the rate changes, the pool has to carry the highest.
    let per_s = view.load.rate_per_s.or(view.load.arrivals.as_ref().map(|facts| facts.peak_per_s));
    let sizing = match (view.load.model, per_s) {
        (Model::Open, Some(per_s)) => connections_for_rate(view, per_s)?,
        _ => connections_for_users(view.load),
    };
    // Only if more connections would help is the pool to blame alone.
    let what = match sizing {
        Sizing::Asks { .. } if view.service_growth().is_none() && !view.is_hold_of_a_few() => {
            "The pool, not the server: requests waited "
        }
        _ => "Requests waited ",
    };
    let finding = Phrase::new(what).then("", waited).then(
        " for one of ",
        phrase!(
            "{connections} ({share} of total response time); the request itself ",
            connections = Value::items(connections, "connection"),
            share = Value::Share(share)
        ),
    );
    let finding = finding.then("", took).then(".", Phrase::default());
    Some(advice_of("pool-owns", finding, sizing.reason(view)))
}

/// What Little's law implies for the size of the pool.
enum Sizing {
    /// The pool is large enough; the text says what to look for.
    Enough(Phrase),
    /// The law in words, the number of connections it requires, and their effect.
    Asks { law: Phrase, needed: u64, effect: Phrase },
}

impl Sizing {
    /// Little's law takes the service time as given. If that grew under this load, more connections may only move the
    /// wait into the server.
    fn reason(self, view: &Run<'_>) -> Phrase {
        match (self, view.service_growth()) {
            (Sizing::Enough(text), _) => text,
            (Sizing::Asks { law, needed, effect }, None) => law
                .then("; with ", phrase!("{needed} connections", needed = Value::Id(needed)))
                .then(" ", effect)
                .then(".", Phrase::default()),
            (Sizing::Asks { needed, .. }, Some((times, shortest))) => phrase!(
                "More connections may only move the wait into the server: try {needed} as an experiment (service time is \
                 already {times} times the shortest, {shortest}).",
                needed = Value::Id(needed),
                times = Value::Number(times),
                shortest = shortest
            ),
        }
    }
}

fn connections_for_users(load: &Load) -> Sizing {
    let needed = load.callers.div_ceil(load.pipeline.max(1));
    if load.connections >= needed {
        return Sizing::Enough(phrase!(
            "{connections} are enough for {users}, so requests waited for connections that were being opened or replaced.",
            connections = Value::items(load.connections, "connection"),
            users = Value::items(load.callers, "virtual user")
        ));
    }
    // With think time, some virtual users have no request outstanding.
    let at_most = if load.think.is_some() { "at most " } else { "" };
    let law = phrase!("Little's law: {users} have ", users = Value::items(load.callers, "virtual user"))
        .then(
            at_most,
            phrase!(
                "{outstanding} outstanding, but {connections} can carry only {slots} at a time",
                outstanding = Value::items(load.callers, "request"),
                connections = Value::items(load.connections, "connection"),
                slots = Value::Count(load.slots())
            ),
        );
    Sizing::Asks { law, needed, effect: Phrase::new("none would wait") }
}

fn connections_for_rate(view: &Run<'_>, per_s: f64) -> Option<Sizing> {
    let hold = view.mean_hold()?;
    let busy = per_s * hold.as_secs_f64() / view.load.pipeline.max(1) as f64;
    let needed = (busy / BUSY).ceil().max(1.0) as u64;
    let law = phrase!(
        "Little's law: {rate}, each occupying a connection for {hold}, keep {busy} connections busy on average",
        rate = Value::PerSecond(per_s),
        hold = hold,
        busy = Value::Number(busy)
    );
    if view.load.connections >= needed {
        let connections = Value::Id(view.load.connections);
        let text = phrase!(
            "so {connections} are enough. At times all of them were occupied, by slow responses or bursts of requests: look \
             at the slowest seconds.",
            connections = connections
        );
        return Some(Sizing::Enough(law.then(", ", text)));
    }
    let effect =
        phrase!("there is headroom ({busy_share} busy)", busy_share = Value::Share(busy / needed as f64));
    Some(Sizing::Asks { law, needed, effect })
}

fn client_starts_late(view: &Run<'_>) -> Option<Advice> {
    let share = view.share(Phase::ScheduleLag);
    let lag = view
        .typical(Phase::ScheduleLag)
        .filter(|_| share >= CLIENT_SHARE && view.is_felt(Phase::ScheduleLag))?;
    let finding = phrase!(
        "The load generator fell behind its schedule: {share} of the response time is schedule lag (typically {lag}).",
        share = Value::Share(share),
        lag = lag
    );
    let reason = "Requests queued inside the load generator. Add workers or machines, or lower the rate; until then only \
                  `service` reflects the server.";
    Some(advice_of("client-starts-late", finding, Phrase::new(reason)))
}

fn client_reads_late(view: &Run<'_>) -> Option<Advice> {
    let share = view.share(Phase::ClientLag);
    let lag =
        view.typical(Phase::ClientLag).filter(|_| share >= CLIENT_SHARE && view.is_felt(Phase::ClientLag))?;
    let finding = phrase!(
        "The load generator read responses late: for {share} of the response time they waited in its socket buffers (typically {lag}).",
        share = Value::Share(share),
        lag = lag
    );
    let reason = "The responses had arrived, so the server is not at fault. Give the load generator more CPU or more workers, \
                  and use `service` until then.";
    Some(advice_of("client-reads-late", finding, Phrase::new(reason)))
}

fn connections_not_kept(view: &Run<'_>) -> Option<Advice> {
    // After a timeout the client closes the connection itself.
    let closed = view.ended_in(Outcome::RequestTimeout);
    let (opened, ok) = (view.passed(Phase::Connect).saturating_sub(closed), view.results.totals.ok);
    // Each connection is opened once in any run; a short run opens them on most of its requests.
    if opened * 2 < ok || opened <= view.load.connections || view.load.requests_per_connection.is_some() {
        return None;
    }
    let share =
        [Phase::Resolve, Phase::Connect, Phase::Tls, Phase::Auth].map(|of| view.share(of)).iter().sum();
    let finding = phrase!(
        "Keep-alive is not working: {opened} of {ok} successful requests opened a new connection ({share} of response time).",
        opened = Value::Count(opened),
        ok = Value::Count(ok),
        share = Value::Share(share)
    );
    let reason = "Each new connection costs a handshake. Look for `Connection: close` or a limit of requests per connection in \
                  the responses, and for options of this command that close connections.";
    Some(advice_of("connections-not-kept", finding, Phrase::new(reason)))
}

fn lookups_own(view: &Run<'_>) -> Option<Advice> {
    let share = view.share(Phase::Resolve);
    let took = view.typical(Phase::Resolve).filter(|_| share >= LOOKUP_SHARE)?;
    let finding = phrase!(
        "Name lookups take {share} of the response time (typically {took}).",
        share = Value::Share(share),
        took = took
    );
    let reason = "Give the target as an address, or a resolver that caches, to measure the server alone.";
    Some(advice_of("lookups-own", finding, Phrase::new(reason)))
}

fn unanswered(view: &Run<'_>) -> Option<Advice> {
    let totals = &view.results.totals;
    let is_unanswered = |name: &str| Outcome::from_name(name).is_some_and(Outcome::is_unanswered);
    let rows = view.results.outcomes.iter().filter(|row| is_unanswered(&row.outcome));
    let never: u64 = rows.map(|row| row.count).sum();
    let population = never + totals.ok;
    let share = never as f64 / population.max(1) as f64;
    if totals.ok == 0 || share < UNANSWERED_SHARE {
        return None;
    }
    let unanswered = |outcome: Outcome| match outcome {
        Outcome::AppError | Outcome::CheckFailed => 0,
        outcome => view.ended_in(outcome),
    };
    let cause = Outcome::cause(unanswered)?;
    let finding = phrase!(
        "{never} ({share}) never got a complete response: above p{percentile}, response times are lower bounds.",
        never = Value::items(never, "request"),
        share = Value::Share(share),
        percentile = Value::Number(((1.0 - share) * 1e3).floor() / 10.0)
    );
    Some(advice_of("unanswered", finding, Phrase::new(unanswered_reason(cause))))
}

/// How to measure those requests or to avoid losing them, by the outcome that explains the others.
fn unanswered_reason(cause: Outcome) -> &'static str {
    match cause {
        Outcome::RequestTimeout => {
            "They waited for the whole --timeout; a longer one would show how long the responses really take."
        }
        Outcome::ConnectTimeout => {
            "There was no reply to the connect; a longer --connect-timeout would show how long connecting really takes."
        }
        Outcome::CheckoutTimeout => {
            "No connection became free in time. Use more connections; a longer --checkout-timeout would show how long the \
             wait really is."
        }
        Outcome::QueueFull => {
            "They were due while the maximum number of requests was outstanding, so longer timeouts would not help: use more \
             connections, raise --max-in-flight, or lower the rate."
        }
        Outcome::NotSent | Outcome::InFlight => {
            "The run ended before they did, so longer timeouts would not help: use a longer -d or --drain, more \
             connections, or a lower rate."
        }
        Outcome::ConnectRefused
        | Outcome::ConnectFailed
        | Outcome::TlsFailed
        | Outcome::AuthFailed
        | Outcome::ClosedBeforeResponse
        | Outcome::IncompleteResponse
        | Outcome::Reset
        | Outcome::ProtocolError => {
            "A dropped request is not a fast one. Check the server's listen queue, its connection limits, and its log."
        }
        Outcome::ResolveFailed => "Use an address instead of a host name, or fix the resolver.",
        Outcome::Ok | Outcome::AppError | Outcome::CheckFailed | Outcome::Unknown => {
            "See the outcomes for details."
        }
    }
}
