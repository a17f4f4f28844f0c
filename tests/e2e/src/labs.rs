//! `parallax lab`: experiments with real servers: subjects that misbehave, and kills at any moment.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use units::Nanos;

use crate::support::laws::fits;
use crate::support::numbers::Numbers;
use crate::support::{binary, turn, wait};

/// A directory with an experiment file.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new(experiment: &str) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.toml"), format!("format = 1\nname = \"a\"\n{experiment}")).unwrap();
        Bench { folder }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary::parallax());
        command.arg("lab").args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    fn lab(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn results(&self) -> PathBuf {
        self.folder.path().join("results")
    }

    /// `run.json` of every committed run, by the name of its folder.
    fn runs(&self) -> BTreeMap<String, Value> {
        let entries = fs::read_dir(self.results().join("runs")).unwrap();
        let one = |entry: fs::DirEntry| {
            let text = fs::read_to_string(entry.path().join("run.json")).unwrap();
            (entry.file_name().into_string().unwrap(), serde_json::from_str(&text).unwrap())
        };
        entries.map(Result::unwrap).map(one).collect()
    }

    fn plan(&self) -> Value {
        serde_json::from_str(&fs::read_to_string(self.results().join("plan.json")).unwrap()).unwrap()
    }

    /// The events of the journal.
    fn events(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.results().join("journal.jsonl")).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    fn count(&self, event: &str) -> usize {
        self.events().iter().filter(|line| line["event"] == event).count()
    }

    /// Exports all tables to a new directory.
    #[track_caller]
    fn export(&self, output: &str) {
        let exported = self.lab(&["export", "results", "-o", output]);
        assert!(exported.status.success(), "{}", text(&exported.stderr));
    }

    /// The rows of an exported table, by the names of the columns.
    fn table(&self, name: &str) -> Vec<BTreeMap<String, String>> {
        let path = self.folder.path().join(format!("{name}.csv"));
        let mut reader = csv::Reader::from_path(path).unwrap();
        reader.deserialize().map(Result::unwrap).collect()
    }

    /// Processes of this experiment, by the tokens of its sessions.
    fn processes(&self) -> Vec<Pid> {
        let tokens: BTreeSet<String> =
            self.events().iter().filter_map(|line| Some(line["token"].as_str()?.to_owned())).collect();
        let is_ours = |pid: &Pid| {
            let path = format!("/proc/{}/environ", pid.as_raw_nonzero());
            let environment = fs::read(path).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| {
                let text = String::from_utf8_lossy(variable);
                text.strip_prefix("PARALLAX_LAB_SESSION=").is_some_and(|token| tokens.contains(token))
            })
        };
        let pids = fs::read_dir("/proc").unwrap().flatten();
        let pids = pids.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
        pids.filter(is_ours).collect()
    }

    /// Control groups of this experiment that exist.
    fn groups(&self) -> Vec<String> {
        let named: BTreeSet<String> =
            self.events().iter().filter_map(|line| Some(line["group"].as_str()?.to_owned())).collect();
        named.into_iter().filter(|group| Path::new(group).exists()).collect()
    }

    #[track_caller]
    fn nothing_is_left(&self) {
        let gone = wait::until(PATIENCE, || self.processes().is_empty() && self.groups().is_empty());
        assert!(gone, "left: {:?} {:?}", self.processes(), self.groups());
    }
}

/// The guard needs milliseconds; on a host that does other things, its turn may come late.
const PATIENCE: Nanos = Nanos::from_secs(60);

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Servers that go wrong in each way that there is. What they are is in the label of the value.
fn subjects() -> String {
    let serve = format!("'{}' serve --listen 127.0.0.1:{{port}}", binary::parallax().display());
    let values = [
        ("good", "parallax serve --listen 127.0.0.1:{port}".to_owned()),
        ("ends", "echo no such module; exit 7".to_owned()),
        ("hangs", "sleep 1000".to_owned()),
        ("wrong", "python3 -m http.server {port} --bind 127.0.0.1".to_owned()),
        // The load makes its record first.
        ("dies", format!("(until test -d {{run}}/record; do sleep 0.1; done; kill -9 $$) & exec {serve}")),
        ("escapes", format!("setsid sleep 1000 & exec {serve}")),
    ];
    let lines = values.map(|(label, value)| format!("{label} = {value:?}\n"));
    format!("[factors.subject.values]\n{}", lines.concat())
}

