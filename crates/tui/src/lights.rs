//! The audit's lights during a run: the limits of the audit, applied to the last seconds. The verdict comes at the end.

use audit::{BUSY_PER_MILLE, LAG_INVALID_FACTOR, LONGEST_STALL, STAMPS_PER_MILLE, lag_limit};
use record::Phase;
use record::document::{ArrivalStamps, Model as LoadModel};
use units::Nanos;

use super::model::Model;
use super::tally::{RecentPhase, Shown};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckLight {
    Green,
    Amber,
    Red,
    /// No information: not yet, or not in this kind of run.
    Off,
}

/// One check with its figure.
#[derive(Debug, PartialEq, Eq)]
pub struct CheckStatus {
    pub light: CheckLight,
    pub name: &'static str,
    pub figure: String,
}

/// The five checks of the audit that are shown during a run, in display order.
pub fn lights(model: &Model) -> [CheckStatus; 5] {
    [schedule(model), client_lag(model), worker_cpu(model), stalls(model), stamps(model)]
}

fn lag(model: &Model, name: &'static str, phase: &RecentPhase) -> CheckStatus {
    let service = match model.service.tally.quantile(0.5) {
        Shown::Known(service) => service,
        Shown::Above(_) | Shown::TooFew => Nanos::ZERO,
    };
    let limit = lag_limit(service) + model.load.batch();
    // The maximum if the sample carries no p99: it hides nothing smaller.
    let (which, worst) = match phase.tally.quantile(0.99) {
        Shown::Known(p99) => ("p99", Some(p99)),
        Shown::Above(_) | Shown::TooFew => ("max", phase.tally.max()),
    };
    let Some(worst) = worst else {
        return CheckStatus { light: CheckLight::Off, name, figure: "nothing yet".to_owned() };
    };
    let light = match worst {
        worst if worst <= limit => CheckLight::Green,
        worst if worst.0 <= limit.0.saturating_mul(LAG_INVALID_FACTOR) => CheckLight::Amber,
        _ => CheckLight::Red,
    };
    CheckStatus { light, name, figure: format!("{which} {worst}") }
}

fn schedule(model: &Model) -> CheckStatus {
    if model.load.model == LoadModel::Closed {
        return CheckStatus { light: CheckLight::Off, name: "schedule", figure: "none".to_owned() };
    }
    lag(model, "schedule", &model.phases[Phase::ScheduleLag as usize])
}

fn client_lag(model: &Model) -> CheckStatus {
    if model.stamps.arrival == ArrivalStamps::Read {
        return CheckStatus { light: CheckLight::Off, name: "client lag", figure: "not seen".to_owned() };
    }
    lag(model, "client lag", &model.phases[Phase::ClientLag as usize])
}

/// Above this, a worker never sleeps.
const FULL: f64 = 0.97;

fn worker_cpu(model: &Model) -> CheckStatus {
    let name = "worker CPU";
    if model.beats.is_empty() {
        return CheckStatus { light: CheckLight::Off, name, figure: "nothing yet".to_owned() };
    }
    let share = model.latest().worker_cpu;
    let light = match share {
        share if share * 1e3 <= BUSY_PER_MILLE as f64 => CheckLight::Green,
        share if share <= FULL => CheckLight::Amber,
        _ => CheckLight::Red,
    };
    CheckStatus { light, name, figure: format!("{:.0} %", share * 100.0) }
}

/// A stall that is obvious in the response times.
const GRAVE_STALL: Nanos = Nanos::from_secs(1);

fn stalls(model: &Model) -> CheckStatus {
    let stall = model.totals.longest_stall;
    let at = model.totals.stalled_at.0 / 1_000_000_000;
    let (light, figure) = match stall {
        Nanos::ZERO => (CheckLight::Green, "none".to_owned()),
        stall if stall <= LONGEST_STALL => (CheckLight::Green, format!("at most {stall}")),
        stall if stall <= GRAVE_STALL => (CheckLight::Amber, format!("{stall} at {at} s")),
        stall => (CheckLight::Red, format!("{stall} at {at} s")),
    };
    CheckStatus { light, name: "stalls", figure }
}

fn stamps(model: &Model) -> CheckStatus {
    let totals = &model.totals;
    let over = |part: u64| part * 1_000 > totals.ok * STAMPS_PER_MILLE;
    let (light, figure) = match model.stamps.arrival {
        ArrivalStamps::Read
            if model.stamps.reason.as_deref() == Some(record::document::Stamps::SWITCHED_OFF) =>
        {
            (CheckLight::Off, "read, as requested".to_owned())
        }
        ArrivalStamps::Read => (CheckLight::Amber, "read".to_owned()),
        ArrivalStamps::Kernel if over(totals.unstamped) => {
            (CheckLight::Amber, format!("{} lack", totals.unstamped))
        }
        ArrivalStamps::Kernel if over(totals.stamps_moved) => {
            (CheckLight::Amber, format!("{} moved", totals.stamps_moved))
        }
        ArrivalStamps::Kernel => (CheckLight::Green, "kernel".to_owned()),
    };
    CheckStatus { light, name: "stamps", figure }
}
