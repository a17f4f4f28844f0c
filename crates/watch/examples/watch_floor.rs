//! Attaches programs that do nothing where `watch` has its own, and says so; ends with its standard input.
//!
//! What a server loses beside it, no observer by tracepoints can give back: `bench/watch_cost.py` measures it.

use std::io::{self, Read, Write};

use libbpf_rs::{Link, ObjectBuilder};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let object = ObjectBuilder::default().open_memory(watch::object!("floor"))?.load()?;
    let links: Vec<Link> = object.progs_mut().map(|program| program.attach()).collect::<Result<_, _>>()?;
    writeln!(io::stdout(), "attached")?;
    io::stdin().read_to_end(&mut Vec::new())?;
    drop(links);
    Ok(())
}
