//! Takes a CPU from others by a known amount, and records every moment it had it.
//!
//! usage: hog NAME FILE [BUSY IDLE]
//!
//! Its process name is NAME; it prints `ready`, and runs until its standard input ends: all the time, or alternating
//! between BUSY of its own CPU time and IDLE asleep. FILE then has one line per period on the CPU: when it began and
//! when it ended.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use kernel::account::Counters;
use units::Nanos;

fn main() -> Result<(), String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (name, file, turns) = match &words[..] {
        [name, file] => (name, file, None),
        [name, file, busy, idle] => (name, file, Some((length(busy)?, length(idle)?))),
        _ => return Err("usage: hog NAME FILE [BUSY IDLE]".to_owned()),
    };
    run(name, file, turns).map_err(|error| format!("{file}: {error}"))
}

fn length(text: &str) -> Result<Nanos, String> {
    text.parse().map_err(|error| format!("{text}: {error}"))
}

fn run(name: &str, file: &str, turns: Option<(Nanos, Nanos)>) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(file)?);
    let is_over = Arc::new(AtomicBool::new(false));
    let tell = Arc::clone(&is_over);
    thread::spawn(move || {
        let _ = io::stdin().read_to_end(&mut Vec::new());
        tell.store(true, Ordering::Relaxed);
    });
    rustix::thread::set_name(&CString::new(name).map_err(io::Error::other)?)?;
    writeln!(io::stdout(), "ready")?;
    for (begin, end) in stretches(&is_over, turns, &Counters::open()?) {
        writeln!(file, "{begin} {end}")?;
    }
    file.flush()
}

/// Nothing between two readings of the clock takes a microsecond: a longer gap is time of other threads if the kernel
/// has put this one on a CPU since, and otherwise of an interrupt or the hypervisor, which take it from this one.
const GAP: Nanos = Nanos::from_micros(5);

/// A test's hogs run for seconds, in periods of milliseconds.
const MOST: usize = 1 << 20;

fn stretches(is_over: &AtomicBool, turns: Option<(Nanos, Nanos)>, counters: &Counters) -> Vec<(u64, u64)> {
    let mut stretches = Vec::with_capacity(4_096);
    let mut on_cpu = counters.moment();
    let mut begin = on_cpu.at;
    let (mut last, mut busy_from) = (begin, clock::thread_cpu());
    while !is_over.load(Ordering::Relaxed) && stretches.len() < MOST {
        let now = clock::now();
        if now - last > GAP {
            let again = counters.moment();
            if on_cpu.until(&again).slices > 0 {
                stretches.push((begin.0, last.0));
                begin = again.at;
            }
            (last, on_cpu) = (again.at, again);
        } else {
            last = now;
        }
        if let Some((busy, idle)) = turns
            && clock::thread_cpu() - busy_from >= busy
        {
            stretches.push((begin.0, last.0));
            clock::sleep_until(last + idle);
            (on_cpu, busy_from) = (counters.moment(), clock::thread_cpu());
            (begin, last) = (on_cpu.at, on_cpu.at);
        }
    }
    stretches.push((begin.0, last.0));
    stretches
}
