//! Profiles of programs whose shares are known. Needs the right to load eBPF programs, a C compiler and JDK 17.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use record::observation::profile::{Picture, ProfileLosses, WaitKind};
use record::stacks::focus::Focus;
use record::stacks::{Stacks, changes};
use watch::profile::{Profile, ProfileError, Profiler};

/// Two profiles at the same time take each other's CPUs.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Killed when dropped.
struct Planted(Child);

impl Planted {
    fn start(command: &mut Command) -> Planted {
        Planted(
            command.stdin(Stdio::null()).spawn().unwrap_or_else(|e| panic!("cannot start {command:?}: {e}")),
        )
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn planted(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/planted").join(file)
}

/// Compiles `shares.c` with the given options.
fn compiled(folder: &Path, options: &[&str]) -> PathBuf {
    compiled_from("shares.c", folder, options)
}

fn compiled_from(file: &str, folder: &Path, options: &[&str]) -> PathBuf {
    let binary = folder.join(file.trim_end_matches(".c"));
    let made = Command::new("cc")
        .args(options)
        .arg("-o")
        .arg(&binary)
        .arg(planted(file))
        .arg("-lpthread")
        .status()
        .expect("a C compiler is needed: install gcc");
    assert!(made.success());
    binary
}

const WITH_FRAMES: [&str; 3] = ["-O1", "-g", "-fno-omit-frame-pointer"];

fn profile(pid: u32, rate: u32, length: Duration) -> Profile {
    let profiler =
        Profiler::start(&[pid], rate).expect("the right to load eBPF programs is needed: run as root");
    finished(profiler, length)
}

/// A profile of at least `samples` samples, as long as that takes.
fn profile_of(pid: u32, rate: u32, samples: u64) -> Profile {
    let mut profiler = profiler(pid, rate);
    sample(&mut profiler, samples);
    profiler.finish(&[]).expect("the kernel tells how it ended")
}

fn profiler(pid: u32, rate: u32) -> Profiler {
    Profiler::start(&[pid], rate).expect("the right to load eBPF programs is needed: run as root")
}

fn sample(profiler: &mut Profiler, samples: u64) {
    let end = clock::now() + units::Nanos::from_secs(60);
    let mut seen = 0;
    while seen < samples && clock::now() < end && profiler.look() {
        clock::sleep_until(profiler.due().min(end));
        seen += profiler.line().samples;
    }
    assert!(seen >= samples, "the host left the server {seen} samples in a minute");
}

fn finished(mut profiler: Profiler, length: Duration) -> Profile {
    let end = clock::now() + units::Nanos(length.as_nanos() as u64);
    while clock::now() < end && profiler.look() {
        clock::sleep_until(profiler.due().min(end));
    }
    profiler.finish(&[]).expect("the kernel tells how it ended")
}

fn pause(millis: u64) {
    clock::sleep_until(clock::now() + units::Nanos::from_millis(millis));
}

/// The share of the weight of all stacks, including whatever the frame calls.
fn share(stacks: &Stacks, frame: &str) -> f64 {
    let whole = stacks.total() as f64;
    let found = stacks.frames().into_iter().find(|row| row.frame == frame);
    found.map_or(0.0, |row| row.total as f64 / whole)
}

fn stacks(profile: &Profile, picture: Picture) -> &Stacks {
    &profile.stacks[picture as usize]
}

/// If this fails, the widths of a flame graph do not show where the time goes.
///
/// 997 samples per second for 6 s: if each were a coin toss with 3:1, the share would be within 0.75 +- 0.0168 in 997
/// of 1000 runs even where half of the CPU is taken by others; evenly spaced samples scatter less. 3 points are the
/// promise.
#[test]
fn the_measured_shares_are_the_planted_ones() {
    let _alone = ONE_AT_A_TIME.lock();
    let folder = tempfile::tempdir().unwrap();
    let server = Planted::start(Command::new(compiled(folder.path(), &WITH_FRAMES)).args(["30000", "10000"]));
    let profile = profile(server.pid(), 997, Duration::from_secs(6));
    let on_cpu = stacks(&profile, Picture::OnCpu);
    let of_both = share(on_cpu, "burn_three") + share(on_cpu, "burn_one");
    let three = share(on_cpu, "burn_three") / of_both;
    println!("burn_three {three:.4}, both {of_both:.4}, {:?}", profile.results.pictures[0].count);
    assert!((three - 0.75).abs() < 0.03, "{three}");
    assert!(of_both > 0.9, "{of_both}");
    assert!(share(on_cpu, "main") > 0.9, "callers are there: {:?}", profile.results.quality);

    assert!(share(on_cpu, "burn_[i]") > 0.9, "what was inlined has its name");

    // The sleeper sleeps in the sleep picture, and is nowhere else except on its way there.
    assert!(share(on_cpu, "sleeper") < 0.03, "{}", share(on_cpu, "sleeper"));
    let off_cpu = stacks(&profile, Picture::OffCpu);
    assert!(share(off_cpu, "sleeper") > 0.3, "{:?}", off_cpu.lines().collect::<Vec<_>>());
    assert!(share(off_cpu, "burn_three") + share(off_cpu, "burn_one") < 0.01);
    assert!(profile.results.sleepers.iter().any(|sleeper| sleeper.what.as_deref() == Some("a time to pass")));

    // The one that waits for a lock is found and named.
    assert!(share(off_cpu, "waiter") > 0.2, "{:?}", off_cpu.lines().collect::<Vec<_>>());
    let lock =
        profile.results.waits.iter().find(|wait| wait.kind == WaitKind::Lock).expect("a lock is waited for");
    assert!(lock.share > 0.2, "{lock:?}");
    // In the context of some threads of the host no program may run: then the scheduler's account is there.
    let lost = profile.results.lost;
    assert!(!ProfileLosses { switches: 0, ..lost }.any(), "{lost:?}");
}

/// If this fails, a server that does the same in every period is measured at one point of it.
///
/// The load has the sampler's own frequency: samples at even intervals would all see the same function. 2,000 samples
/// scatter by 0.97 points, and 3 points hold in 998 of 1000 runs.
#[test]
fn a_load_in_step_with_the_sampler_is_measured_rightly() {
    let _alone = ONE_AT_A_TIME.lock();
    let folder = tempfile::tempdir().unwrap();
    let account = folder.path().join("account");
    let mut rhythm = Command::new(compiled_from("rhythm.c", folder.path(), &WITH_FRAMES));
    let server = Planted::start(rhythm.arg("997").arg(&account));
    pause(100);
    let ran = || {
        let bytes = std::fs::read(&account).expect("it keeps an account");
        [0, 8].map(|at| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes")))
    };
    let before = ran();
    let profile = profile_of(server.pid(), 997, 2_000);
    let after = ran();
    let [three, one] = [0, 1].map(|n| (after[n] - before[n]) as f64);
    let truth = three / (three + one);
    let on_cpu = stacks(&profile, Picture::OnCpu);
    let (three, one) = (share(on_cpu, "burn_three"), share(on_cpu, "burn_one"));
    let measured = three / (three + one);
    println!("measured {measured:.4}, truth {truth:.4}, {} samples", on_cpu.total());
    assert!((measured - truth).abs() < 0.03, "{measured} {truth}");
}

/// If this fails, contention looks like work. The truth is the scheduler's account of the thread that spins.
///
/// Two threads on two CPUs, 2,000 samples: they scatter by 1.1 points, and 4 points hold in more than 999 of 1000 runs.
#[test]
fn spinning_has_the_share_of_the_thread_that_spins() {
    let _alone = ONE_AT_A_TIME.lock();
    let folder = tempfile::tempdir().unwrap();
    let server = Planted::start(&mut Command::new(compiled_from("spins.c", folder.path(), &WITH_FRAMES)));
    pause(100);
    let mut profiler = profiler(server.pid(), 997);
    let before = by_thread(server.pid());
    sample(&mut profiler, 2_000);
    let after = by_thread(server.pid());
    let profile = profiler.finish(&[]).expect("the kernel tells how it ended");
    let ran = |name: &str| (after[name] - before[name]) as f64;
    let truth = ran("spinner") / (ran("spinner") + ran("worker"));
    let spins = &profile.results.spins;
    println!("{spins:?}, truth {truth:.4}, {} samples", profile.results.pictures[0].count);
    assert_eq!(spins.len(), 1, "{spins:?}");
    assert_eq!(spins[0].what, "a spinlock of the C library");
    assert!((spins[0].share - truth).abs() < 0.04, "{spins:?}, truth {truth:.4}");
}

/// The nanoseconds on a CPU of each thread, by name.
fn by_thread(pid: u32) -> HashMap<String, u64> {
    let of = |task: PathBuf| {
        let name = std::fs::read_to_string(task.join("comm")).ok()?;
        let account = std::fs::read_to_string(task.join("schedstat")).ok()?;
        Some((name.trim().to_owned(), account.split(' ').next()?.parse().ok()?))
    };
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("the server runs");
    tasks.filter_map(|task| of(task.ok()?.path())).collect()
}

/// If this fails, the time of a Rust function that was inlined belongs to its caller.
#[test]
fn inlined_rust_functions_have_their_names() {
    let _alone = ONE_AT_A_TIME.lock();
    let folder = tempfile::tempdir().unwrap();
    let binary = folder.path().join("inlined");
    let options = ["-O", "-g", "-C", "force-frame-pointers=yes", "--edition", "2021", "-o"];
    let mut rustc = Command::new("rustc");
    assert!(rustc.args(options).arg(&binary).arg(planted("inlined.rs")).status().unwrap().success());
    let server = Planted::start(&mut Command::new(binary));
    let profile = profile_of(server.pid(), 499, 500);
    let on_cpu = stacks(&profile, Picture::OnCpu);
    let inlined = share(on_cpu, "inlined::mix_[i]");
    let (three, one) = (share(on_cpu, "inlined::price_three"), share(on_cpu, "inlined::price_one"));
    println!("mix {inlined:.3}, price_three {three:.3}, price_one {one:.3}");
    assert!(inlined > 0.7 && three > one && one > 0.1, "{:?}", on_cpu.lines().collect::<Vec<_>>());
}

/// If this fails, a JavaScript server's profile is a picture of numbers although it publishes its names.
#[test]
fn a_run_time_that_writes_a_perf_map_has_its_frames_and_another_is_named() {
    let _alone = ONE_AT_A_TIME.lock();
    let folder = tempfile::tempdir().unwrap();
    let run = |options: &[&str]| {
        let mut node = Command::new("node");
        // It also writes a log to its directory.
        node.args(options).arg(planted("shop.js")).current_dir(folder.path());
        let mut server = Planted::start(node.stdout(Stdio::piped()));
        let mut line = String::new();
        BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "serving\n", "Node.js is needed");
        let profile = profile_of(server.pid(), 499, 500);
        let _ = std::fs::remove_file(format!("/tmp/perf-{}.map", server.pid()));
        profile
    };
    let named = run(&["--perf-basic-prof", "--no-turbo-inlining"]);
    let on_cpu = stacks(&named, Picture::OnCpu);
    let of = |function: &str| {
        let found = Focus::of(on_cpu, |frame| frame.contains(function) && frame.ends_with("_[j]"));
        found.total as f64 / found.whole as f64
    };
    let (three, one) = (of("priceThree "), of("priceOne "));
    println!("priceThree {three:.3}, priceOne {one:.3}");
    assert!(three > one && one > 0.1, "{:?}", on_cpu.lines().collect::<Vec<_>>());
    let reasons = |profile: &Profile| {
        let facts = profile.missing.iter().filter(|fact| fact.what == "interpreter");
        facts.map(|fact| fact.why.clone()).collect::<Vec<_>>()
    };
    assert!(reasons(&named).is_empty(), "{:?}", named.missing);
    let nameless = reasons(&run(&[]));
    assert!(
        nameless.len() == 1 && nameless[0].ends_with("start node with --perf-basic-prof"),
        "{nameless:?}"
    );
}

/// Each thread is in exactly one of three states at any time. If this fails, time is lost or counted twice.
///
/// Three threads from begin to end; the walk over threads reports the last instant of each. A switch at the very
/// instant of the end is counted twice or not at all: 1 in 10,000 is 300 us of it.
#[test]
fn the_three_pictures_hold_all_the_time_of_all_threads() {
    let _alone = ONE_AT_A_TIME.lock();
    let folder = tempfile::tempdir().unwrap();
    let server = Planted::start(Command::new(compiled(folder.path(), &WITH_FRAMES)).args(["30000", "10000"]));
    pause(200);
    let profile = profile(server.pid(), 99, Duration::from_secs(3));
    let results = &profile.results;
    let sum = results.on_cpu_ns + results.pictures[1].time_ns + results.pictures[2].time_ns;
    let all = 3 * (profile.span.end - profile.span.start).0;
    let off = sum.abs_diff(all) as f64 / all as f64;
    println!("{sum} of {all}: off by {off:.5}");
    assert!(off < 1e-4, "{sum} of {all}: {results:?}");
}

/// If this fails, nobody finds the change that made a server slower.
#[test]
fn a_difference_names_the_function_that_was_made_slower() {
    let _alone = ONE_AT_A_TIME.lock();
    let folder = tempfile::tempdir().unwrap();
    let binary = compiled(folder.path(), &WITH_FRAMES);
    let of = |one: &str| {
        let server = Planted::start(Command::new(&binary).args(["30000", one]));
        profile(server.pid(), 499, Duration::from_secs(3))
    };
    let (before, after) = (of("10000"), of("40000"));
    let changes = changes(stacks(&before, Picture::OnCpu), stacks(&after, Picture::OnCpu));
    assert_eq!(changes[0].frame, "burn_one");
    // From a quarter to four sevenths.
    assert!((changes[0].change() - (4.0 / 7.0 - 0.25)).abs() < 0.06, "{:?}", changes[0]);
    assert_eq!(changes.last().unwrap().frame, "burn_three");
}

/// If this fails, a picture without callers looks like that of a program without callers.
#[test]
fn missing_names_and_callers_are_reported() {
    let _alone = ONE_AT_A_TIME.lock();
    let folder = tempfile::tempdir().unwrap();
    let binary = compiled(folder.path(), &["-O2", "-fomit-frame-pointer", "-s"]);
    let server = Planted::start(Command::new(&binary).args(["30000", "10000"]));
    let profile = profile(server.pid(), 199, Duration::from_secs(2));
    let reasons: Vec<_> = profile.missing.iter().map(|fact| fact.why.as_str()).collect();
    assert!(reasons.iter().any(|why| why.contains("have no name (shares")), "{reasons:?}");
    assert!(reasons.iter().any(|why| why.contains("no frame pointers")), "{reasons:?}");
    let quality = &profile.results.quality;
    assert!(quality.unknown_frames > quality.frames / 2, "{quality:?}");
}

/// If this fails, a Java server's profile is a picture of numbers.
#[test]
fn a_jvm_has_java_frames() {
    let _alone = ONE_AT_A_TIME.lock();
    let folder = tempfile::tempdir().unwrap();
    let made = Command::new("javac").arg("-d").arg(folder.path()).arg(planted("Shop.java")).status();
    assert!(made.expect("JDK 17 or later is needed").success());
    let mut java = Command::new("java");
    java.arg("-cp").arg(folder.path());
    // Compiled from the first call on, and each method keeps a frame of its own.
    java.args(["-XX:+PreserveFramePointer", "-Xcomp", "-XX:TieredStopAtLevel=1", "-Xmx128m"]);
    java.args(["-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Shop*::*", "Shop"]);
    let mut server = Planted::start(java.stdout(Stdio::piped()));
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "serving\n", "JDK 17 or later is needed");
    pause(1000);
    let profile = profile(server.pid(), 997, Duration::from_secs(4));
    let on_cpu = stacks(&profile, Picture::OnCpu);
    let (three, one) =
        (share(on_cpu, "void Shop.priceThree(int)_[j]"), share(on_cpu, "void Shop.priceOne(int)_[j]"));
    println!("priceThree {three:.4}, priceOne {one:.4}, {:?}", profile.missing);
    assert!(three > 0.3 && one > 0.1, "{:?}, {:?}", profile.results.pictures[0].frames, profile.missing);
    assert!((three / (three + one) - 0.75).abs() < 0.03, "{three} {one}");
    // A thread that waits for the pool sleeps in the C library, which keeps no frame pointers.
    let off_cpu = stacks(&profile, Picture::OffCpu);
    let pool = profile.results.waits.iter().find(|wait| wait.kind == WaitKind::Pool);
    let pool = pool.unwrap_or_else(|| panic!("{:#?}", off_cpu.lines().collect::<Vec<_>>()));
    assert_eq!(pool.what, "a connection of HikariCP's pool");
    // Two of three customers wait at any time, and one sleeps with the connection; or, on a busy host, waits for a CPU
    // with it, which does not count as sleep.
    let mut customers = Stacks::default();
    let known = off_cpu.iter().map(|(frames, weight)| (frames.collect::<Vec<_>>(), weight));
    for (frames, weight) in known.filter(|(frames, _)| frames[0] == "customer" && frames.len() > 2) {
        customers.add(frames, weight);
    }
    let waiting = share(&customers, "void Shop$HikariPool.getConnection()_[j]");
    println!("of the customers' sleep for the pool: {waiting:.3}");
    assert!(waiting > 0.6, "{:#?}", customers.lines().collect::<Vec<_>>());
    let quality = &profile.results.quality;
    assert_eq!((quality.cut_sleeps, quality.mended_sleeps), (0, 0), "{quality:?}");
    // With their callers.
    let callers = on_cpu.iter().filter(|(frames, _)| {
        let frames: Vec<_> = frames.clone().collect();
        let at = |name: &str| frames.iter().position(|frame| frame.contains(name));
        at("Shop.order").zip(at("Shop.priceThree")).is_some_and(|(order, three)| order < three)
    });
    assert!(callers.count() > 0, "{:?}", on_cpu.lines().take(5).collect::<Vec<_>>());
}

#[test]
fn a_process_that_ends_stays_in_the_profile() {
    let _alone = ONE_AT_A_TIME.lock();
    let folder = tempfile::tempdir().unwrap();
    let mut server =
        Planted::start(Command::new(compiled(folder.path(), &WITH_FRAMES)).args(["30000", "10000"]));
    let mut profiler = Profiler::start(&[server.pid()], 499).unwrap();
    pause(1500);
    assert!(profiler.look());
    server.0.kill().unwrap();
    server.0.wait().unwrap();
    assert!(!profiler.look(), "it is gone");
    let profile = profiler.finish(&[]).unwrap();
    assert!(profile.results.processes[0].ended);
    let on_cpu = stacks(&profile, Picture::OnCpu);
    assert!(
        share(on_cpu, "burn_three") > 0.5,
        "its names are known: {:?}",
        on_cpu.lines().collect::<Vec<_>>()
    );
}

#[test]
fn children_are_profiled_too() {
    let _alone = ONE_AT_A_TIME.lock();
    let folder = tempfile::tempdir().unwrap();
    let binary = compiled(folder.path(), &WITH_FRAMES);
    // One that exists before, and one that is forked in the meantime.
    let script =
        format!("{0} 30000 10000 & sleep 1; timeout 2 {0} 30000 10000 & wait $!; kill %1", binary.display());
    let shell = Planted::start(Command::new("bash").args(["-c", &script]));
    pause(300);
    let profile = profile(shell.pid(), 199, Duration::from_secs(6));
    let on_cpu = stacks(&profile, Picture::OnCpu);
    // Without the shell: where others take the CPU, its few samples count for much.
    let mut burning = Stacks::default();
    let known = on_cpu.iter().map(|(frames, weight)| (frames.collect::<Vec<_>>(), weight));
    known
        .filter(|(frames, _)| frames[0] == "shares")
        .for_each(|(frames, weight)| burning.add(frames, weight));
    let (three, one) = (share(&burning, "burn_three"), share(&burning, "burn_one"));
    assert!(three + one > 0.9, "{three} {one}");
    let ours = profile.results.processes.iter().filter(|process| process.name.as_deref() == Some("shares"));
    assert_eq!(ours.count(), 2, "{:?}", profile.results.processes);
    assert_eq!(profile.results.processes[0].pid, shell.pid(), "who was named comes first");
}

#[test]
fn an_id_that_is_not_a_process_is_refused_in_one_line() {
    let refused = |pid| Profiler::start(&[pid], 99).err().expect("it is refused");
    assert!(matches!(refused(0x7fff_fff0), ProfileError::NoProcess(_)));
    assert_eq!(refused(0x7fff_fff0).to_string(), "there is no process 2147483632");
    let (send_id, thread) = std::sync::mpsc::sync_channel(1);
    let (_end, ended) = std::sync::mpsc::sync_channel::<()>(1);
    let busy = std::thread::spawn(move || {
        let link = std::fs::read_link("/proc/thread-self").unwrap();
        send_id.send(link.file_name().unwrap().to_str().unwrap().parse().unwrap()).unwrap();
        let _ = ended.recv();
    });
    let thread: u32 = thread.recv().unwrap();
    assert!(refused(thread).to_string().starts_with(&format!("{thread} is a thread of process ")));
    drop(_end);
    busy.join().unwrap();
}
