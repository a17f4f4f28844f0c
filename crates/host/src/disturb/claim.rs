//! The exclusive right to pause a process: two overlapping pauses would undo each other.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use super::error::DisturbError;
use super::victim::Victim;

/// Held until it is dropped; the kernel releases it however this process ends.
///
/// It is the name of an abstract socket: no file that could be left behind. Parallax in another network namespace
/// does not see it.
#[derive(Debug)]
pub(super) struct Claim {
    _name: UnixDatagram,
}

impl Claim {
    /// Claims `victim`.
    ///
    /// # Errors
    ///
    /// [`DisturbError::Unwise`] when another process holds the claim.
    pub(super) fn take(victim: &Victim) -> Result<Claim, DisturbError> {
        let pid = victim.pid();
        let name = format!("parallax-pause-{pid}-{}", victim.started());
        let bound = SocketAddr::from_abstract_name(name).and_then(|name| UnixDatagram::bind_addr(&name));
        match bound {
            Ok(name) => Ok(Claim { _name: name }),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(DisturbError::Unwise(format!(
                "pid {pid} is already being paused by another parallax; wait until that ends, or end it"
            ))),
            Err(source) => Err(DisturbError::System { what: format!("claim pid {pid}"), source }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disturb::testing::Sleeper;

    /// If this fails, of two pauses started at once one ends the other early.
    #[test]
    fn only_one_pause_at_a_time_may_claim_a_process() {
        let (sleeper, other) = (Sleeper::start(), Sleeper::start());
        let victim = Victim::find(sleeper.pid()).unwrap();
        let claim = Claim::take(&victim).unwrap();
        assert!(matches!(Claim::take(&victim), Err(DisturbError::Unwise(_))));
        Claim::take(&Victim::find(other.pid()).unwrap()).unwrap();
        drop(claim);
        Claim::take(&victim).unwrap();
    }
}