/// If this fails, one broken server ends the night's experiment, or is measured as a fast one.
#[test]
fn a_subject_that_misbehaves_is_a_failed_run_with_its_cause() {
    let _turn = turn::together();
    let bench = Bench::new(&format!(
        r#"{}
[factors.proof]
values = {{ given = "serve", missing = "no such word" }}
[factors.version]
values = {{ given = "echo 1.2", missing = "true" }}
[plan]
blocks = 1
skip = [
    {{ subject = "ends", proof = "missing" }}, {{ subject = "ends", version = "missing" }},
    {{ subject = "hangs", proof = "missing" }}, {{ subject = "hangs", version = "missing" }},
    {{ subject = "wrong", proof = "missing" }}, {{ subject = "wrong", version = "missing" }},
    {{ subject = "dies", proof = "missing" }}, {{ subject = "dies", version = "missing" }},
    {{ subject = "escapes", proof = "missing" }}, {{ subject = "escapes", version = "missing" }},
    {{ proof = "missing", version = "missing" }},
]
[server]
start = "{{subject}}"
url = "http://127.0.0.1:{{port}}"
ready = {{ http = "/", within = "15s" }}
check = {{ http = "/plaintext" }}
proof = {{ command_line_contains = "{{proof}}" }}
version = "{{version}}"
[load]
drive = "-r 50/s -c 2 http://127.0.0.1:{{port}}/"
window = "4s"
"#,
        subjects()
    ));
    let output = bench.lab(&["run", "a.toml", "-o", "results", "--quiet"]);
    let runs = bench.runs();
    assert_eq!(runs.len(), 8, "{}", text(&output.stderr));
    let label = |run: &Value, factor: &str| run["labels"][factor].as_str().unwrap().to_owned();
    for run in runs.values() {
        let failure = &run["failure"];
        let (step, cause) = (failure["step"].as_str(), failure["cause"].as_str().unwrap_or_default());
        let (subject, proof) = (label(run, "subject"), label(run, "proof"));
        let (wanted, words) = match (subject.as_str(), proof.as_str(), label(run, "version").as_str()) {
            ("good", "missing", _) => (Some("proof"), "does not contain `no such word`"),
            ("good", _, "missing") => (Some("version"), "prints no version"),
            ("good" | "escapes", ..) => (None, ""),
            ("ends", ..) => (Some("ready"), "exited with status 7: no such module"),
            ("hangs", ..) => (Some("ready"), "not ready after 15.0 s"),
            ("wrong", ..) => (Some("check"), "status 404 instead of 200"),
            ("dies", ..) => (Some("load"), "the server was ended by signal 9"),
            other => panic!("{other:?}"),
        };
        assert_eq!(step, wanted, "{run:#}");
        assert!(cause.contains(words), "{run:#}");
        if subject == "escapes" {
            assert_eq!(run["left_behind"], 1, "{run:#}");
        }
    }
    bench.nothing_is_left();
    let status = bench.lab(&["status", "results"]);
    let status = text(&status.stdout);
    assert!(status.starts_with("a: 2 of 8 runs done, 6 failed, 0 left; not running\n"), "{status}");
    // On a host that stalled in both good runs, there is a message in place of a report.
    let report = text(&output.stdout) + &text(&output.stderr);
    assert!(report.contains("no such module"), "{report}");
}

/// Twelve blocks of two runs of 0.2 s: more runs than kills can use up.
const SHORT: &str = r#"
[factors.path]
role = "compare"
values = ["/plaintext", "/json"]
[plan]
blocks = 12
twin = false
[server]
start = "parallax serve --listen 127.0.0.1:{port}"
ready = { http = "http://127.0.0.1:{port}/" }
check = { http = "http://127.0.0.1:{port}{path}" }
[load]
drive = "-r 100/s -c 2 http://127.0.0.1:{port}{path}"
window = "200ms"
"#;

const KILLS: usize = 10;

