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
    /// With a client that was not fit: the objective held, and it did not.
    held_unfit: usize,
    failed_unfit: usize,
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
        let mut level = Level {
            rate: probed.rate,
            served: 0.0,
            holds: 0,
            fails: 0,
            unsettled: 0,
            held_unfit: 0,
            failed_unfit: 0,
        };
        level.add(probed);
        level
    }

    pub(super) fn add(&mut self, probed: &Probed) {
        self.served = self.served.max(probed.served);
        *match probed.finding {
            Finding::Holds => &mut self.holds,
            Finding::Fails => &mut self.fails,
            Finding::Unsettled => &mut self.unsettled,
            Finding::Doubtful { held: true } => &mut self.held_unfit,
            Finding::Doubtful { held: false } => &mut self.failed_unfit,
        } += 1;
    }

    /// The majority of the probes with a fit client; without any, whether it was unfit twice: once, something else
    /// on its host may have disturbed it.
    pub(super) fn standing(&self) -> Standing {
        let (holds, fails) = (self.holds, self.failed());
        match (holds, fails) {
            (0, 0) if self.unfit() >= 2 => Standing::Limit,
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

    fn unfit(&self) -> usize {
        self.held_unfit + self.failed_unfit
    }

    /// How long the next probe at this rate shall be.
    pub(super) fn length(&self) -> Length {
        if self.unsettled > 0 { Length::Twice } else { Length::Usual }
    }

    /// Whether at least two probes say so, one of them with a fit client. That the client cannot do a rate takes
    /// three: it is the likeliest to have been a disturbance.
    pub(super) fn is_confirmed(&self) -> bool {
        match self.standing() {
            Standing::Holds => self.holds + self.held_unfit >= 2,
            Standing::Fails => self.failed() + self.failed_unfit >= 2,
            Standing::Limit => self.unfit() >= 3,
            Standing::Open => false,
        }
    }
}
