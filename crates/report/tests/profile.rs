//! Reports on invented profiles.

#[path = "fixture/rendered.rs"]
mod rendered;

use std::path::Path;

use expect_test::expect;
use findings::{FoundFrames, FrameAnswers, ProfileChange, Samples, focus_view};
use record::observation::ObservationBody;
use record::observation::profile::{
    FrameShare, Picture, PictureResult, ProfileLosses, ProfileResults, ProfiledProcess, Sleeper, Spin, Wait,
    WaitKind,
};
use record::read_observation;
use record::stacks::focus::Focus;
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
    let change = ProfileChange { picture: Picture::OffCpu, changes: &changes, samples: None };
    let text = rendered(&findings::profile_change_view(&change), Style::PLAIN);
    let rows: Vec<_> = text.lines().skip(2).collect();
    assert_eq!(rows.len(), 2, "{text}");
    assert!(rows[0].ends_with(" f") && rows[0].contains("+25.0"), "{text}");
    assert!(rows[1].ends_with(" g") && rows[1].contains("-25.0"), "{text}");
}

/// If this fails, two profiles of the same program show a regression.
///
/// 1,000 samples each; an honest coin shows 25 % as 26.9 % every sixth time. A change from 25 % to 40 % is one.
#[test]
fn a_change_that_may_be_chance_is_not_claimed() {
    let stacks = |text: &str| Stacks::parse(text).unwrap();
    let text = |after: &str| {
        let changes = changes(&stacks("t;main;f 250\nt;main;g 750"), &stacks(after));
        let samples = Some(Samples { before: 1_000, after: 1_000 });
        let change = ProfileChange { picture: Picture::OnCpu, changes: &changes, samples };
        rendered(&findings::profile_change_view(&change), Style::PLAIN)
    };
    let chance = text("t;main;f 269\nt;main;g 731");
    assert!(
        chance.contains(
            "no frame's share changed by more than chance: 3 frames compared in 1000 and 1000 samples"
        ),
        "{chance}"
    );
    let change = text("t;main;f 400\nt;main;g 600");
    assert!(change.contains("25.0 %    40.0 %  +15.0 [+"), "{change}");
    assert!(change.contains("95 % for 3 frames together"), "{change}");
}

#[test]
fn shares_of_samples_have_intervals_and_spinning_is_apart() {
    let mut results = results();
    results.pictures[0] = PictureResult { count: 990, ..picture(Picture::OnCpu, "f") };
    results.spins = vec![Spin { what: "a lock of InnoDB".to_owned(), samples: 99, share: 0.1 }];
    let text = printed(&results);
    assert!(text.contains("75.1 % [72.3, 77.6]"), "{text}");
    assert!(
        text.contains("spinning in a lock: 10.0 % of the samples, which is neither work nor sleep"),
        "{text}"
    );
    assert!(text.contains("10.0 % [8.3, 12.0]  a lock of InnoDB"), "{text}");
    // Times that were measured have none.
    assert!(text.lines().any(|line| line.trim() == "75.0 %    75.0 %  lock"), "{text}");
}

#[test]
fn a_focus_has_its_share_its_callers_and_its_callees() {
    let stacks = Stacks::parse(
        "t;main;order;price;load 300\nt;main;order;price 100\nt;main;cart;price;load 200\nt;main;idle 400",
    )
    .unwrap();
    let focus = Focus::of(&stacks, |frame| frame == "price");
    let found = FoundFrames { picture: Picture::OnCpu, question: "pri\u{1b}ce {x}", focus: &focus };
    let answers = FrameAnswers { focused: vec![found], highlighted: vec![found], ..FrameAnswers::default() };
    let text = rendered(&focus_view(&answers), Style::PLAIN);
    expect![[r#"
        on CPU, `pri\u{1b}ce {x}`: 60.0 % in 1 frame: coloured

        on CPU, `pri\u{1b}ce {x}`: 60.0 % with all it calls, 10.0 % in itself
                           own                 total  frame
            10.0 % [8.3, 12.0]   60.0 % [56.9, 63.0]  price
                         of it    of all  caller
           66.7 % [62.8, 70.3]    40.0 %  order
           33.3 % [29.7, 37.2]    20.0 %  cart
                         of it    of all  callee
           83.3 % [80.1, 86.1]    50.0 %  load
    "#]]
    .assert_eq(&text);
}
