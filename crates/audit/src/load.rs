//! Whether the requested load was offered, and whether the server kept up with it.

use super::{Evidence, degraded, ended_in, is_over_share, percent};
use record::document::{Finding, LoadOrder, Model, State, VerdictWord};
use record::{Check, Outcome, Second};

/// At most 0.1 % of what was due may be left unsent: k6 counts them as `dropped_iterations`, Nighthawk as pool
/// overflow, and neither calls the run bad. METHODOLOGY.md, the load that was asked for.
const UNSENT_PER_MILLE: u64 = 1;

pub(super) fn offered_load(evidence: &Evidence<'_>) -> Option<Finding> {
    let unsent: u64 =
        [Outcome::QueueFull, Outcome::NotSent].map(|outcome| ended_in(evidence, outcome)).iter().sum();
    let scheduled = evidence.total.counts.scheduled;
    let over = evidence.model == Model::Open && is_over_share(unsent, scheduled, UNSENT_PER_MILLE);
    over.then(|| Finding {
        check: Check::OfferedLoad,
        makes: VerdictWord::Degraded,
        measured: format!(
            "{} of the {scheduled} scheduled requests were never sent",
            percent(unsent, scheduled)
        ),
        limit: "0.1 %".to_owned(),
        advice: "the requested load was not offered: lower the rate, or allow more connections".to_owned(),
    })
}

/// The figures of a run whose load was changed by hand mix several loads.
pub(super) fn load_changed(evidence: &Evidence<'_>) -> Option<Finding> {
    let count = |order: LoadOrder| evidence.changes.iter().filter(|change| change.change == order).count();
    let (rates, pauses) = (count(LoadOrder::Rate), count(LoadOrder::Paused));
    let counted = |count: usize, what: &str| match count {
        0 => None,
        1 => Some(format!("1 {what}")),
        count => Some(format!("{count} {what}s")),
    };
    let changes: Vec<_> =
        [counted(rates, "rate change"), counted(pauses, "pause")].into_iter().flatten().collect();
    (!changes.is_empty()).then(|| Finding {
        check: Check::LoadChanged,
        makes: VerdictWord::Degraded,
        measured: format!("the load was changed by hand during the run: {}", changes.join(", ")),
        limit: "no change".to_owned(),
        advice:
            "rates and percentiles of the whole run mix several loads: use the figures per second, or run it again \
                 without changes"
                .to_owned(),
    })
}

/// The share of requests that can be outstanding at the end of the window if there are more than the connections carry:
/// above it, p99 would be among them.
const BACKLOG_PER_MILLE: u64 = 10;

/// In an open loop whose server is slower than the schedule, a backlog grows during the whole run.
pub(super) fn kept_up(evidence: &Evidence<'_>) -> Option<Finding> {
    if evidence.model != Model::Open || evidence.state == State::Running {
        return None;
    }
    let within = |second: &&Second| second.start_ns.saturating_add(second.length_ns) <= evidence.window.0;
    let seconds: Vec<_> = evidence.seconds.iter().filter(within).collect();
    // With `-n` alone, the window can end after the last request was due.
    let due = seconds.iter().rposition(|second| second.scheduled > 0)?;
    let scheduled: u64 = seconds[..=due].iter().map(|second| second.scheduled).sum();
    let ended: u64 = seconds[..=due].iter().map(|second| ended_by_itself(second)).sum();
    let outstanding = scheduled.saturating_sub(ended);
    let over = outstanding > evidence.slots && is_over_share(outstanding, scheduled, BACKLOG_PER_MILLE);
    over.then(|| Finding {
        check: Check::KeptUp,
        makes: VerdictWord::Degraded,
        measured: format!(
            "{outstanding} of {scheduled} requests were still outstanding at the end of the window: the server \
             did not keep up, so response time grows with the length of the run"
        ),
        limit: format!("1 % or {}, the number that the connections carry", evidence.slots),
        advice: "lower the rate, or find the server's capacity with --search".to_owned(),
    })
}

/// Without those that ended because the run did.
fn ended_by_itself(second: &Second) -> u64 {
    let by_the_run = [Outcome::NotSent.name(), Outcome::InFlight.name()];
    let failed = second.failures.iter().filter(|entry| !by_the_run.contains(&entry.outcome.as_str()));
    second.ok + failed.map(|entry| entry.count).sum::<u64>()
}

/// The share of a CPU from which Hyperfoil's watchdog doubts a client is 80 %; the same share of what the client
/// reached when nothing but itself held it back.
const CEILING_PER_MILLE: u64 = 800;

pub(super) fn no_ceiling(evidence: &Evidence<'_>) -> Option<String> {
    let ceiling = evidence.host.limits.ceiling.as_ref();
    let known = ceiling.is_some_and(|known| evidence.model == Model::Closed || known.rate_per_s.is_some());
    (!known).then(|| "no calibration for a run of this shape".to_owned())
}

/// Near its own ceiling, a load generator measures itself.
pub(super) fn ceiling(evidence: &Evidence<'_>) -> Option<Finding> {
    let ceiling = evidence.host.limits.ceiling.as_ref()?;
    let most = match evidence.model {
        Model::Open => ceiling.rate_per_s?,
        Model::Closed => ceiling.throughput_per_s,
    };
    let answered: u64 = evidence.seconds.iter().map(|second| second.ok).sum();
    let nanos = evidence.window.0.max(1);
    let per_s = u64::try_from(u128::from(answered) * 1_000_000_000 / u128::from(nanos)).unwrap_or(u64::MAX);
    is_over_share(per_s, most, CEILING_PER_MILLE).then(|| {
        degraded(
            Check::Ceiling,
            format!(
                "{per_s} responses per second are {} of the load generator's own maximum, {most} per second",
                percent(per_s, most)
            ),
            "80 %".to_owned(),
            "the load generator may be the limit: use more workers or another host, or lower the load",
        )
    })
}
