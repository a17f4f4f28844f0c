//! vegeta's target files in both forms: the shares in nginx's log are the weights.

use std::collections::BTreeMap;
use std::fs;

use crate::support::nginx::{Nginx, Seen};
use crate::support::run::{argument, drive, text};
use crate::support::turn;

/// How often each method and path was seen.
fn shares(seen: &[Seen]) -> BTreeMap<String, u64> {
    let mut shares = BTreeMap::new();
    for one in seen {
        *shares.entry(format!("{} {}", one.method, one.uri)).or_default() += 1;
    }
    shares
}

/// If this fails, a mix of requests is not the requested one.
#[track_caller]
fn check_weights(targets: impl FnOnce(&str) -> String) {
    let _turn = turn::together();
    let nginx = Nginx::start("location / { return 200 'hello'; }");
    let file = nginx.file("targets");
    fs::write(&file, targets(&nginx.url(""))).unwrap();
    fs::write(nginx.file("body.txt"), "a body").unwrap();
    let run = drive(&["-n", "1200", "-c", "4", "-w", "2", "--targets", &argument(&file)]);
    run.assert_done();
    assert_eq!(run.reported(), ["ok - 1200"]);
    let seen = shares(&nginx.finish());
    let seen: Vec<_> = seen.iter().map(|(what, count)| (what.as_str(), *count)).collect();
    assert_eq!(seen, [("GET /often", 600), ("GET /once", 200), ("POST /twice", 400)]);
    assert_eq!(run.json["subject"]["request_kinds"], 3);
    assert!(text(&run.json, "/subject/url").ends_with("/often"));
}

#[test]
fn the_http_form_is_sent_by_weight() {
    check_weights(|url| {
        format!(
            "# a comment\n# weight: 3\nGET {url}/often\n\nGET {url}/once\nX-Own: 1\n\n\
             # weight: 2\nPOST {url}/twice\nContent-Type: text/plain\n@body.txt\n"
        )
    });
}

#[test]
fn the_json_form_is_sent_by_weight() {
    check_weights(|url| {
        format!(
            "{{\"method\":\"GET\",\"url\":\"{url}/often\",\"weight\":3}}\n\
             {{\"method\":\"GET\",\"url\":\"{url}/once\",\"header\":{{\"X-Own\":[\"1\"]}}}}\n\
             {{\"method\":\"POST\",\"url\":\"{url}/twice\",\"body\":\"YSBib2R5\",\"weight\":2}}\n"
        )
    });
}
