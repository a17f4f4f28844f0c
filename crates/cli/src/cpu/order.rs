//! Reads the numbers on the command line: interval and process IDs.

use anyhow::{bail, ensure};
use host::process::{Wanted, is_process};
use units::Nanos;

use super::args::{self, Args};

/// What to measure, for how long and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    pub interval: Nanos,
    /// How many intervals; `None` until Ctrl-C.
    pub count: Option<u64>,
    pub wanted: Wanted,
}

/// The default interval: short enough to wait for, and 500 ticks of the slowest kernel (100 Hz).
const INTERVAL: Nanos = Nanos::from_secs(5);
/// The shortest interval: at least one tick of the slowest kernel (100 Hz), because the kernel counts by ticks.
const SHORTEST: Nanos = Nanos::from_millis(10);
const LONGEST: Nanos = Nanos::from_secs(7 * 24 * 3_600);

impl Order {
    /// # Errors
    ///
    /// When the numbers make no sense or are ambiguous, in one line.
    pub fn of(args: &Args) -> anyhow::Result<Order> {
        Order::read(args, is_process)
    }

    fn read(args: &Args, is_process: impl Fn(u32) -> bool) -> anyhow::Result<Order> {
        let mut times: Vec<&str> = args.numbers.iter().map(String::as_str).collect();
        let mut pids = args.pid.clone();
        let group = args.cgroup.is_some() || args.unit.is_some();
        let ways = [args.all, args.comm.is_some(), group, !pids.is_empty(), !args.pids.is_empty()];
        let ways = ways.into_iter().filter(|&way| way).count();
        ensure!(
            ways <= 1,
            "select processes in one way only: PID…, -p PID, --cgroup PATH, --unit NAME, --comm NAME or --all"
        );
        pids.extend(&args.pids);
        if ways == 0 {
            let from = first_pid(&times, is_process)?;
            pids = times
                .split_off(from)
                .into_iter()
                .map(args::pid)
                .collect::<Result<_, _>>()
                .map_err(anyhow::Error::msg)?;
        }
        if let [_, more, ..] = times[..] {
            bail!("`{more}` is one number too many; a number of intervals is -n {more}");
        }
        let wanted = match (&args.comm, &args.cgroup, &args.unit) {
            (Some(name), ..) => Wanted::Comm(name.clone()),
            (_, Some(path), _) => Wanted::Cgroup(path.clone()),
            (.., Some(name)) => Wanted::unit(name)?,
            _ if args.all => Wanted::All,
            _ if args.only => Wanted::Only(once(pids)),
            _ => Wanted::Trees(once(pids)),
        };
        let interval = times.first().map_or(Ok(INTERVAL), |text| interval(text))?;
        Ok(Order { interval, count: Some(args.count).filter(|&count| count > 0), wanted })
    }
}

/// The index of the first process ID among the numbers `[SECONDS] PID…`.
fn first_pid(numbers: &[&str], is_process: impl Fn(u32) -> bool) -> anyhow::Result<usize> {
    match numbers {
        [] => bail!("which processes? Give PID…, --comm NAME or --all"),
        [one] if !one.starts_with(|first: char| first.is_ascii_digit()) => {
            bail!(
                "which processes? For processes of the name `{one}` write `parallax cpu --comm {one}`; else give PID…"
            )
        }
        [one] if one.parse::<u64>().is_err() => {
            bail!("which processes? Use `parallax cpu {one} PID…`, or --all")
        }
        [_] => Ok(0),
        [first, second, rest @ ..] => {
            // Other tools take a count here.
            let is_gone = second.parse().is_ok_and(|number| number > 0 && !is_process(number));
            ensure!(
                rest.is_empty() || !is_gone,
                "there is no process {second}; a number of intervals is `parallax cpu -n {second} {first} {}`",
                rest.join(" ")
            );
            Ok(1)
        }
    }
}

fn interval(text: &str) -> anyhow::Result<Nanos> {
    let with_unit = text.ends_with(|last: char| last.is_ascii_alphabetic());
    let written = if with_unit { text.to_owned() } else { format!("{text}s") };
    let interval: Nanos = match written.parse() {
        Ok(interval) => interval,
        Err(_) => bail!("`{text}` is not a time; SECONDS is for example 5, 0.5 or 500ms"),
    };
    ensure!(
        (SHORTEST..=LONGEST).contains(&interval),
        "`{text}` is out of range; SECONDS is from {SHORTEST} to {} hours",
        LONGEST.0 / Nanos::from_secs(3_600).0
    );
    Ok(interval)
}

