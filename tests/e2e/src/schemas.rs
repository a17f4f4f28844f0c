//! The output of `explain --json` and `doctor --json` fits the shipped schemas.

use std::process::Command;

use serde_json::Value;

use crate::support::nginx::Nginx;
use crate::support::{binary, laws, turn};

#[track_caller]
fn printed(arguments: &[&str]) -> Value {
    let output = Command::new(binary::parallax()).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_diagnosis_fits_its_schema() {
    let _turn = turn::together();
    let reported = printed(&["doctor", "--json"]);
    laws::fits("doctor.schema.json", &reported);
    assert!(reported["checks"].as_array().unwrap().iter().any(|check| check["check"] == "arrival_stamps"));
}

#[test]
fn an_explanation_fits_its_schema() {
    let _turn = turn::together();
    let nginx = Nginx::start("location / { return 200 'hello'; }");
    let folder = tempfile::tempdir().unwrap();
    for requests in ["all", "slowest=10"] {
        let record = folder.path().join(requests);
        let record = record.to_str().unwrap();
        let drive = ["drive", "--quiet", "-n", "500", "-c", "2", "--requests", requests, "-o", record];
        let driven = Command::new(binary::parallax()).args(drive).arg(nginx.url("/")).output().unwrap();
        assert!(matches!(driven.status.code(), Some(0 | 3)), "{}", String::from_utf8_lossy(&driven.stderr));
        let reported = printed(&["explain", "--json", record]);
        laws::fits("explain.schema.json", &reported);
        // There was no observer on the server's side: that is reported, not guessed.
        assert_eq!(reported["join"]["by_ends"], 0);
        assert!(reported["notes"].to_string().contains("no record of the server"), "{}", reported["notes"]);
    }
}
