//! Reading, order, and what is left of a plan.

use std::collections::{BTreeMap, BTreeSet};

use super::documents::{RunDocument, RunState, SCHEMA_VERSION};
use super::order::PlannedRun;
use super::pending::pending;
use super::{Experiment, START};

const LOAD: &str = "[load]\ncommand = \"true\"\n";

fn read(text: &str) -> Experiment {
    Experiment::read("a.toml", &format!("format = 1\nname = \"a\"\n{text}")).unwrap()
}

#[track_caller]
fn refused(text: &str, wanted: &str) {
    let error = Experiment::read("a.toml", text).unwrap_err();
    assert!(error.contains(wanted) && error.lines().count() == 1, "{error}");
}

/// If this fails, a mistyped key is a default that nobody chose, or its place must be looked for.
#[test]
fn mistakes_have_a_place_and_a_guess() {
    let good = START;
    for (from, to, wanted) in [
        ("blocks = 6", "block = 6", "a.toml:18:1: unknown key `block`; did you mean `blocks`?"),
        ("role = \"compare\"", "role = \"compared\"", "a.toml:13:8: unknown value `compared`; did you mean"),
        ("base = \"fast\"", "base = \"fats\"", "a.toml:14:8: there is no value `fats`; did you mean `fast`?"),
        ("blocks = 6", "blocks = 0", "a.toml:18:10: between 1 and 1000 blocks"),
        ("format = 1", "format = 2", "a.toml:8:10: this program reads format 1"),
        ("name = \"start\"", "name = \"a b\"", "a.toml:9:8: a name consists of letters"),
        ("{port}{path}\"", "{port}{pth}\"", "`{pth}` is not known here; did you mean `path`?"),
        ("window = \"2s\"", "window = \"2\"", "a.toml:29:10: "),
        ("\"response.p50\" = \"5%\"", "\"response.p50\" = \"5\"", "is no share from 0% to 100%"),
        ("primary = \"response.p50\"", "primary = \"response.p51\"", "a.toml:32:11: there is no metric"),
        ("http = \"/plaintext\"", "https = \"/\"", "a.toml:23:11: unknown key `https`; did you mean `http`?"),
        ("window = \"2s\"", "command = \"true\"", "a load is either `drive` or `command`"),
        ("window = \"2s\"", "warmup = \"2s\"", "a.toml:29:10: a warm-up needs `window`"),
        ("url = ", "# url = ", "a path needs an address before it: give server.url"),
        ("[plan]", "[plan]\nskip = [{ path = \"medium\" }]", "there is no value `medium`"),
        (
            "[plan]",
            "[plan]\nskip = [{ paths = \"fast\" }]",
            "there is no factor `paths`; did you mean `path`?",
        ),
        ("[plan]", "[factors.x]\nrole = \"compare\"\nvalues = [1, 2]\n[plan]", "at most one factor"),
        ("values = { fast", "pow2 = [1, 6]\n# values = { fast", "give two powers of two"),
    ] {
        let text = good.replacen(from, to, 1);
        assert_ne!(text, good, "{from}");
        refused(&text, wanted);
    }
    refused("name = \"a\"", "a.toml:1:1: missing field");
    refused(
        &format!("format = 1\nname = \"a\"\n{LOAD}[factors]\nport = [1]\n"),
        "cannot be the name of a factor",
    );
}

/// If this fails, a machine that drifts makes one arm look slower.
#[test]
fn every_block_has_each_combination_once_and_arms_are_neighbours() {
    let experiment = read(&format!(
        "seed = 7\n{LOAD}[factors]\nthreads = {{ pow2 = [1, 4] }}\n\
         allocator = {{ role = \"compare\", values = {{ a = \"\", b = \"x.so\" }} }}\n\
         [plan]\nblocks = 50\nskip = [{{ threads = 2, allocator = \"b\" }}]\n"
    ));
    let runs = experiment.runs().unwrap();
    // Three levels of two arms and a twin, without one.
    assert_eq!(runs.len(), 50 * 8);
    let mut orders = BTreeSet::new();
    for block in runs.chunks(8) {
        let names: BTreeSet<String> = block.iter().map(|run| experiment.run_name(run)).collect();
        assert_eq!(names.len(), 8, "{names:?}");
        let mut cells: Vec<Vec<usize>> = block.iter().map(|run| experiment.cell(&run.levels)).collect();
        cells.dedup();
        assert_eq!(cells.len(), 3, "the runs of a comparison are apart");
        orders.insert(block.iter().map(|run| (run.levels.clone(), run.is_twin)).collect::<Vec<_>>());
    }
    // 3! orders of the levels, times 3! * 2! * 3! of their arms: some of 50 may be the same by chance.
    assert!(orders.len() > 40, "{}", orders.len());
    assert_eq!(runs, experiment.runs().unwrap());
    assert!(runs.iter().enumerate().all(|(place, run)| run.number == place + 1));
}

