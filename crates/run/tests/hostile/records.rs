//! Folders of records of every kind: the golden ones and those under `seeds`, damaged, with links, pipes and huge files
//! in place of files. What can be read is also reported, and explained: a damaged client with a good server and the
//! reverse, and both with a damaged record of what else happened on the host.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use explain::{Client, HostRecord, Server};
use export::{requests, served};
use findings::view::View;
use findings::{RunRecord, WatchQuery};
use record::{Carried, KeptRequest, Phase, Timeline, TwoClocks};
use report::Style;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use units::Nanos;

use crate::mutation::Draw;

/// The files of a record by name.
type Files = BTreeMap<String, Vec<u8>>;

/// Reads folder after folder, next to a file that must not be read through a link.
pub fn fuzzer(root: &Path) -> Box<dyn FnMut(&mut Draw)> {
    let root = root.to_owned();
    let crate_root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let golden = ["run", "run-1.1", "jvm"].map(|name| crate_root.join("../../formats/golden").join(name));
    let seed = |name| crate_root.join("tests/hostile/seeds").join(name);
    let seeds = ["search", "import", "drive", "watch", "cpu", "profile", "hiccup", "disturb"].map(seed);
    let good = Good {
        client: client(&seed("drive")).expect("the seed is a record"),
        server: server(&seed("watch")).expect("the seed is a record"),
    };
    let mut bases: Vec<(PathBuf, Files)> = Vec::new();
    for from in golden.iter().chain(&seeds) {
        let folder = root.join(from.file_name().expect("each has a name"));
        fs::create_dir(&folder).expect("the test's folder can be written");
        let mut files = Files::new();
        for file in fs::read_dir(from).expect("the records are there").flatten() {
            let bytes = fs::read(file.path()).expect("a golden file can be read");
            files.insert(file.file_name().to_string_lossy().into_owned(), bytes);
        }
        files.entry("requests.parquet".to_owned()).or_insert_with(|| requests_file(&root));
        files.insert("clock.json".to_owned(), clock(&root));
        files.iter().for_each(|(name, bytes)| fs::write(folder.join(name), bytes).expect("there is room"));
        bases.push((folder, files));
    }
    Box::new(move |draw| {
        let (folder, files) = draw.of(&bases);
        let mut changed = Vec::new();
        for _ in 0..=draw.below(3) {
            let name = *draw.of(&files.keys().collect::<Vec<_>>());
            damage(&folder.join(name), files[name].clone(), draw);
            changed.push(name);
        }
        read(folder);
        if draw.below(4) == 0 {
            explained(folder, &good);
        }
        let others = fs::read_dir(folder).expect("it is there").flatten();
        let others: Vec<_> =
            others.filter(|file| !files.contains_key(&*file.file_name().to_string_lossy())).collect();
        assert!(others.is_empty(), "a reader has made {others:?}");
        for name in changed {
            let path = folder.join(name);
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir(&path));
            fs::write(path, &files[name]).expect("there is room");
        }
    })
}

fn damage(path: &Path, mut bytes: Vec<u8>, draw: &mut Draw) {
    let _ = fs::remove_file(path).or_else(|_| fs::remove_dir(path));
    match draw.below(40) {
        0 => symlink("/dev/zero", path).expect("a link can be made"),
        1 => mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a pipe can be made"),
        2 => fs::create_dir(path).expect("a folder can be made"),
        3 => File::create(path).and_then(|file| file.set_len(1 << 40)).expect("a hole takes no room"),
        4 => {}
        _ => {
            draw.damage(&mut bytes);
            fs::write(path, bytes).expect("there is room");
        }
    }
}

