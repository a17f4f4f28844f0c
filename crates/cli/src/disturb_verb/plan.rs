//! From options to a spec: a schedule, and a disturbance that is prepared only once the guard runs.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use host::disturb::{Cut, Direction, Effects, Force, PauseMethod, Scope, Version, Victim, Work};
use run::observe::disturb::{DisturbSpec, Ready};
use schedule::{Episodes, Timing};
use units::{Bytes, Nanos};

use super::args::{By, CpuArgs, DiskArgs, Means, MemoryArgs, NetArgs, PauseArgs, Ppm, TimingArgs, Way};

/// Checks everything that can be checked before the guard runs.
///
/// # Errors
///
/// One line that names the invalid option.
pub fn plan(means: &Means) -> anyhow::Result<DisturbSpec> {
    let Some(timing) = means.timing() else { bail!("this is started by `parallax disturb` alone") };
    let seed = timing.seed.unwrap_or_else(run::load::fresh_seed);
    let episodes = episodes(timing, seed)?;
    let (what, pid, ready) = match means {
        Means::Pause(args) => pause(args)?,
        Means::Cpu(args) => cpu(args)?,
        Means::Memory(args) => memory(args)?,
        Means::Disk(args) => disk(args)?,
        Means::Net(args) => net(args)?,
        Means::Guard | Means::Worker { .. } => bail!("this is started by `parallax disturb` alone"),
    };
    Ok(DisturbSpec { means: means.name(), what, pid, seed, episodes, ready })
}

type Planned = (String, Option<u32>, Ready);

fn episodes(timing: &TimingArgs, seed: u64) -> anyhow::Result<Episodes> {
    Ok(Episodes::new(Timing {
        start: timing.start,
        every: timing.every,
        length: timing.length,
        jitter: timing.jitter,
        seed,
        count: timing.count,
        until: timing.duration,
    })?)
}

fn force(force: bool) -> Force {
    if force { Force::Yes } else { Force::No }
}

fn pause(args: &PauseArgs) -> anyhow::Result<Planned> {
    let timing = &args.timing;
    ensure!(
        timing.length.is_some() || timing.duration.is_some(),
        "how long is the pause? Add --for 50ms, and --every 5s to repeat it"
    );
    let victim = Victim::open(args.pid, force(args.force))?;
    let of_process = |version| PauseMethod::Freezer { scope: Scope::Process, version };
    let (how, by) = match args.by {
        By::Signal => (PauseMethod::Signal, "SIGSTOP"),
        By::Cgroup => (of_process(None), "freezing a new control group"),
        By::CgroupV1 => (of_process(Some(Version::One)), "freezing a new control group, version 1"),
        By::CgroupV2 => (of_process(Some(Version::Two)), "freezing a new control group, version 2"),
        By::WholeGroup => {
            (PauseMethod::Freezer { scope: Scope::Group, version: None }, "freezing its whole control group")
        }
    };
    let what = format!("pause pid {} ({}) by {by}", victim.pid(), victim.name());
    Ok((what, Some(args.pid), Ready::Pause(victim, how)))
}

fn cpu(args: &CpuArgs) -> anyhow::Result<Planned> {
    let victim = args.pid.map(|pid| Victim::open(pid, Force::Yes)).transpose()?;
    let Ppm(duty_ppm) = args.duty;
    ensure!(duty_ppm > 0, "--duty must be more than 0%");
    let cpus = args.cpus.as_ref().map(|list| list.0.as_slice()).unwrap_or_default();
    let hogs = args.hogs.unwrap_or_else(|| cpus.len().max(1) as u64);
    ensure!(hogs <= WORKERS_MAX, "--hogs {hogs} is over {WORKERS_MAX}; use fewer");
    if let Some(cpu) =
        cpus.iter().find(|cpu| !Path::new(&format!("/sys/devices/system/cpu/cpu{cpu}")).exists())
    {
        bail!("this host has no CPU {cpu}; `nproc --all` prints how many it has");
    }
    let cpu_of = |n: u64| cpus.get(n as usize % cpus.len().max(1)).copied();
    let works = (0..hogs).map(|n| Work::Cpu { duty_ppm, cpu: cpu_of(n), nice: args.nice }).collect();
    let place = match cpus {
        [] => String::new(),
        cpus => format!(" on CPU {}", list(cpus)),
    };
    let in_group = victim.as_ref().map_or_else(String::new, |victim| {
        format!(", in the group of pid {} ({})", victim.pid(), victim.name())
    });
    let plural = if hogs == 1 { "hog" } else { "hogs" };
    let what = format!("{hogs} CPU {plural} of {}%{place}{in_group}", duty_ppm as f64 / 1e4);
    Ok((what, args.pid, Ready::Work(works, victim)))
}

