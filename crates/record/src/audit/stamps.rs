//! Whether the kernel's arrival stamps can be trusted.

use super::{Evidence, is_over_share, percent};
use crate::check::Check;
use crate::document::{ArrivalStamps, Finding, Stamps, VerdictWord};

/// Asked for, it is no finding: the report says everywhere that `client_lag` is absent.
pub(super) fn read_stamps(evidence: &Evidence<'_>) -> Option<Finding> {
    let reason = evidence.stamps.reason.as_deref();
    let chosen = reason == Some(Stamps::SWITCHED_OFF);
    (evidence.stamps.arrival == ArrivalStamps::Read && !chosen).then(|| Finding {
        check: Check::ReadStamps,
        makes: VerdictWord::Degraded,
        measured: format!("the kernel stamped no arrival: {}", reason.unwrap_or("no reason is on record")),
        limit: "kernel stamps, unless they are switched off".to_owned(),
        advice: "client_lag lies within wait, receive and service, unseen: trust response alone, or switch stamps \
                 off to say that this is meant"
            .to_owned(),
    })
}

/// One answer in a hundred may lack its stamp before the p99 of `client_lag` is another one.
const STAMPS_PER_MILLE: u64 = 10;

pub(super) fn unstamped(evidence: &Evidence<'_>) -> Option<Finding> {
    let counts = evidence.total.counts;
    let over = is_over_share(counts.unstamped, counts.ok, STAMPS_PER_MILLE);
    (evidence.stamps.arrival == ArrivalStamps::Kernel && over).then(|| Finding {
        check: Check::Unstamped,
        makes: VerdictWord::Degraded,
        measured: format!("{} of the ok answers have no kernel stamp", percent(counts.unstamped, counts.ok)),
        limit: "1 %".to_owned(),
        advice: "their client_lag lies within wait and receive: trust response, not the split".to_owned(),
    })
}

pub(super) fn stamps_moved(evidence: &Evidence<'_>) -> Option<Finding> {
    let counts = evidence.total.counts;
    is_over_share(counts.stamps_moved, counts.ok, STAMPS_PER_MILLE).then(|| Finding {
        check: Check::StampsMoved,
        makes: VerdictWord::Degraded,
        measured: format!(
            "{} stamps were out of order by over 1 us, for {} ok answers",
            counts.stamps_moved, counts.ok
        ),
        limit: "1 %".to_owned(),
        advice: "the kernel's clock and the monotonic one disagreed: trust response, not the split"
            .to_owned(),
    })
}

/// Kernel stamps are wall-clock times. Those read by the client are not, and no step can move them.
pub(super) fn wall_clock(evidence: &Evidence<'_>) -> Option<Finding> {
    let steps = evidence.stamps.wall_clock_steps;
    (steps > 0 && evidence.stamps.arrival == ArrivalStamps::Kernel).then(|| Finding {
        check: Check::WallClock,
        makes: VerdictWord::Degraded,
        measured: format!("steps of the wall clock during the run: {steps}"),
        limit: "0".to_owned(),
        advice: "arrival stamps around a step are wrong: keep time synchronisation from stepping, run again"
            .to_owned(),
    })
}
