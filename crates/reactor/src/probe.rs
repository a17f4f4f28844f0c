//! Finds out whether this kernel timestamps what arrives, and keeps timestamping switched on.

use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;

use units::Nanos;

use crate::stamp;

/// Keeps the kernel's timestamping switched on until it is dropped.
///
/// The kernel timestamps packets only while some socket requests it, and switches timestamping on from a work queue:
/// without this, the first responses of a run would have no timestamps.
#[derive(Debug)]
pub struct StampProbe {
    _asking: TcpStream,
}

impl StampProbe {
    /// Sends bytes to itself over loopback until one arrives with a timestamp, for at most 3 s: on a busy host,
    /// the work queue has to wait for a CPU.
    ///
    /// # Errors
    ///
    /// Why there will be no timestamps, as text for the record.
    pub fn start() -> Result<StampProbe, String> {
        probe()
            .map_err(|error| format!("the kernel's arrival stamps could not be tried: {error}"))?
            .ok_or_else(|| "the kernel accepts SO_TIMESTAMPNS but stamped nothing in 3 s".to_owned())
    }
}

fn probe() -> io::Result<Option<StampProbe>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut peer = TcpStream::connect(listener.local_addr()?)?;
    let (asking, _) = listener.accept()?;
    stamp::enable(asking.as_fd())?;
    let deadline = clock::now() + Nanos::from_secs(3);
    let mut buffer = [0; 16];
    while clock::now() < deadline {
        peer.write_all(b"?")?;
        clock::sleep_until(clock::now() + Nanos::from_micros(200));
        if stamp::receive(asking.as_fd(), &mut buffer)?.arrived_realtime_ns.is_some() {
            return Ok(Some(StampProbe { _asking: asking }));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_kernel_stamps_on_loopback() {
        StampProbe::start().unwrap();
    }
}
