//! Whether the load was the requested one, and within what this client can do.

use super::{Evidence, degraded, is_over_share, percent};
use record::Check;
use record::document::{Finding, LoadOrder, Model, VerdictWord};

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

/// Hyperfoil's watchdog doubts a client from 80 % of a CPU on; this is the same share of the maximum that the client
/// reached when nothing else limited it.
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
