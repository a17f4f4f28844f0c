//! Whether the load was the one that was asked for, and the server kept up with it.

use super::{Evidence, degraded, ended_in, is_over_share, percent};
use crate::check::Check;
use crate::document::{Finding, LoadOrder, Model, State, VerdictWord};
use crate::outcome::Outcome;
use crate::series::Second;

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
        measured: format!("{} of {scheduled} requests due were not sent", percent(unsent, scheduled)),
        limit: "0.1 %".to_owned(),
        advice: "the load asked for was not offered: lower the rate, or allow more connections".to_owned(),
    })
}

/// No limit but a fact: the figures of a run whose load was changed are those of several loads together.
pub(super) fn load_changed(evidence: &Evidence<'_>) -> Option<Finding> {
    let count = |order: LoadOrder| evidence.changes.iter().filter(|change| change.change == order).count();
    let (rates, pauses) = (count(LoadOrder::Rate), count(LoadOrder::Paused));
    let told = |count: usize, what: &str| match count {
        0 => None,
        1 => Some(format!("1 {what}")),
        count => Some(format!("{count} {what}s")),
    };
    let told: Vec<_> = [told(rates, "other rate"), told(pauses, "pause")].into_iter().flatten().collect();
    (!told.is_empty()).then(|| Finding {
        check: Check::LoadChanged,
        makes: VerdictWord::Degraded,
        measured: format!("the load was changed by hand while it ran: {}", told.join(", ")),
        limit: "one load in one run".to_owned(),
        advice:
            "rates and percentiles of the whole run mix several loads: look at its seconds, or run again and \
                 leave it alone"
                .to_owned(),
    })
}

/// What may be left at the window's end where it is more than the connections hold: the share over which a
/// percentile that is printed, p99, would fall among them.
const BACKLOG_PER_MILLE: u64 = 10;

/// An open loop whose server is slower than its schedule has a backlog that grows all run.
pub(super) fn kept_up(evidence: &Evidence<'_>) -> Option<Finding> {
    if evidence.model != Model::Open || evidence.state == State::Running {
        return None;
    }
    let within = |second: &&Second| second.start_ns.saturating_add(second.length_ns) <= evidence.window.0;
    let seconds: Vec<_> = evidence.seconds.iter().filter(within).collect();
    // Of a run that was given a count alone, the window may reach beyond the last request that was due.
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
             did not keep up, so response grows with the length of the run"
        ),
        limit: format!("1 %, or the {} that its connections hold", evidence.slots),
        advice: "lower the rate, or look for the capacity with a closed loop".to_owned(),
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
    (!known).then(|| "not calibrated for a run of this shape".to_owned())
}

/// Near its own ceiling a client measures itself.
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
                "{per_s} answers a second are {} of this client's own ceiling, {most} a second",
                percent(per_s, most)
            ),
            "80 %".to_owned(),
            "the client may be the limit: use more workers or another host, or lower the load",
        )
    })
}
