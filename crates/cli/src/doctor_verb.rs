//! `parallax doctor`: what this host supports, and the fix for what it does not.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use host::{Ability, HiccupMeter, Status};
use reactor::StampProbe;
use record::diagnosis::{Check, CheckStatus, Diagnosis};
use record::document::SCHEMA_VERSION;
use units::Nanos;

use crate::exit::Exit;
use crate::output::printed;
use crate::terminal;

/// Check what this host supports, and how to fix what it doesn't.
///
/// Reads the kernel's settings and makes two short tests: whether the kernel timestamps arriving packets, and how late
/// a sleeping thread wakes up. Nothing on the host is changed. If a host lacks something that a command needs, the
/// command reports that too.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  parallax doctor
  parallax doctor --json | jq '.checks[] | select(.status != \"ok\")'

Exit code: 0, whatever it finds.")]
pub struct Args {
    /// Print the result as JSON (formats/doctor.schema.json).
    #[arg(long)]
    json: bool,

    /// Disable colors, as with NO_COLOR set.
    #[arg(long)]
    no_color: bool,
}

/// Descriptors below this are too few for a load of ten thousand connections.
const FEW_FILES: u64 = 16_384;

/// Fewer local ports than this are too few for as many connections, each recently closed.
const FEW_PORTS: u64 = 20_000;

/// How long the sleeping thread is measured.
const TRIAL: Nanos = Nanos::from_millis(500);

/// Time between two of its ticks.
const TICK: Nanos = Nanos::from_millis(1);

/// A wake-up later than this delays scheduled requests noticeably.
const LATE: Nanos = Nanos::from_millis(1);

/// Runs the verb.
///
/// # Errors
///
/// When the result cannot be printed.
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let mut checks = host::abilities(Path::new("/"), config().as_deref());
    checks.extend([stamps(), files(), ports(), slack(), hiccup()]);
    let mut out = io::stdout();
    let style = terminal::style(&out, args.no_color);
    printed(if args.json { as_json(&checks, &mut out) } else { as_text(&checks, &mut out, style) })?;
    Ok(Exit::Done)
}

/// The kernel's configuration, if the kernel publishes it.
fn config() -> Option<String> {
    let mut text = String::new();
    if let Ok(packed) = File::open("/proc/config.gz") {
        flate2::read::GzDecoder::new(packed).take(LONGEST_CONFIG).read_to_string(&mut text).ok()?;
        return Some(text);
    }
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    let file = File::open(format!("/boot/config-{}", release.trim())).ok()?;
    file.take(LONGEST_CONFIG).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Configurations of distributions have a quarter of a megabyte.
const LONGEST_CONFIG: u64 = 4 << 20;

fn ability(
    name: &'static str,
    status: Status,
    found: String,
    means: &'static str,
    fix: &'static str,
) -> Ability {
    Ability { name, status, found, means, fix: if status == Status::Ok { "" } else { fix } }
}

fn stamps() -> Ability {
    let means = "drive separates when a response arrived from when the client read it (client_lag)";
    let fix =
        "use a kernel that timestamps arriving packets (SO_TIMESTAMPNS); Linux does, some sandboxes do not";
    match StampProbe::start() {
        Ok(_) => ability("arrival_stamps", Status::Ok, "tried on loopback".to_owned(), means, fix),
        Err(why) => ability("arrival_stamps", Status::Missing, why, means, fix),
    }
}

fn files() -> Ability {
    let means = "drive opens one descriptor per connection";
    let limit = host::open_files_limit();
    let status = if limit.is_none_or(|limit| limit >= FEW_FILES) { Status::Ok } else { Status::Limited };
    let found = limit.map_or_else(|| "no limit".to_owned(), |limit| format!("at most {limit}"));
    ability("descriptors", status, found, means, "ulimit -n 1048576")
}

fn ports() -> Ability {
    let means = "drive uses one local port per connection, and a port stays in use for a minute after the connection is closed";
    let fix = "as root: sysctl net.ipv4.ip_local_port_range='1024 65535'";
    match host::local_ports() {
        None => {
            ability("ports", Status::Limited, "unknown: the kernel does not report it".to_owned(), means, fix)
        }
        Some((first, last)) => {
            let many = u64::from(last - first) + 1 >= FEW_PORTS;
            let status = if many { Status::Ok } else { Status::Limited };
            ability("ports", status, format!("{first} to {last}"), means, fix)
        }
    }
}

fn slack() -> Ability {
    let means = "timers can fire late by this much; drive compensates for it";
    let text = std::fs::read_to_string("/proc/self/timerslack_ns").ok();
    let slack = text.and_then(|text| text.trim().parse::<u64>().ok()).map(Nanos);
    let status =
        if slack.is_some_and(|slack| slack <= Nanos::from_micros(50)) { Status::Ok } else { Status::Limited };
    let found =
        slack.map_or_else(|| "unknown: the kernel does not report it".to_owned(), |slack| slack.to_string());
    ability("timer_slack", status, found, means, "start parallax from a shell whose timer slack is 50 us")
}

fn hiccup() -> Ability {
    let means = "sleeping threads wake up this late here, so no client timestamp on this host can be more accurate than that";
    let fix = "stop other programs, pin parallax to free CPUs, or use another host; `parallax hiccup` measures for longer";
    let meter = match HiccupMeter::start(TICK) {
        Ok(meter) => meter,
        Err(error) => return ability("hiccup", Status::Missing, error.to_string(), means, fix),
    };
    let end = clock::now() + TRIAL;
    clock::sleep_until(end);
    let mut late: Vec<Nanos> = meter.take_before(end).iter().map(|wake| wake.late()).collect();
    late.sort_unstable();
    let (Some(&middle), Some(&worst)) = (late.get(late.len() / 2), late.last()) else {
        let found = format!("a sleeping thread did not wake up once in {TRIAL}");
        return ability("hiccup", Status::Limited, found, means, fix);
    };
    let found = format!("median {middle}, at most {worst} in {TRIAL}");
    ability("hiccup", if worst < LATE { Status::Ok } else { Status::Limited }, found, means, fix)
}

fn as_text(checks: &[Ability], out: &mut dyn Write, style: report::Style) -> io::Result<()> {
    for check in checks {
        let word = format!("{:8}", check.status.name());
        let word = if check.status == Status::Ok { style.faint(word) } else { style.strong(word) };
        let found = record::escape_text(&check.found);
        writeln!(out, "{word} {:18} {found}", check.name)?;
        if check.status != Status::Ok {
            writeln!(out, "{}", report::wrap("           means  ", check.means, style.width))?;
            writeln!(out, "{}", report::wrap("           fix    ", check.fix, style.width))?;
        }
    }
    let count = |status| checks.iter().filter(|check| check.status == status).count();
    let (ok, limited, missing) = (count(Status::Ok), count(Status::Limited), count(Status::Missing));
    writeln!(out, "\n{ok} ok, {limited} limited, {missing} missing")
}

fn as_json(checks: &[Ability], out: &mut dyn Write) -> io::Result<()> {
    let check = |check: &Ability| Check {
        check: check.name.to_owned(),
        status: match check.status {
            Status::Ok => CheckStatus::Ok,
            Status::Limited => CheckStatus::Limited,
            Status::Missing => CheckStatus::Missing,
        },
        found: record::escape_text(&check.found),
        means: check.means.to_owned(),
        fix: Some(check.fix.to_owned()).filter(|fix| !fix.is_empty()),
    };
    let checks = checks.iter().map(check).collect();
    report::json(&Diagnosis { schema_version: SCHEMA_VERSION, checks }, out)
}
