//! The offset between a server's clock and the client's, and how accurately it is known.

use record::TwoClocks;
use record::document::{Host, Time};
use record::import::unix_ns;
use units::Nanos;

use crate::inputs::{Client, Server};

/// The offset between a server's clock and the client's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Clocks {
    /// Added to an offset from the client's zero, it gives an instant on the server's clock.
    pub(crate) zero: i128,
    pub(crate) known: Known,
    /// Both records are from one host: a loopback address means the same in both.
    pub(crate) same_host: bool,
}

/// How accurately the offset is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// To the nanosecond, or within the error of the clock exchanges.
    Within(Nanos),
    /// From the hosts' wall clocks only: accurate to seconds.
    ByWallClock,
    /// Likewise, and the clock exchanges contradict each other.
    Contradicted,
}

impl Known {
    /// Maximum error of an instant; `None` if unknown.
    pub(crate) fn within(self) -> Option<Nanos> {
        match self {
            Known::Within(error) => Some(error),
            Known::ByWallClock | Known::Contradicted => None,
        }
    }
}

impl Clocks {
    /// The offset for a server's record. If the two clocks were compared, the record's instants are converted to the
    /// client's clock.
    pub(crate) fn of(client: &Client, server: &mut Server) -> Clocks {
        let (one, other) = (&client.document, &server.observed.document);
        if let Some(later) = same_boot((&one.host, &one.time), (&other.host, &other.time)) {
            let zero = i128::from(client.zero()) + later;
            return Clocks { zero, known: Known::Within(Nanos::ZERO), same_host: true };
        }
        let compared = server.clocks.take().filter(|clocks| clocks.client_boot_id == one.host.boot_id);
        let is_contradicted = compared.as_ref().is_some_and(TwoClocks::contradicts_itself);
        if let Some(clocks) = compared.filter(|_| !is_contradicted)
            && let Some(error) = clocks.error()
        {
            bring_onto(&clocks, server);
            let zero = i128::from(client.zero());
            return Clocks { zero, known: Known::Within(error), same_host: false };
        }
        let started = |time: &Time| i128::from(unix_ns(&time.started).unwrap_or(0));
        let later = started(&one.time) - started(&other.time);
        let known = if is_contradicted { Known::Contradicted } else { Known::ByWallClock };
        Clocks { zero: i128::from(other.time.started_monotonic_ns) + later, known, same_host: false }
    }
}

/// Converts each request as a whole, so that it keeps its length; leaves out what was before the client's host booted.
fn bring_onto(clocks: &TwoClocks, server: &mut Server) {
    let back = |at: Nanos| i64::try_from(-clocks.ahead_at(at)?).ok();
    server.served = std::mem::take(&mut server.served)
        .into_iter()
        .filter_map(|served| {
            let back = back(served.read)?;
            let first = served.arrived.map_or(served.read, |arrived| arrived.min(served.read));
            first.0.checked_add_signed(back)?;
            served.done.0.checked_add_signed(back)?;
            Some(served.later(back))
        })
        .collect();
    let began = &mut server.observed.document.time.started_monotonic_ns;
    if let Some(back) = back(Nanos(*began)) {
        *began = began.saturating_add_signed(back);
    }
}

/// How much the boot times worked out from the clocks of two records may differ: the wall clock is slewed in the
/// meantime.
const BOOT_SLACK: i128 = 1_000_000_000;

/// How far the other's monotonic clock is ahead if both records are of the same boot of one host: the difference of
/// their time namespaces.
pub(crate) fn same_boot(one: (&Host, &Time), other: (&Host, &Time)) -> Option<i128> {
    if let (Some(boot), Some(other_boot)) = (&one.0.boot_id, &other.0.boot_id) {
        let offset = |host: &Host| i128::from(host.monotonic_offset_ns.unwrap_or(0));
        return (boot == other_boot).then(|| offset(other.0) - offset(one.0));
    }
    let boot =
        |time: &Time| Some(i128::from(unix_ns(&time.started)?) - i128::from(time.started_monotonic_ns));
    let near = boot(one.1).zip(boot(other.1)).is_some_and(|(one, other)| (one - other).abs() < BOOT_SLACK);
    (near && one.0.name.is_some() && one.0.name == other.0.name).then_some(0)
}