fn list(cpus: &[usize]) -> String {
    cpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

fn memory(args: &MemoryArgs) -> anyhow::Result<Planned> {
    ensure!(args.size.0 > 0, "--size must be more than 0");
    if let Some(left) = memory_left().filter(|&left| args.size > left && !args.force) {
        bail!(
            "--size {} is more than the {left} that this host has available, so it would swap or kill processes; add \
             --force to do it anyway",
            args.size
        );
    }
    let rate =
        args.touch.map_or_else(|| "touched once".to_owned(), |rate| format!("touched at {}/s", Bytes(rate)));
    let what = format!("{} of memory, {rate}", args.size);
    let work = Work::Memory { bytes: args.size.0, bytes_per_s: args.touch };
    Ok((what, None, Ready::Work(vec![work], None)))
}

/// Memory available without swapping; `None` if the kernel does not report it.
fn memory_left() -> Option<Bytes> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(Bytes(kib.checked_mul(1_024)?))
}

fn disk(args: &DiskArgs) -> anyhow::Result<Planned> {
    let shown = args.folder.display();
    let folder =
        std::fs::canonicalize(&args.folder).with_context(|| format!("cannot use the directory `{shown}`"))?;
    ensure!(folder.is_dir(), "`{shown}` is not a directory; give one on the disk to load");
    ensure!(args.block <= args.file, "--block {} is more than --file {}", args.block, args.file);
    ensure!(args.block.0 <= 1 << 30, "--block {} is over 1GiB; use less", args.block);
    ensure!(args.writers <= WORKERS_MAX, "--writers {} is over {WORKERS_MAX}; use fewer", args.writers);
    let space =
        rustix::fs::statvfs(&folder).with_context(|| format!("cannot read the free space of `{shown}`"))?;
    let left = Bytes(space.f_bavail.saturating_mul(space.f_frsize));
    let takes = Bytes(args.file.0.saturating_mul(args.writers));
    ensure!(
        takes.0 <= left.0 / 2,
        "the files would take {takes}, more than half of the {left} free in `{shown}`; reduce --file or --writers"
    );
    let each = args.rate.map_or_else(|| "one after another".to_owned(), |rate| format!("{rate}/s"));
    let what = format!("fsync of {} in {}, {each}, {} at once", args.block, folder.display(), args.writers);
    let work = Work::Disk {
        folder: PathBuf::new(),
        block_bytes: args.block.0,
        file_bytes: args.file.0,
        per_s: args.rate,
    };
    Ok((what, None, Ready::Disk { folder, work, writers: args.writers }))
}

fn net(args: &NetArgs) -> anyhow::Result<Planned> {
    let cut = match (args.reset, args.black_hole) {
        (true, _) => Cut::Reset,
        (_, true) => Cut::BlackHole,
        _ => Cut::None,
    };
    let effects = Effects {
        direction: match args.direction {
            Way::Responses => Direction::Responses,
            Way::Requests => Direction::Requests,
            Way::Both => Direction::Both,
        },
        delay: args.delay,
        jitter: args.delay_jitter,
        loss_ppm: args.loss.0,
        retransmission: args.rto,
        bytes_per_s: args.rate,
        cut,
    };
    ensure!(
        args.delay_jitter <= args.delay,
        "--delay-jitter is more than --delay, so data would arrive before it is sent; use at most --delay"
    );
    ensure!(args.delay <= Nanos::from_secs(3_600), "--delay is over 1h; use less");
    ensure!(args.listen != args.target, "LISTEN and TARGET are the same; the relay would relay to itself");
    let mut does = Vec::new();
    if args.delay > Nanos::ZERO {
        does.push(format!("delay {} ± {}", args.delay.written(), args.delay_jitter.written()));
    }
    if args.loss.0 > 0 {
        does.push(format!("loss of {}% as stalls of {}", args.loss.0 as f64 / 1e4, args.rto.written()));
    }
    does.extend(args.rate.map(|rate| format!("{}/s", Bytes(rate))));
    does.extend((cut == Cut::Reset).then(|| "reset".to_owned()));
    does.extend((cut == Cut::BlackHole).then(|| "black hole".to_owned()));
    ensure!(
        !does.is_empty(),
        "the relay has nothing to do; add --delay, --loss, --rate, --reset or --black-hole"
    );
    let way = match (cut, args.direction) {
        (Cut::None, Way::Responses) => " on responses",
        (Cut::None, Way::Requests) => " on requests",
        _ => " in both directions",
    };
    let what = format!("relay to {}: {}{way}", args.target, does.join(", "));
    Ok((what, None, Ready::Net { listen: args.listen, target: args.target, effects }))
}

/// Maximum number of workers. Each is a process; this is enough for the largest hosts.
const WORKERS_MAX: u64 = 1_024;
