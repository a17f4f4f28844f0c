//! `parallax drive --calibrate`: prints the maximum that the load generator reached.

use std::io::{self, Write};

use run::calibrate::{Calibration, calibrate};
use run::ceiling;
use run::options::GivenOptions;

use crate::environment::Process;
use crate::exit::Exit;
use crate::output::printed;
use crate::signals;

/// Measures the maximum of this load generator, stores it for later runs, and prints it.
///
/// # Errors
///
/// When it cannot be measured or stored.
pub fn run(given: &GivenOptions) -> anyhow::Result<Exit> {
    let process = Process::new();
    let calibration = calibrate(given, &process.environment(), &signals::stop_flag()?)?;
    printed(if given.has("json") { print_json(&calibration) } else { print(&calibration) })?;
    Ok(Exit::Done)
}

fn print_json(calibration: &Calibration) -> io::Result<()> {
    let mut text = ceiling::as_json(&calibration.shape, &calibration.ceiling);
    text["kept_in"] = record::escape_text(&calibration.path.display().to_string()).into();
    writeln!(io::stdout(), "{text:#}")
}

fn print(calibration: &Calibration) -> io::Result<()> {
    let Calibration { shape, ceiling, path } = calibration;
    let mut out = io::stdout();
    writeln!(out, "maximum of this load generator, against the built-in target")?;
    writeln!(out, "  {:>9}/s  closed loop", ceiling.throughput_per_s)?;
    match ceiling.rate_per_s {
        Some(rate) => {
            writeln!(out, "  {rate:>9}/s  open loop: the highest rate at which the schedule was kept")?
        }
        None => writeln!(
            out,
            "  open loop: no rate was found at which the schedule was kept; this host is too busy"
        )?,
    }
    writeln!(out, "  shape      {}", record::escape_text(shape))?;
    writeln!(out, "  stored in  {}", record::escape_text(&path.display().to_string()))
}
