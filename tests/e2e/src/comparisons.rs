//! `parallax compare` with real records: two addresses of one server, one of which is slower by a known time.

use std::fs;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use testkit::leash::Leash;

use crate::support::laws::fits;
use crate::support::run::argument;
use crate::support::{binary, port, turn};

/// Records named `ARM-BLOCK`, made in turn.
struct Experiment {
    folder: TempDir,
    port: u16,
    _server: Leash,
}

impl Experiment {
    fn start() -> Experiment {
        let folder = tempfile::tempdir().unwrap();
        let port = port::free();
        let program = argument(binary::parallax());
        let listen = format!("127.0.0.1:{port}");
        let mut server =
            Leash::start(&[&program, "serve", "--listen", &listen], &folder.path().join("serve.log"));
        server.wait_for(port);
        Experiment { folder, port, _server: server }
    }

    /// One run of half a second in a block; a run that this host spoiled is repeated.
    fn run(&self, arm: &str, block: usize, path: &str, more: &[&str]) {
        let url = format!("http://127.0.0.1:{}{path}", self.port);
        let (block, record) = (block.to_string(), format!("{arm}-{block}"));
        let line = ["drive", "-r", "200/s", "-n", "100", "-c", "20", "--quiet"];
        let given = ["--block", &block, "-o", &record, &url];
        for _ in 0..MOST_ATTEMPTS {
            let output = self.parallax(&[&line[..], more, &given[..]].concat());
            match output.status.code() {
                Some(0) => return,
                Some(3) => fs::remove_dir_all(self.folder.path().join(&record)).unwrap(),
                _ => panic!("{}", String::from_utf8_lossy(&output.stderr)),
            }
        }
        panic!("{MOST_ATTEMPTS} invalid runs: this host is too busy for a test that measures time");
    }

    fn parallax(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(binary::parallax());
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null()).output().unwrap()
    }

    /// The directories of an arm.
    fn records(arm: &str, blocks: usize) -> Vec<String> {
        (1..=blocks).map(|block| format!("{arm}-{block}")).collect()
    }

    /// `compare` of the first `blocks` records of arms: the first is the base.
    fn compare(&self, arms: &[&str], blocks: usize, more: &[&str]) -> Compared {
        let folders: Vec<Vec<String>> = arms.iter().map(|arm| Self::records(arm, blocks)).collect();
        let mut line = vec!["compare"];
        line.extend(folders[0].iter().map(String::as_str));
        for arm in &folders[1..] {
            line.push("--to");
            line.extend(arm.iter().map(String::as_str));
        }
        line.extend(more);
        let output = self.parallax(&line);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Compared { code: output.status.code(), text: text(output.stdout), errors: text(output.stderr) }
    }
}

/// A run is invalid if this host stalled for a part of it; ten in a row have another cause.
const MOST_ATTEMPTS: usize = 10;

#[derive(Debug)]
struct Compared {
    code: Option<i32>,
    text: String,
    errors: String,
}

