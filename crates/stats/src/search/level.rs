//! What all probes at one rate say together.

use super::{Finding, Length, Probed};

#[derive(Debug, Clone)]
pub(super) struct Level {
    pub rate: f64,
    /// In the probe that served the most.
    pub served: f64,
    holds: usize,
    fails: usize,
    unsettled: usize,
    /// With a client that was not fit.
    unfit: usize,
    /// On a host that was not the client's own.
    disturbed: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nothing is decided: probe again.
    Open,
    Holds,
    Fails,
    /// The client cannot do this rate.
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

    /// The majority of the probes with a fit client; without any, whether it was unfit twice: once, something else
    /// on its host may have disturbed it. That something did takes three: it comes and goes.
    pub(super) fn standing(&self) -> Standing {
        let (holds, fails) = (self.holds, self.failed());
        match (holds, fails) {
            (0, 0) if self.unfit >= 2 || self.uncounted() >= 3 => Standing::Limit,
            _ if holds > fails => Standing::Holds,
            _ if fails > holds => Standing::Fails,
            _ => Standing::Open,
        }
    }

    /// One unsettled probe is repeated at twice its length, as is every later one at this rate. What does not
    /// settle then either does not hold: the usual reason is a backlog that grows.
    fn failed(&self) -> usize {
        self.fails + self.unsettled.saturating_sub(1)
    }

    fn uncounted(&self) -> usize {
        self.unfit + self.disturbed
    }

    /// Whether the client was ever fit here.
    fn was_measured(&self) -> bool {
        self.holds + self.fails + self.unsettled > 0
    }

    /// How long the next probe at this rate shall be.
    pub(super) fn length(&self) -> Length {
        if self.unsettled > 0 { Length::Twice } else { Length::Usual }
    }

    /// Whether at least two probes with a fit client say so. That the client cannot do a rate takes three: it is
    /// the likeliest to have been a disturbance.
    pub(super) fn is_confirmed(&self) -> bool {
        match self.standing() {
            Standing::Holds => self.holds >= 2,
            Standing::Fails => self.failed() >= 2,
            Standing::Limit => self.uncounted() >= 3,
            Standing::Open => false,
        }
    }

    /// The load that the host was disturbed under, where that is all that is known of this rate.
    pub(super) fn disturbed_at(&self) -> Option<f64> {
        let only = self.standing() == Standing::Limit && self.disturbed > self.unfit;
        only.then_some(self.rate.min(self.served))
    }

    /// Disturbed, and nothing else so far.
    pub(super) fn is_only_disturbed(&self) -> bool {
        self.disturbed > 0 && !self.was_measured()
    }

    /// It was measured well, and then the host was disturbed again and again: not by this rate.
    pub(super) fn is_spoilt(&self) -> bool {
        self.disturbed >= 3 && self.was_measured()
    }
}
