//! Runs `parallax drive` and reads its output. Every record made here is checked for what must hold in every record.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use units::Nanos;

use super::{binary, laws, wait};

/// Longer than any run here takes, also on a busy machine.
const LONGEST: Nanos = Nanos::from_secs(90);

/// `parallax drive` with these arguments, to its end.
pub fn drive(arguments: &[&str]) -> Run {
    let mut all = vec!["--json", "--quiet"];
    all.extend(arguments);
    start(&all).finish()
}

/// `parallax drive -o FOLDER` with these arguments.
pub fn start(arguments: &[&str]) -> Running {
    start_by(Command::new(binary::parallax()), arguments)
}

/// The same with another command, which gets `drive` and everything after it as its last arguments.
pub fn start_by(mut command: Command, arguments: &[&str]) -> Running {
    let folder = tempfile::tempdir().unwrap();
    let output = |name: &str| File::create(folder.path().join(name)).unwrap();
    let child = command
        .arg("drive")
        .args(arguments)
        .arg("-o")
        .arg(folder.path().join(RECORD))
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(output(STDOUT))
        .stderr(output(STDERR))
        .spawn()
        .unwrap();
    Running { child, folder }
}

const RECORD: &str = "record";
const STDOUT: &str = "stdout";
const STDERR: &str = "stderr";

/// A running `drive`. Killed when dropped.
pub struct Running {
    child: Child,
    folder: TempDir,
}

impl Running {
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn record(&self) -> PathBuf {
        self.folder.path().join(RECORD)
    }

    /// Waits until the record exists, which is when the run begins.
    pub fn wait_for_record(&self) {
        let path = self.record().join("run.json");
        assert!(wait::until(Nanos::from_secs(20), || path.exists()), "no run.json");
    }

    pub fn wait(&mut self) -> ExitStatus {
        assert!(wait::until(LONGEST, || self.child.try_wait().unwrap().is_some()), "the run does not end");
        self.child.wait().unwrap()
    }

    /// Waits for the end and reads the record, which must satisfy the laws.
    pub fn finish(mut self) -> Run {
        let status = self.wait();
        let read = |name| fs::read_to_string(self.folder.path().join(name)).unwrap();
        let (stdout, stderr) = (read(STDOUT), read(STDERR));
        let text = fs::read_to_string(self.record().join("run.json"))
            .unwrap_or_else(|error| panic!("no record ({error}); it said: {stderr}"));
        let json: Value = serde_json::from_str(&text).unwrap();
        if stdout.starts_with('{') {
            let printed: Value = serde_json::from_str(&stdout).unwrap();
            assert_eq!(printed, json, "--json and run.json differ");
        }
        laws::check(&self.record(), &json);
        Run { code: status.code(), stdout, stderr, json, running: self }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A run that has ended.
pub struct Run {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub json: Value,
    running: Running,
}

impl Run {
    pub fn record(&self) -> PathBuf {
        self.running.record()
    }

    /// Finished and valid; or invalid only because this machine was busy, which no test here is about.
    #[track_caller]
    pub fn assert_done(&self) {
        let busy = |finding: &Value| ["client_lag", "schedule_lag"].contains(&text(finding, "/check"));
        let grave = |finding: &&Value| text(finding, "/makes") == "invalid";
        let findings = self.json["verdict"]["findings"].as_array().unwrap();
        let excused = findings.iter().filter(grave).all(busy) && findings.iter().any(busy);
        let done = self.code == Some(0) || (self.code == Some(3) && excused);
        assert!(done, "exit {:?}; {}; {}", self.code, self.json["verdict"], self.stderr);
    }

    pub fn total(&self, name: &str) -> u64 {
        number(&self.json, &format!("/results/totals/{name}"))
    }

    /// How many ended with this outcome, in any phase and with any blame.
    pub fn ended(&self, outcome: &str) -> u64 {
        self.outcomes().filter(|row| row["outcome"] == outcome).map(|row| number(row, "/count")).sum()
    }

    /// All outcomes, as `outcome blame count`.
    pub fn reported(&self) -> Vec<String> {
        let blame = |row: &Value| row["blame"].as_str().unwrap_or("-").to_owned();
        let reported = |row: &Value| format!("{} {} {}", text(row, "/outcome"), blame(row), row["count"]);
        self.outcomes().map(reported).collect()
    }

    pub fn outcomes(&self) -> impl Iterator<Item = &Value> {
        self.json["results"]["outcomes"].as_array().unwrap().iter()
    }

    /// The application's codes, as `code count`.
    pub fn codes(&self) -> Vec<String> {
        let codes = self.json["results"]["codes"].as_array().unwrap();
        codes.iter().map(|row| format!("{} {}", row["code"], row["count"])).collect()
    }

    /// Codes that are texts, such as SQLSTATE, as `code count`.
    pub fn text_codes(&self) -> Vec<String> {
        let rows = self.json.pointer("/results/text_codes").and_then(Value::as_array);
        let shown = |row: &Value| format!("{} {}", text(row, "/code"), row["count"]);
        rows.into_iter().flatten().map(shown).collect()
    }

    /// How requests failed: `outcome reason count`.
    pub fn reasons(&self) -> Vec<String> {
        let rows = self.json.pointer("/results/reasons").and_then(Value::as_array);
        let shown = |row: &Value| format!("{} {} {}", row["outcome"], row["reason"], row["count"]);
        rows.into_iter().flatten().map(shown).map(|row| row.replace('"', "")).collect()
    }

    pub fn phase(&self, name: &str) -> &Value {
        let phases = self.json["results"]["phases"].as_array().unwrap();
        phases.iter().find(|phase| phase["phase"] == name).unwrap()
    }

    pub fn share(&self, phase: &str) -> f64 {
        self.phase(phase)["share"].as_f64().unwrap()
    }
}

/// A quantile of a distribution, which must be known.
#[track_caller]
pub fn quantile(distribution: &Value, q: f64) -> Nanos {
    let quantiles = distribution["quantiles"].as_array().unwrap();
    let found = quantiles.iter().find(|quantile| quantile["q"] == q).unwrap();
    assert_eq!(found["is"], "known", "{found}");
    Nanos(number(found, "/ns"))
}

#[track_caller]
pub fn number(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("no number at {pointer}"))
}

#[track_caller]
pub fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("no text at {pointer}"))
}

/// `FILE` as an argument.
pub fn argument(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}
