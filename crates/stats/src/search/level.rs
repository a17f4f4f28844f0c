//! What all probes at one rate show together.

use super::{Finding, Length, Probed};

#[derive(Debug, Clone)]
pub(super) struct Level {
    pub rate: f64,
    /// The throughput of the probe that served the most.
    pub served: f64,
    holds: usize,
    fails: usize,
    unsettled: usize,
    /// Probes whose client was not fit.
    unfit: usize,
    /// Probes disturbed by other work on the host.
    disturbed: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// Nothing is decided: probe again.
    Open,
    Holds,
    Fails,
    /// The load generator cannot do this rate.
    Limit,
}

impl Level {
    pub(super) fn of(probed: &Probed) -> Level {
        let rate = probed.rate;
        let mut level = Level { rate, served: 0.0, holds: 0, fails: 0, unsettled: 0, unfit: 0, disturbed: 0 };
        level.add(probed);
        level
    }

    pub(super) fn add(&mut self, probed: &Probed) {
        self.served = self.served.max(probed.served);
        *match probed.finding {
            Finding::Holds => &mut self.holds,
            Finding::Fails => &mut self.fails,
            Finding::Unsettled => &mut self.unsettled,
            Finding::Doubtful => &mut self.unfit,
            Finding::Disturbed => &mut self.disturbed,
        } += 1;
    }

    /// The majority of the probes with a fit client. Without any such probe: `Limit` when the client was unfit twice
    /// (once may have been other work on its host); a disturbance needs three, since disturbances come and go.
    pub(super) fn decision(&self) -> Decision {
        let (holds, fails) = (self.holds, self.failed());
        match (holds, fails) {
            (0, 0) if self.unfit >= 2 || self.uncounted() >= 3 => Decision::Limit,
            _ if holds > fails => Decision::Holds,
            _ if fails > holds => Decision::Fails,
            _ => Decision::Open,
        }
    }

    /// One unsettled probe is repeated at twice its length, as is every later one at this rate. A rate that does not
    /// settle then counts as failed: the usual reason is a growing backlog.
    fn failed(&self) -> usize {
        self.fails + self.unsettled.saturating_sub(1)
    }

    fn uncounted(&self) -> usize {
        self.unfit + self.disturbed
    }

    /// Whether at least one probe here had a fit client.
    fn was_measured(&self) -> bool {
        self.holds + self.fails + self.unsettled > 0
    }

    /// How long to measure the next probe at this rate.
    pub(super) fn length(&self) -> Length {
        if self.unsettled > 0 { Length::Twice } else { Length::Usual }
    }

    /// Whether at least two probes with a fit client agree. That the client cannot do a rate needs three, because a
    /// disturbance is the likeliest other cause.
    pub(super) fn is_confirmed(&self) -> bool {
        match self.decision() {
            Decision::Holds => self.holds >= 2,
            Decision::Fails => self.failed() >= 2,
            Decision::Limit => self.uncounted() >= 3,
            Decision::Open => false,
        }
    }

    /// The throughput at which the host was disturbed, if nothing else is known about this rate; at most the rate.
    pub(super) fn disturbed_at(&self) -> Option<f64> {
        let only = self.decision() == Decision::Limit && self.disturbed > self.unfit;
        only.then_some(self.rate.min(self.served))
    }

    /// Whether disturbances are all that was seen at this rate.
    pub(super) fn is_only_disturbed(&self) -> bool {
        self.disturbed > 0 && !self.was_measured()
    }

    /// Whether the rate was first measured without disturbance and later disturbed again and again, so that the rate
    /// cannot be the cause.
    pub(super) fn was_disturbed_later(&self) -> bool {
        self.disturbed >= 3 && self.was_measured()
    }
}
