//! Runs the reference server by itself, to measure it: prints its address, stops at the end of its input.

use std::io::{Read, Write, stdin, stdout};

use target::{Options, Server};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut options = Options::default();
    if let Some(address) = std::env::args().nth(1) {
        options.listen = address.parse()?;
    }
    if let Some(threads) = std::env::args().nth(2) {
        options.threads = threads.parse()?;
    }
    let server = Server::start(options)?;
    writeln!(stdout(), "{}", server.local_addr())?;
    stdin().read_to_end(&mut Vec::new())?;
    stdout().write_all(server.stop().to_json().as_bytes())?;
    Ok(())
}
