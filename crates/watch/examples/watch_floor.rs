//! Attaches empty programs where `watch` has its own, or only at the named tracepoints, prints `attached`, and ends
//! with its standard input.
//!
//! The throughput that a server loses to them is a minimum for every observer at these places: `bench/watch_cost.py`
//! measures it.

use std::env;
use std::io::{self, Read, Write};

use libbpf_rs::{Link, ObjectBuilder};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let object = ObjectBuilder::default().open_memory(watch::object!("floor"))?.load()?;
    let named: Vec<String> = env::args().skip(1).map(|tracepoint| format!("on_{tracepoint}")).collect();
    let wanted = |name: &str| named.is_empty() || named.iter().any(|one| one == name);
    let programs = object.progs_mut().filter(|program| program.name().to_str().is_some_and(wanted));
    let links: Vec<Link> = programs.map(|program| program.attach()).collect::<Result<_, _>>()?;
    if links.len() < named.len() {
        return Err(format!("not all of these are among its tracepoints: {named:?}").into());
    }
    writeln!(io::stdout(), "attached")?;
    io::stdin().read_to_end(&mut Vec::new())?;
    drop(links);
    Ok(())
}