#[test]
fn what_changes_rarely_changes_once_per_block() {
    let experiment = read(&format!(
        "{LOAD}[factors]\na = [1, 2, 3]\nb = {{ values = [1, 2], change = \"rarely\" }}\n[plan]\nblocks = 20\n"
    ));
    let runs = experiment.runs().unwrap();
    let mut first = BTreeSet::new();
    for block in runs.chunks(6) {
        let mut levels: Vec<usize> = block.iter().map(|run| run.levels[1]).collect();
        levels.dedup();
        assert_eq!(levels.len(), 2);
        first.insert(levels[0]);
    }
    assert_eq!(first.len(), 2, "which one comes first is drawn");
    // As written: nothing is drawn.
    let written =
        read(&format!("{LOAD}[factors]\na = [1, 2, 3]\n[plan]\norder = \"as-written\"\nblocks = 2\n"));
    let order: Vec<usize> = written.runs().unwrap().iter().map(|run| run.levels[0]).collect();
    assert_eq!(order, [0, 1, 2, 0, 1, 2]);
}

fn committed(run: &PlannedRun, started_ns: u64, boot_id: &str, experiment: &Experiment) -> RunDocument {
    RunDocument {
        schema_version: SCHEMA_VERSION.to_owned(),
        planned: experiment.document(run),
        state: RunState::Done,
        failure: None,
        started_ns,
        wall_ns: 1,
        boot_id: boot_id.to_owned(),
        version: None,
        commands: BTreeMap::new(),
        cpus: None,
        supervision: String::new(),
        steps: Vec::new(),
        load: None,
        server_cpu_ns: None,
        server_memory_bytes: None,
        left_behind: 0,
    }
}

/// If this fails, a run is made twice or never, or compared with one of another day.
#[test]
fn what_is_left_is_what_is_not_committed_and_pairs_stay_together() {
    const HOUR: u64 = 3600 * 1_000_000_000;
    let experiment = read(&format!(
        "{LOAD}[factors]\nn = [1, 2]\na = {{ role = \"compare\", values = [1, 2] }}\n\
         [plan]\nblocks = 2\ntwin = false\n"
    ));
    let plan = experiment.runs().unwrap();
    let left = |done: &[(usize, u64, &str)], begun: &[usize]| {
        let done = done.iter().map(|(number, started, boot)| {
            (*number, committed(&plan[number - 1], *started, boot, &experiment))
        });
        let now = (2 * HOUR, "boot");
        let left = pending(&experiment, &plan, &done.collect(), &begun.iter().copied().collect(), now);
        (left.runs.iter().map(|run| run.number).collect::<Vec<_>>(), left.stale)
    };
    assert_eq!(left(&[], &[]), (vec![1, 2, 3, 4, 5, 6, 7, 8], vec![]));
    // The one that was cut off is the last of its block.
    assert_eq!(left(&[(1, 2 * HOUR, "boot")], &[2]), (vec![3, 4, 2, 5, 6, 7, 8], vec![]));
    // A complete pair stays, however old; a half one is made again.
    let old = [(1, 1, "boot"), (2, 1, "boot"), (3, 1, "boot")];
    assert_eq!(left(&old, &[]), (vec![3, 4, 5, 6, 7, 8], vec![3]));
    let before = [(1, 2 * HOUR, "other"), (2, 2 * HOUR, "other"), (3, 2 * HOUR, "other")];
    assert_eq!(left(&before, &[]), (vec![3, 4, 5, 6, 7, 8], vec![3]));
    let fresh = [(1, HOUR, "boot"), (3, HOUR + 1, "boot")];
    assert_eq!(left(&fresh, &[]), (vec![2, 4, 5, 6, 7, 8], vec![]));
}
