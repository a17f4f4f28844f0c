//! `parallax demo`, and its transcript in README.

use std::fs;
use std::process::Command;

use crate::support::{binary, turn};

/// What stays the same from run to run: the words, without numbers, units and drawings.
fn words(text: &str) -> Vec<String> {
    let begin = text.find("virtual users share").expect("the demo names its virtual users");
    let drawn = |token: &str| token.chars().all(|char| "▒█".contains(char));
    let is_unit = |token: &str| {
        ["s", "ms", "us", "\u{b5}s", "ns", "%"].contains(&token.trim_matches(|char| ".,;()".contains(char)))
    };
    let tokens = text[begin..].split_whitespace();
    tokens
        .filter(|token| {
            !token.contains(|char: char| char.is_ascii_digit()) && !drawn(token) && !is_unit(token)
        })
        .map(str::to_owned)
        .collect()
}

/// If this fails, README shows what the program no longer prints.
#[test]
fn the_transcript_in_readme_is_what_the_demo_prints() {
    let _turn = turn::alone();
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(binary::parallax())
        .args(["demo", "--fast"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    // The verdict comes before anything else; announcements are not a result.
    assert!(["valid: ", "degraded: ", "invalid: "].iter().any(|word| printed.starts_with(word)), "{printed}");
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("12 requests from 4 virtual users"));

    let readme = fs::read_to_string(binary::root().join("README.md")).unwrap();
    let (_, after) = readme.split_once("$ parallax demo\n").expect("README shows the demo");
    let (transcript, _) = after.split_once("```").expect("the transcript ends");
    assert!(transcript.contains("valid: all checks "));
    assert_eq!(words(transcript), words(&printed), "README: {transcript}\nprinted: {printed}");
}
