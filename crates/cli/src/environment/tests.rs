//! What a record keeps of the command line.

use clap::CommandFactory;

use super::*;

/// If this fails, a record that is passed on contains a password.
#[test]
fn no_spelling_of_an_option_keeps_a_credential() {
    for typed in [
        &["-H", "Authorization: Bearer hunter2"][..],
        &["-vH", "Authorization: Bearer hunter2"],
        &["-vkH", "Authorization: Bearer hunter2"],
        &["-vHX-Token:hunter2"],
        &["-vH=X-Token:hunter2"],
        &["-c2", "-vkHX-Token:hunter2"],
        &["--header=Cookie: hunter2", "--set", "password=hunter2"],
        &["--otlp=http://h/v1/hunter2/x?key=hunter2"],
    ] {
        let typed: Vec<OsString> =
            ["parallax", "drive", "http://h/"].iter().chain(typed).map(OsString::from).collect();
        let program = crate::Cli::command();
        let matches = program.clone().try_get_matches_from(&typed).unwrap();
        let kept = redacted(&CommandLine { command: &program, matches: &matches }, &typed);
        assert_eq!(kept.len(), typed.len(), "{typed:?}");
        assert!(!kept.concat().contains("hunter2"), "{kept:?}");
    }
}