/// Calls every reader of a record.
fn read(folder: &Path) {
    let _ = record::kind_of(folder);
    let _ = record::import::is_import(folder);
    if let Ok(import) = record::import::read_import(folder) {
        report(&findings::import_view(&import, folder));
    }
    if let Ok(search) = record::search::read_search(folder) {
        report(&findings::search_view(&search, Some(folder)));
    }
    let _ = record::read_seconds(folder);
    if let Ok(observed) = record::read_observation(folder) {
        let _ = findings::observation_view(&observed, &WatchQuery::default()).map(|view| report(&view));
    }
    for picture in ["on-cpu", "off-cpu", "run-queue"] {
        let _ = export::pictures::read(&folder.join(picture).with_extension("collapsed"));
    }
    let _ = TwoClocks::read(folder).map(|clocks| clocks.map(|clocks| clocks.contradicts_itself()));
    let _ = run::record_lock::is_running(folder);
    if let Ok(recording) = record::read(folder) {
        let rebuilt = findings::rebuild(recording);
        let run = RunRecord { document: &rebuilt.document, seconds: &rebuilt.seconds, folder: Some(folder) };
        report(&findings::run_view(&run));
    }
    if let Ok(Some(file)) = record::open_file(&folder.join("requests.parquet")) {
        let _ =
            requests::read(file, 1_000, |row| assert!(row.phases.iter().flatten().count() <= Phase::COUNT));
    }
    if let Ok(Some(file)) = record::open_file(&folder.join("requests.parquet")) {
        let _ = served::read(file, 1_000, Nanos(0), drop);
    }
}

/// Records of one run that can be joined.
struct Good {
    client: Client,
    server: Server,
}

fn client(folder: &Path) -> Option<Client> {
    let recording = record::read(folder).ok()?;
    let requests = record::open_file(&folder.join("requests.parquet")).ok()?;
    Client::read(recording, requests, "client".to_owned()).ok()
}

fn server(folder: &Path) -> Option<Server> {
    let observed = record::read_observation(folder).ok()?;
    let served = record::open_file(&folder.join("served.parquet")).ok()?;
    Server::read(observed, served, TwoClocks::read(folder).ok()?, "server".to_owned()).ok()
}

/// Explains with this record in place of a good one, or next to them, as `parallax explain` does.
fn explained(folder: &Path, good: &Good) {
    let (client, server) = match record::kind_of(folder).as_deref() {
        Ok("drive") => (client(folder), Some(good.server.clone())),
        Ok("watch") => (None, server(folder)),
        _ => (None, Some(good.server.clone())),
    };
    let Some(server) = server else { return };
    let host = record::read_observation(folder).ok();
    let host = host.map(|observed| HostRecord { observed, name: "host".to_owned() });
    let client = client.as_ref().unwrap_or(&good.client);
    let explanation = explain::explain(client, vec![server], host.as_slice());
    report(&explain::view(&explanation));
}

/// Every line fits on a terminal that cannot be moved by what a record contains.
fn report(view: &View) {
    let mut text = Vec::new();
    let style = Style { colour: false, unicode: true, width: 100, details: true };
    report::text(view, &mut text, style).expect("memory takes what is written");
    let is_control = |byte: &u8| *byte < b' ' && *byte != b'\n';
    assert!(!text.iter().any(is_control), "{}", String::from_utf8_lossy(&text).escape_debug());
}

fn clock(root: &Path) -> Vec<u8> {
    let reading = |at: u64| record::ClockReading::of(Nanos(at), Nanos(at * 2), Nanos(at + 10));
    TwoClocks::new(None, [1_000, 2_000, 3_000].into_iter().filter_map(reading).collect())
        .write(root)
        .expect("the test's folder can be written");
    fs::read(root.join("clock.json")).expect("it was written")
}

fn requests_file(root: &Path) -> Vec<u8> {
    let path = root.join("requests.parquet");
    let started = "2026-11-22T00:00:00Z".to_owned();
    let run = requests::Run {
        zero: Nanos(900),
        started,
        kept: "all".to_owned(),
        targets: vec!["GET /".to_owned()],
    };
    let mut writer =
        requests::Writer::new(File::create(&path).expect("there is room"), &run).expect("the header fits");
    let requests: Vec<KeptRequest> = (0..20)
        .map(|n| {
            let mut timeline = Timeline::due(Nanos(1_000 + n));
            for (phase, at) in [(Phase::ScheduleLag, 1_010), (Phase::Send, 1_020), (Phase::ClientLag, 1_100)]
            {
                timeline.end(phase, Nanos(at + n));
            }
            let end = |text: &str| text.parse().expect("an address");
            let carried = Carried { local: end("127.0.0.1:41000"), server: end("[::1]:80"), nth: n };
            KeptRequest {
                n,
                kind: 0,
                connection: Some(3),
                carried: Some(carried),
                ended: timeline.last(),
                timeline,
                failure: None,
                code: Some(units::Code::status(200)),
            }
        })
        .collect();
    writer.write(&requests).expect("there is room");
    writer.finish().expect("there is room");
    fs::read(path).expect("it was written")
}
