//! Whom one pause has for itself: two that overlap would undo each other's.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use super::error::DisturbError;
use super::victim::Victim;

/// Held for as long as this is; given back by the kernel, however this process ends.
///
/// It is a name among the abstract sockets: no file that could be left behind. Parallax in another network namespace
/// does not see it.
#[derive(Debug)]
pub(super) struct Claim {
    _name: UnixDatagram,
}

impl Claim {
    /// # Errors
    ///
    /// [`DisturbError::Unwise`] when another process has it.
    pub(super) fn take(victim: &Victim) -> Result<Claim, DisturbError> {
        let pid = victim.pid();
        let name = format!("parallax-pause-{pid}-{}", victim.started());
        let bound = SocketAddr::from_abstract_name(name).and_then(|name| UnixDatagram::bind_addr(&name));
        match bound {
            Ok(name) => Ok(Claim { _name: name }),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(DisturbError::Unwise(format!(
                "pid {pid} is being paused already, by another parallax; wait until that ends, or end it"
            ))),
            Err(source) => Err(DisturbError::System { what: format!("claim pid {pid}"), source }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disturb::testing::Sleeper;

    /// If this fails, of two pauses begun at once one ends the other's early.
    #[test]
    fn a_victim_is_one_pauses_alone() {
        let (sleeper, other) = (Sleeper::start(), Sleeper::start());
        let victim = Victim::find(sleeper.pid()).unwrap();
        let claim = Claim::take(&victim).unwrap();
        assert!(matches!(Claim::take(&victim), Err(DisturbError::Unwise(_))));
        Claim::take(&Victim::find(other.pid()).unwrap()).unwrap();
        drop(claim);
        Claim::take(&victim).unwrap();
    }
}