/// If this fails, a crash in the third hour costs three hours, or counts a run twice, or leaves a server that disturbs
/// the next run.
#[test]
fn kills_at_any_moment_lose_at_most_a_run_each() {
    let _turn = turn::together();
    let bench = Bench::new(SHORT);
    let mut numbers = Numbers(20_251_125);
    let mut lab = bench.command(&["run", "a.toml", "-o", "results", "--quiet"]);
    let mut lab = lab.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut sessions = 0;
    let mut begun = 0;
    for kill in 0..KILLS {
        // Each kill meets a run that no earlier one met.
        let is_under_way = wait::until(PATIENCE, || bench.count("begun") > begun);
        assert!(is_under_way, "kill {kill}: no run begins; {}", ended(&mut lab));
        begun = bench.count("begun");
        wait::pause(Nanos::from_micros(numbers.next() % 500_000));
        if kill % 3 == 0 {
            lab.kill().unwrap();
            lab.wait().unwrap();
            sessions += 1;
            bench.nothing_is_left();
            let mut again = bench.command(&["resume", "results", "--quiet"]);
            lab = again.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        } else {
            let word = if kill % 3 == 1 { "serve" } else { "drive" };
            let found = wait::until(PATIENCE, || kill_one(&bench, word));
            assert!(found, "kill {kill}: there is no {word}; {}", ended(&mut lab));
        }
    }
    let status = lab.wait_with_output().unwrap();
    // 3: no run has figures, on a host that stalls in each of them.
    assert!(matches!(status.status.code(), Some(0 | 3)), "{}", text(&status.stderr));

    let (runs, plan) = (bench.runs(), bench.plan());
    let planned: Vec<&Value> = plan["runs"].as_array().unwrap().iter().collect();
    let made: Vec<&Value> = runs.values().collect();
    assert_eq!(made.len(), planned.len());
    for (planned, made) in planned.iter().zip(&made) {
        for field in ["number", "block", "labels", "twin"] {
            assert_eq!(planned[field], made[field], "{made:#}");
        }
    }
    let mut committed = BTreeMap::new();
    for line in bench.events().iter().filter(|line| line["event"] == "committed") {
        *committed.entry(line["run"].as_u64().unwrap()).or_insert(0) += 1;
    }
    assert!(committed.values().all(|count| *count == 1), "{committed:?}");
    // A kill of the server or the load makes a failed run; a kill of the lab a run that is made again.
    let failed = made.iter().filter(|run| run["state"] == "failed").count();
    let aborted = fs::read_dir(bench.results().join("aborted")).unwrap().count();
    assert!(failed <= KILLS - sessions, "{failed} failed");
    assert!(aborted <= sessions, "{aborted} aborted");
    assert_eq!(fs::read_dir(bench.results().join("running")).unwrap().count(), 0);
    bench.nothing_is_left();
}

fn ended(lab: &mut Child) -> String {
    match lab.try_wait().unwrap() {
        Some(status) => format!("the lab has ended: {status}"),
        None => "the lab runs".to_owned(),
    }
}

/// Kills a process of the experiment that has `word` in its command line; `false` if there is none.
fn kill_one(bench: &Bench, word: &str) -> bool {
    let has_word = |pid: &Pid| {
        let line = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
        line.split(|byte| *byte == 0).nth(1).is_some_and(|first| first == word.as_bytes())
    };
    let found = bench.processes().into_iter().find(has_word);
    found.is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok())
}

/// If this fails, the file that `init` writes does not run, or a twofold wait is not found.
#[test]
fn the_experiment_to_begin_with_is_planned_and_compared() {
    let _turn = turn::alone();
    let bench = Bench::new("");
    let written = bench.lab(&["init", "b.toml"]);
    assert!(written.status.success(), "{}", text(&written.stderr));
    let plan = text(&bench.lab(&["plan", "b.toml"]).stdout);
    for words in [
        "18 runs in 6 blocks (seed 1), with a hidden twin of the base",
        "expected time: 45.0 s",
        "SD between blocks 2 %",
    ] {
        assert!(plan.contains(words), "no `{words}` in {plan}");
    }
    // Shorter, and with a difference that no host hides.
    let file = bench.folder.path().join("b.toml");
    let text_of = fs::read_to_string(&file).unwrap();
    let shorter = text_of.replace("\"2s\"", "\"500ms\"").replace("/delay/0.012", "/delay/0.020");
    fs::write(&file, shorter).unwrap();
    let output = bench.lab(&["run", "b.toml", "-o", "results"]);
    let report = text(&output.stdout);
    match output.status.code() {
        Some(0) => {
            assert!(report.contains("response p50, compared with fast"), "{report}");
            let row: Vec<&str> = report
                .lines()
                .map(str::trim)
                .find(|line| line.starts_with("slow "))
                .unwrap_or_else(|| panic!("no row of slow: {report}"))
                .split_whitespace()
                .collect();
            // Unless a run was invalid, or the twin differs: then there is no word about the arms.
            if row[1..3] == ["6", "0"] && !report.contains("noise floor") {
                assert!(
                    report.starts_with("worse: response p50 of slow is ") && row.ends_with(&["worse"]),
                    "{report}"
                );
            }
        }
        // This host stalled in each run.
        code => assert_eq!(code, Some(3), "{}", text(&output.stderr)),
    }
    assert_eq!(bench.runs().len(), 18);
    let lines = text(&output.stderr);
    assert_eq!(lines.lines().filter(|line| line.starts_with("run ")).count(), 18, "{lines}");
    let again = bench.lab(&["run", "b.toml", "-o", "results"]);
    assert!(text(&again.stderr).contains("is not empty"), "{}", text(&again.stderr));
    bench.nothing_is_left();
    bench.export("tables");
    assert_eq!(bench.table("tables/runs").len(), 18);
    let seconds = bench.table("tables/seconds");
    assert!(
        seconds.len() >= 18 && seconds.iter().all(|row| row["ok"].parse::<u64>().unwrap() > 0),
        "{seconds:?}"
    );
    let paths: BTreeSet<&str> = seconds.iter().map(|row| row["path"].as_str()).collect();
    assert_eq!(paths, ["fast", "slow"].into());
}