/// Each ID once, in the given order.
fn once(pids: Vec<u32>) -> Vec<u32> {
    let mut seen = std::collections::BTreeSet::new();
    pids.into_iter().filter(|&pid| seen.insert(pid)).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn read(line: &str) -> anyhow::Result<Order> {
        let line = ["cpu"].into_iter().chain(line.split_ascii_whitespace());
        let args = Line::try_parse_from(line)?.args;
        Order::read(&args, |pid| matches!(pid, 1 | 7141 | 19870))
    }

    #[track_caller]
    fn means(line: &str, seconds: u64, count: Option<u64>, wanted: Wanted) {
        assert_eq!(
            read(line).unwrap(),
            Order { interval: Nanos::from_secs(seconds), count, wanted },
            "{line}"
        );
    }

    #[test]
    fn the_first_of_several_numbers_is_the_interval() {
        let pids = |pids: &[u32]| Wanted::Trees(pids.to_vec());
        means("7141", 5, Some(1), pids(&[7141]));
        means("10 7141", 10, Some(1), pids(&[7141]));
        means("-n 2 5 7141", 5, Some(2), pids(&[7141]));
        means("5 7141 19870 7141 -n 0", 5, None, pids(&[7141, 19870]));
        means("10 -- 7141 19870", 10, Some(1), pids(&[7141, 19870]));
        means("5 -n 2 -- 7141", 5, Some(2), pids(&[7141]));
        means("-p 7141 5 -n 2", 5, Some(2), pids(&[7141]));
        means("-p 7141,19870", 5, Some(1), pids(&[7141, 19870]));
        means("--only 7141", 5, Some(1), Wanted::Only(vec![7141]));
        means("--cgroup /a/b 10", 10, Some(1), Wanted::Cgroup("/a/b".to_owned()));
        means("2s -n 3 --all", 2, Some(3), Wanted::All);
        means("--comm mariadbd 3000ms", 3, Some(1), Wanted::Comm("mariadbd".to_owned()));
    }

    /// If this fails, `cpu 10 $(pgrep NAME)` measures thousands of intervals of the wrong processes, or `cpu 5 1 PID`
    /// one where two processes were meant.
    #[test]
    fn a_number_after_the_interval_is_a_process_whatever_processes_there_are() {
        let pids = |pids: &[u32]| Wanted::Trees(pids.to_vec());
        means("10 7141 19870", 10, Some(1), pids(&[7141, 19870]));
        means("5 1 7141", 5, Some(1), pids(&[1, 7141]));
        let error = read("5 2 7141").unwrap_err().to_string();
        assert_eq!(error, "there is no process 2; a number of intervals is `parallax cpu -n 2 5 7141`");
    }

    #[test]
    fn what_makes_no_sense_is_told_in_one_line() {
        for (line, reported) in [
            ("", "which processes? Give PID…, --comm NAME or --all"),
            ("5s", "which processes? Use `parallax cpu 5s PID…`, or --all"),
            (
                "nginx",
                "which processes? For processes of the name `nginx` write `parallax cpu --comm nginx`; else give PID…",
            ),
            (
                "--all -p 7141",
                "select processes in one way only: PID…, -p PID, --cgroup PATH, --unit NAME, --comm NAME or --all",
            ),
            ("--all 5 2", "`2` is one number too many; a number of intervals is -n 2"),
            ("5 2 -- 7141", "`2` is one number too many; a number of intervals is -n 2"),
            ("0 --all", "`0` is out of range; SECONDS is from 10.0 ms to 168 hours"),
            ("five --all", "`five` is not a time; SECONDS is for example 5, 0.5 or 500ms"),
            ("5 0x10", "`0x10` is not a process ID; `pgrep NAME` finds the IDs of a name, --all takes all"),
            ("5 0", "`0` is not a process ID; `pgrep NAME` finds the IDs of a name, --all takes all"),
        ] {
            assert_eq!(read(line).unwrap_err().to_string(), reported, "{line}");
        }
    }
}
