//! Free ports on the loopback address, each different within this process.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

/// A port that nobody listens on now. It is below the kernel's range for clients (from 32768), so that no connection of
/// a test that runs at the same time takes it in the meantime.
pub fn free() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    loop {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        // Two processes that test at the same time begin at different ports.
        let begin = (std::process::id() % 100) as u16 * 100;
        let port = FIRST + (begin + step) % COUNT;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

const FIRST: u16 = 20_000;
const COUNT: u16 = 10_000;