/// If this fails, what failed cannot be made again, or what stands beside it is of another time; or a report of a part
/// of the runs has others in it.
#[test]
fn failed_runs_are_made_again_with_their_neighbours() {
    let _turn = turn::together();
    let bench = Bench::new(
        "[factors.tool]\nrole = \"compare\"\nvalues = { quick = \"true\", slow = \"test -e good\" }\n\
         [factors.n]\nvalues = [1, 2]\n[plan]\nblocks = 6\ntwin = false\n[load]\ncommand = \"{tool}\"\n",
    );
    let ran = bench.lab(&["run", "a.toml", "-o", "results", "--quiet"]);
    let failed = || bench.runs().values().filter(|run| run["state"] == "failed").count();
    assert_eq!((bench.runs().len(), failed()), (24, 12), "{}", text(&ran.stderr));
    let part = text(&bench.lab(&["report", "results", "--where", "n=2"]).stdout);
    assert!(part.contains("12 of 12 runs of a, where n=2"), "{part}");
    let without = bench.lab(&["report", "results", "--without", "tool=quick"]);
    assert!(text(&without.stderr).contains("`tool=quick` is left out"), "{}", text(&without.stderr));
    bench.export("before");
    let causes: BTreeSet<String> =
        bench.table("before/runs").iter().map(|row| row["failed_step"].clone()).collect();
    assert_eq!(causes, ["".to_owned(), "load".to_owned()].into());

    fs::write(bench.folder.path().join("good"), "").unwrap();
    let again = bench.lab(&["rerun", "results"]);
    let lines = text(&again.stderr);
    assert_eq!(again.status.code(), Some(0), "{lines}");
    assert_eq!(lines.matches("is made again: failed: load").count(), 12, "{lines}");
    assert_eq!(lines.matches("is made again: it is compared with").count(), 12, "{lines}");
    assert_eq!((bench.runs().len(), failed(), bench.count("superseded")), (24, 0, 24));
    let nothing = bench.lab(&["rerun", "results", "--quiet"]);
    assert_eq!((nothing.status.code(), bench.count("superseded")), (Some(0), 24));
    let compared = bench.lab(&["compare", "results", "--to", "results", "--where", "n=1"]);
    assert!(text(&compared.stdout).contains("2 comparisons of wall time"), "{compared:?}");
    bench.export("after");
    let runs = bench.table("after/runs");
    assert!(runs.iter().all(|row| row["state"] == "done" && !row["wall_time_ns"].is_empty()), "{runs:?}");
    let parquet = fs::read(bench.folder.path().join("after/runs.parquet")).unwrap();
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    let once_more = bench.lab(&["export", "results", "-o", "after"]);
    assert!(text(&once_more.stderr).contains("name a new directory"), "{}", text(&once_more.stderr));
}

/// What other load generators print, and programs that print nothing, are loads like any other: without a server here.
#[test]
fn other_loads_are_imported_or_measured_as_programs() {
    let _turn = turn::together();
    let golden = binary::root().join("crates/export/golden/wrk-latency.txt");
    let common = "[factors]\nn = [1, 2]\n[plan]\nblocks = 2\n";
    let imported = Bench::new(&format!(
        "{common}[load]\ncommand = \"cat {}\"\nimport = \"wrk\"\n[compare]\nprimary = \"throughput\"\n",
        golden.display()
    ));
    let output = imported.lab(&["run", "a.toml", "-o", "results", "--json", "--quiet"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let view: Value = serde_json::from_slice(&output.stdout).unwrap();
    fits("view.schema.json", &view);
    let rows = |view: &Value| {
        let blocks =
            view["sections"].as_array().unwrap().iter().flat_map(|one| one["blocks"].as_array().unwrap());
        let tables = blocks.filter(|block| block["table"]["id"] == "combinations");
        tables.map(|block| block["table"]["rows"].clone()).next().unwrap()
    };
    let value = &rows(&view)[0]["cells"][3];
    assert!(value["figure"]["value"].as_f64() > Some(0.0), "{view:#}");

    let measured = Bench::new(&format!("{common}[load]\ncommand = \"sleep 0.{{n}}\"\n"));
    let output = measured.lab(&["run", "a.toml", "-o", "results", "--json", "--quiet"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let view: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = rows(&view);
    for (row, least) in [(0, 100_000_000), (1, 200_000_000)] {
        let wall = rows[row]["cells"][3]["figure"]["value"].as_u64();
        assert!(wall >= Some(least), "{view:#}");
    }
}
