//! The table compared with the types, and specs compared with the options they were made of.

use record::document::EffectiveOption;

use super::*;
use crate::effective::effective;
use crate::testing::{given, prepared};

/// Command lines with options of every group, without conflicts.
const LINES: [&[&str]; 5] = [
    &["http://127.0.0.1:1/", "-c", "3", "--users", "4", "--think", "exp:1s", "--seed", "7", "-n", "5"],
    &[
        "http://127.0.0.1:1/",
        "-r",
        "1k/s",
        "--max-in-flight",
        "10",
        "--jitter",
        "5%",
        "-H",
        "A: 1",
        "-H",
        "B: 2",
    ],
    &[
        "http://127.0.0.1:1/",
        "--stage",
        "pause 1s",
        "--stage",
        "constant 3/s 1500ms",
        "--requests",
        "sample=5%",
    ],
    &[
        "http://127.0.0.1:1/",
        "-d",
        "1500ms",
        "--timeout",
        "off",
        "--max-body",
        "64KiB",
        "--fail-if",
        "p99 > 1s",
    ],
    &[
        "https://127.0.0.1:1/",
        "-k",
        "--alpn",
        "h2",
        "--tls-version",
        "1.3",
        "--drain",
        "0s",
        "--no-tui",
        "--otlp",
        "http://h",
        "--on-invalid",
        "retry:3",
        "--record-mode",
        "0640",
    ],
];

/// If this fails, a run started from its spec differs from the run with the options the spec was made of.
#[test]
fn a_spec_gives_the_options_that_it_was_made_of() {
    for line in LINES {
        let given = given(line);
        let spec = given.spec().unwrap();
        assert_eq!(spec.given(), given, "{line:?}");
        let json = serde_json::to_string_pretty(&spec).unwrap();
        assert_eq!(RunSpec::from_json(&json).unwrap(), spec, "{json}");
    }
}

/// If this fails, the older name has changed its meaning.
#[test]
fn callers_are_users_or_requests_in_flight() {
    let of = |line: &[&str]| given(line).spec().unwrap().given();
    assert!(of(&["http://h/", "--callers", "4"]).has("users"));
    assert!(of(&["http://h/", "-r", "5", "--callers", "4"]).has("max-in-flight"));
    let refused = |line: &[&str]| given(line).spec().unwrap_err().to_string();
    assert!(refused(&["http://h/", "-r", "5", "--users", "4"]).contains("use --max-in-flight"));
    assert!(refused(&["http://h/", "--max-in-flight", "4"]).contains("use --users"));
    assert!(refused(&["http://h/", "--callers", "4", "--users", "4"]).contains("cannot be used with"));
}

