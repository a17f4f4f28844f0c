//! Reports on invented profiles.

#[path = "fixture/rendered.rs"]
mod rendered;

use std::path::Path;

use findings::ProfileChange;
use record::observation::ObservationBody;
use record::observation::profile::{
    FrameShare, Picture, PictureResult, ProfileLosses, ProfileResults, ProfiledProcess, Sleeper, Wait,
    WaitKind,
};
use record::read_observation;
use record::stacks::{Stacks, changes};
use rendered::rendered;
use report::Style;

fn share(frame: &str, own: f64) -> FrameShare {
    FrameShare { frame: frame.to_owned(), own, total: own }
}

fn picture(picture: Picture, frame: &str) -> PictureResult {
    PictureResult {
        picture,
        count: 3,
        time_ns: 30_000_000,
        stacks: 1,
        frames: vec![share(frame, 0.75)],
        widest: Vec::new(),
    }
}

fn results() -> ProfileResults {
    ProfileResults {
        processes: vec![ProfiledProcess { pid: 7, name: Some("shop".to_owned()), ended: false }],
        rate_hz: 99,
        on_cpu_ns: 31_000_000,
        pictures: vec![
            picture(Picture::OnCpu, "f\u{1b}[2J"),
            picture(Picture::OffCpu, "lock"),
            picture(Picture::RunQueue, "g"),
        ],
        waits: vec![Wait {
            picture: Picture::OffCpu,
            kind: WaitKind::Pool,
            what: "a connection of HikariCP's pool".to_owned(),
            time_ns: 20_000_000,
            share: 0.5,
            share_of_busy: Some(0.8),
        }],
        sleepers: vec![Sleeper {
            thread: "worker".to_owned(),
            threads: 2,
            sleeps: 3,
            asleep_ns: 30_000_000,
            what: None,
        }],
        lost: ProfileLosses { stacks: 4, ..ProfileLosses::default() },
        ..ProfileResults::default()
    }
}

fn printed(results: &ProfileResults) -> String {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../formats/golden/jvm");
    let mut document = read_observation(&golden).expect("the golden record is read").document;
    document.body = ObservationBody::Profile(Box::new(results.clone()));
    rendered(&findings::profile_view(&document, results), Style::PLAIN)
}

#[test]
fn the_wait_for_a_pool_is_named_with_its_share() {
    let text = printed(&results());
    assert!(text.contains("on CPU: 30.0 ms by 3 samples; the scheduler counted 31.0 ms"), "{text}");
    let line = text.lines().find(|line| line.contains("HikariCP")).unwrap();
    assert!(line.contains("pool") && line.contains("50.0 %") && line.contains("80.0 %"), "{line}");
}

/// If this fails, a function name of the server can control the terminal.
#[test]
fn a_name_reaches_no_terminal_as_it_is() {
    let text = printed(&results());
    assert!(!text.contains('\u{1b}') && text.contains("f\\u{1b}[2J"), "{text}");
}

#[test]
fn a_change_names_what_grew_first_and_what_shrank_last() {
    let stacks = |text| Stacks::parse(text).unwrap();
    let changes = changes(&stacks("t;main;f 50\nt;main;g 50"), &stacks("t;main;f 75\nt;main;g 25"));
    let change = ProfileChange { picture: Picture::OnCpu, changes: &changes };
    let text = rendered(&findings::profile_change_view(&change), Style::PLAIN);
    let rows: Vec<_> = text.lines().skip(2).collect();
    assert_eq!(rows.len(), 2, "{text}");
    assert!(rows[0].ends_with(" f") && rows[0].contains("+25.0"), "{text}");
    assert!(rows[1].ends_with(" g") && rows[1].contains("-25.0"), "{text}");
}