impl Compared {
    /// The text, unwrapped into one line.
    fn line(&self) -> String {
        self.text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[track_caller]
    fn check(&self, code: i32, begin: &str, others: &[&str]) {
        assert_eq!(self.code, Some(code), "{} {}", self.text, self.errors);
        let line = self.line();
        assert!(line.starts_with(begin), "{line}");
        for words in others {
            assert!(line.contains(words), "no `{words}` in: {}", self.text);
        }
    }
}

/// The true times are 10, 12 and 10 ms; the margin of p50 is 5 %, and the host adds some 0.1 ms to each.
///
/// If this fails, a pipeline passes a server that became 20 % slower, or stops one that did not change.
#[test]
fn a_slower_server_is_worse_and_its_twin_is_not() {
    let _turn = turn::alone();
    let experiment = Experiment::start();
    // Six carry a verdict on one metric of one arm; two arms need seven.
    for block in 1..=7 {
        experiment.run("old", block, "/delay/0.010", &[]);
        experiment.run("new", block, "/delay/0.012", &[]);
        experiment.run("twin", block, "/delay/0.010", &[]);
    }
    let gate = ["--metric", "p50", "--fail-if", "p50 worse"];

    let worse = experiment.compare(&["old", "new"], 6, &gate);
    worse.check(
        2,
        "worse: response p50 of new is ",
        &["% higher than with old", "6 blocks", "1 of 1 thresholds FAILED"],
    );
    let twin = experiment.compare(&["old", "twin"], 6, &gate);
    assert_eq!(twin.code, Some(0), "{twin:?}");
    assert!(!twin.line().starts_with("worse"), "{}", twin.text);
    // Less than six records carry no verdict, however far apart they are.
    let look = experiment.compare(&["old", "new"], 5, &gate);
    look.check(2, "look only: response p50 of new is ", &["a verdict needs 6 per arm", "NO DATA"]);
    // A hundred requests carry no p99; what a condition names comes first.
    let tail = experiment.compare(&["old", "new"], 6, &["--fail-if", "p99 worse"]);
    tail.check(2, "not compared: response p99 of new: too few", &["1 of 1 thresholds NO DATA"]);

    three_outputs_say_the_same(&experiment, &gate);
    several_arms(&experiment);
    another_load(&experiment);
    refusals(&experiment);
}

fn three_outputs_say_the_same(experiment: &Experiment, gate: &[&str]) {
    let json = experiment.compare(&["old", "new"], 6, &[gate, &["--json"]].concat());
    let view: Value = serde_json::from_str(&json.text).unwrap();
    fits("view.schema.json", &view);
    assert_eq!(view["thresholds"][0]["result"], "missed");
    let more = ["--markdown", "--junit", "compare.xml"];
    let markdown = experiment.compare(&["old", "new"], 6, &[gate, &more].concat());
    markdown.check(
        2,
        "**worse**: response p50 of new is ",
        &["| FAIL | response.p50 worse |", "| **response.p50** |"],
    );
    let junit = fs::read_to_string(experiment.folder.path().join("compare.xml")).unwrap();
    assert!(junit.contains(r#"tests="1" failures="1" errors="0""#), "{junit}");
}

fn several_arms(experiment: &Experiment) {
    let gate = ["--fail-if", "p50 worse"];
    let few = experiment.compare(&["old", "new", "twin"], 6, &gate);
    few.check(2, "2 arms compared: the base is old", &["a verdict needs 7 records per arm"]);
    let both = experiment.compare(&["old", "new", "twin"], 7, &gate);
    both.check(
        2,
        "2 arms compared: the base is old",
        &["worse: response p50 of new is ", "FAIL new:response.p50"],
    );
    assert!(both.line().contains("PASS twin:response.p50"), "{}", both.text);
}

fn another_load(experiment: &Experiment) {
    experiment.run("fast", 1, "/delay/0.010", &["--timeout", "7s"]);
    let other = experiment.parallax(&["compare", "old-1", "fast-1"]);
    let text = String::from_utf8_lossy(&other.stdout);
    assert!(text.starts_with("not the same experiment: --timeout differs"), "{text}");
    assert!(text.contains("30s") && text.contains("7s"), "{text}");
}

fn refusals(experiment: &Experiment) {
    for (line, message) in [
        (
            &["compare", "old-1"][..],
            "nothing to compare with: write `parallax compare BASE... --to OTHER...`",
        ),
        (&["compare", "old-1", "old-2", "old-3"], "nothing to compare with"),
        (&["compare", "old-1", "nowhere"], "nowhere"),
        (&["compare", "old-1", "old-1", "--to", "new-1"], "`old-1` is given twice"),
        (&["compare", "old-1", "new-1", "--fail-if", "p99 slower"], "there is no verdict `slower`"),
        (
            &["compare", "old-1", "new-1", "--junit", "no/such/folder.xml"],
            "cannot write `no/such/folder.xml`",
        ),
    ] {
        let output = experiment.parallax(line);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{line:?}: {stderr}");
        assert!(stderr.contains(message) && stderr.lines().count() == 1, "{line:?}: {stderr}");
    }
}