#[test]
fn a_wrong_spec_is_refused_with_the_name_of_its_field() {
    let urls = r#""request": {"urls": {"url": ["http://h/"]}}"#;
    for (rest, what) in [
        (r#", "lod": {}"#, "unknown field `lod`"),
        (r#", "load": []"#, "load must be an object"),
        (r#", "load": {"model": {"open": {"schedule": []}}}"#, "load.model.open.schedule must be an object"),
        (r#", "pool": {"conections": 3}"#, "unknown field `conections`"),
        (r#", "pool": {"connections": "0"}"#, "pool.connections: `0`: must be at least 1"),
        (r#", "limits": {"timeout": "soon"}"#, "limits.timeout: `soon`"),
        (r#", "load": {"model": {"closed": {"rate": "5/s"}}}"#, "unknown field `rate`"),
        (r#", "tls": {"cert": "x"}"#, "--cert needs --key"),
    ] {
        let error = format!("{:#}", RunSpec::from_json(&format!("{{{urls}{rest}}}")).unwrap_err());
        assert!(error.contains(what) && error.lines().count() == 1, "{error}");
    }
}

#[test]
fn a_spec_that_is_not_an_object_is_refused() {
    for text in ["[]", "3", "null", "\"http://h/\""] {
        let error = format!("{:#}", RunSpec::from_json(text).unwrap_err());
        assert_eq!(error, "a spec must be a JSON object, as --print-spec prints it", "{text}");
    }
}

/// If this fails, `formats/run-spec.schema.json` does not match the types, or an option has no place in it.
#[test]
fn the_schema_is_that_of_the_types() {
    let mut schema = schemars::schema_for!(RunSpec);
    schema.insert("title".to_owned(), "a run of parallax drive, for --spec".into());
    let text = format!("{:#}\n", schema.to_value());
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../formats/run-spec.schema.json");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), text, "UPDATE_EXPECT=1 rewrites it");
}

fn options(line: &[&str]) -> BTreeMap<String, EffectiveOption> {
    effective(&prepared(line).unwrap(), std::path::Path::new("runs/one"))
}

#[track_caller]
fn check_option(options: &BTreeMap<String, EffectiveOption>, name: &str, value: &str, source: OptionSource) {
    assert_eq!(options[name], EffectiveOption { value: value.to_owned(), source }, "{name}");
}

#[test]
fn what_was_not_given_has_its_effective_value() {
    let options = options(&["http://127.0.0.1:1/"]);
    for (name, value) in [
        ("method", "GET"),
        ("expect-status", "below 400"),
        ("count", "no limit"),
        ("requests", "none: only sums are kept"),
        ("duration", "10s"),
        ("drain", "5s"),
        ("rate", "none: closed loop"),
        ("output", "runs/one"),
        ("users", "10"),
        ("max-in-flight", "none: closed loop"),
        ("body", "none"),
        ("header", "none"),
        ("arrivals", "none: closed loop"),
        ("seed", "none: nothing is random"),
        ("speed", "none"),
        ("think", "none"),
    ] {
        check_option(&options, name, value, OptionSource::Derived);
    }
    check_option(&options, "stamps", "kernel", OptionSource::Default);
    check_option(&options, "max-head", "64KiB", OptionSource::Default);
    check_option(&options, "json", "", OptionSource::Default);
    // The only empty options are flags that are off.
    let empty: Vec<_> = options.iter().filter(|(_, option)| option.value.is_empty()).collect();
    let names: Vec<_> = empty.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "insecure",
            "json",
            "keep-trying",
            "no-color",
            "no-record",
            "no-tui",
            "prepared",
            "quiet",
            "server-account",
            "verbose"
        ]
    );
}

#[test]
fn a_number_of_requests_alone_waits_for_all_of_them() {
    let alone = options(&["-n", "5", "http://127.0.0.1:1/"]);
    check_option(&alone, "drain", "off", OptionSource::Derived);
    check_option(&alone, "duration", "no limit", OptionSource::Derived);
    let both = options(&["-n", "5", "-d", "1500ms", "--users", "1", "-c", "64", "http://127.0.0.1:1/"]);
    check_option(&both, "drain", "5s", OptionSource::Derived);
    check_option(&both, "duration", "1500ms", OptionSource::Given);
    check_option(&both, "workers", "1", OptionSource::Derived);
}

#[test]
fn a_fresh_seed_is_an_effective_value_and_stages_are_kept_as_given() {
    let random = options(&["-r", "5/s", "--arrivals", "poisson", "http://127.0.0.1:1/"]);
    assert_eq!(random["seed"].source, OptionSource::Derived);
    assert!(random["seed"].value.parse::<u64>().is_ok(), "{}", random["seed"].value);
    let staged = options(&["--stage", "pause 1s", "--stage", "constant 3/s 1500ms", "http://127.0.0.1:1/"]);
    check_option(&staged, "stage", r#"["pause 1s","constant 3/s 1500ms"]"#, OptionSource::Given);
    check_option(&staged, "rate", "none: the schedule sets it", OptionSource::Derived);
    check_option(&staged, "duration", "2500ms", OptionSource::Derived);
    check_option(&staged, "max-in-flight", "100000", OptionSource::Derived);
}

#[test]
fn several_headers_can_be_told_apart_and_hold_no_secret() {
    let several = ["-H", "A: 1, B: 2", "-H", "Cookie: hunter2", "-b", "", "--json", "http://127.0.0.1:1/"];
    let several = options(&several);
    check_option(&several, "header", r#"["A: 1, B: 2","Cookie: (redacted)"]"#, OptionSource::Given);
    check_option(&several, "method", "POST", OptionSource::Derived);
    check_option(&several, "body", "", OptionSource::Given);
    check_option(&several, "json", "true", OptionSource::Given);
}
