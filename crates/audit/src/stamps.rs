//! Whether the kernel's arrival timestamps can be trusted.

use super::{Evidence, is_over_share, percent};
use record::Check;
use record::document::{ArrivalStamps, Finding, Stamps, VerdictWord};

/// No finding if the user chose it (`--stamps read`): the report then says that `client_lag` is absent.
pub(super) fn read_stamps(evidence: &Evidence<'_>) -> Option<Finding> {
    let reason = evidence.stamps.reason.as_deref();
    let chosen = reason == Some(Stamps::SWITCHED_OFF);
    (evidence.stamps.arrival == ArrivalStamps::Read && !chosen).then(|| Finding {
        check: Check::ReadStamps,
        makes: VerdictWord::Degraded,
        measured: format!(
            "there are no kernel timestamps of arrivals: {}",
            reason.unwrap_or("reason unknown")
        ),
        limit: "kernel timestamps, unless switched off with --stamps read".to_owned(),
        advice:
            "wait, receive and service include client_lag, so trust only response; if that is intended, add \
                 --stamps read"
                .to_owned(),
    })
}

/// If more than one response in a hundred has no timestamp, the p99 of `client_lag` is wrong.
pub const STAMPS_PER_MILLE: u64 = 10;

pub(super) fn unstamped(evidence: &Evidence<'_>) -> Option<Finding> {
    let counts = evidence.total.counts;
    let over = is_over_share(counts.unstamped, counts.ok, STAMPS_PER_MILLE);
    (evidence.stamps.arrival == ArrivalStamps::Kernel && over).then(|| Finding {
        check: Check::Unstamped,
        makes: VerdictWord::Degraded,
        measured: format!(
            "{} of the ok responses have no kernel timestamp",
            percent(counts.unstamped, counts.ok)
        ),
        limit: "1 %".to_owned(),
        advice: "their wait and receive include client_lag: trust response, not the phases".to_owned(),
    })
}

pub(super) fn stamps_moved(evidence: &Evidence<'_>) -> Option<Finding> {
    let counts = evidence.total.counts;
    is_over_share(counts.stamps_moved, counts.ok, STAMPS_PER_MILLE).then(|| Finding {
        check: Check::StampsMoved,
        makes: VerdictWord::Degraded,
        measured: format!(
            "{} timestamps were out of order by more than 1 us, for {} ok responses",
            counts.stamps_moved, counts.ok
        ),
        limit: "1 %".to_owned(),
        advice: "the kernel's clock and the monotonic clock disagreed: trust response, not the phases"
            .to_owned(),
    })
}

/// Kernel timestamps are wall-clock times; those read by the client are not, and a step does not move them.
pub(super) fn wall_clock(evidence: &Evidence<'_>) -> Option<Finding> {
    let steps = evidence.stamps.wall_clock_steps;
    (steps > 0 && evidence.stamps.arrival == ArrivalStamps::Kernel).then(|| Finding {
        check: Check::WallClock,
        makes: VerdictWord::Degraded,
        measured: match steps {
            1 => "the wall clock was set during the run".to_owned(),
            steps => format!("the wall clock was set {steps} times during the run"),
        },
        limit: "0".to_owned(),
        advice: "arrival timestamps around that moment are wrong: prevent time synchronization from setting the clock, and \
                 run it again"
            .to_owned(),
    })
}
