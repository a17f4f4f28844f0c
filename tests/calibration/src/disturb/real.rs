//! The recorded pauses compared with what the paused process saw: it is a hiccup meter.

use std::process::Command;

use record::observation::disturb::Episode;
use rustix::thread::{CpuSet, sched_setaffinity};
use testkit::wait;
use units::Nanos;

use super::{Running, Victim, finished, kept};
use crate::hiccup::{Metering, Seen};
use crate::quiet;

/// On a busy host, `disturb` itself may not run when a pause is due; it records that it was not done. Every pause that
/// was done is checked, and one of these runs at least must have done all.
const RUNS: u32 = 5;

/// If this fails, the planted disturbance differs from the recorded one.
#[test]
fn the_recorded_pauses_are_the_real_ones() {
    let _alone = quiet::alone();
    assert!((0..RUNS).any(|_| does_all_in_a_run()), "in each of {RUNS} runs, a pause was not done");
}

/// Checks the pauses of a run; returns whether all of them were done.
fn does_all_in_a_run() -> bool {
    let victim = Metering::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let pid = victim.pid().as_raw_nonzero().to_string();
    let schedule = ["--for", "40ms", "--every", "200ms", "--jitter", "20ms", "--seed", "7", "--count", "5"];
    let (episodes, results, zero) = finished(&["pause", "-p", &pid], &schedule, folder.path());
    assert_eq!((results.episodes, results.seed), (5, 7));
    let seen = victim.stop();
    for episode in &episodes {
        let (intended, Some(real)) = (episode.intended, episode.real) else { continue };
        assert!(real.begin_ns >= intended.begin_ns && real.end_ns >= intended.end_ns, "{episode:?}");
        assert!(real.end_ns.unwrap() - real.begin_ns >= 40_000_000, "{episode:?}");
        assert_stalled(&seen, episode, zero);
    }
    let again = tempfile::tempdir().unwrap();
    let other = Victim::start();
    let (repeated, ..) = finished(&["pause", "-p", &other.pid().to_string()], &schedule, again.path());
    let intended = |episodes: &[Episode]| episodes.iter().map(|each| each.intended).collect::<Vec<_>>();
    assert_eq!(intended(&episodes), intended(&repeated), "the same seed is the same schedule");
    results.skipped == 0
}

/// If this fails, a pause is recorded from its signal on, while most of the process continues.
///
/// The kernel gives the signal to the first thread, which cannot run here: a real-time hog has its CPU. Until the
/// hog ends, the meter on the other CPU keeps ticking.
#[test]
fn a_pause_begins_when_every_thread_has_stopped() {
    let _alone = quiet::alone();
    let victim = Metering::start(&["--cpus", "1"]);
    let mut first = CpuSet::new();
    first.set(0);
    sched_setaffinity(Some(victim.pid()), &first).unwrap();
    let spin = ["-c", "0", "chrt", "-f", "50", "sh", "-c", "while :; do :; done"];
    let mut hog = Command::new("taskset").args(spin).spawn().unwrap();
    let spins = || is_real_time_shell(hog.id());
    assert!(wait::until(Nanos::from_secs(10), spins), "this test needs taskset, chrt and root");
    let folder = tempfile::tempdir().unwrap();
    let pid = victim.pid().as_raw_nonzero().to_string();
    let line = ["pause", "-p", &pid, "--start", "100ms", "--for", "400ms", "--count", "1"];
    let run = Running::start_in(&line, folder.path());
    clock::sleep_until(clock::now() + Nanos::from_millis(250));
    hog.kill().unwrap();
    hog.wait().unwrap();
    run.wait_for_success();
    let (episodes, results, zero) = kept(folder.path());
    let seen = victim.stop();
    assert_eq!((results.episodes, results.skipped), (1, 0), "{episodes:?}");
    let late = episodes[0].real.unwrap().begin_ns - episodes[0].intended.begin_ns;
    assert!(late > 50_000_000, "the hog did not hold the signal back: {episodes:?}");
    assert_stalled(&seen, &episodes[0], zero);
}

/// Whether the process has become the shell that spins, with a real-time policy: fields 2 and 41 of proc_pid_stat(5).
fn is_real_time_shell(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let Some((name, rest)) = stat.rsplit_once(')') else { return false };
    name.ends_with("(sh") && rest.split_whitespace().nth(41 - 3) == Some("1")
}

/// Each recorded pause must be entirely within a stall that was seen on every CPU, from the first tick of 1 ms that
/// was due in it. A busy host makes stalls longer, never shorter.
fn assert_stalled(seen: &Seen, episode: &Episode, zero: u64) {
    let theirs = seen.observed.document.time.started_monotonic_ns;
    let real = episode.real.unwrap();
    let (begin, end) = (zero + real.begin_ns, zero + real.end_ns.unwrap());
    for meter in &seen.results.meters {
        let within = seen.stalls.iter().filter(|stall| stall.cpu == meter.cpu).any(|stall| {
            let at = theirs + stall.at_ns;
            at <= begin + 1_000_000 && at + stall.length_ns >= end
        });
        assert!(within, "{episode:?} is not in what {meter:?} saw: {:?}", seen.stalls);
    }
}
