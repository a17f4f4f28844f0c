//! Scenario files merged with options.

use std::fs;

use super::*;
use crate::prepare::prepare;
use crate::testing::given;

const TEXT: &str = "[run]\nconnections = 3\nrate = \"5/s\"\ntimeout = \"2s\"\n[vars]\nuser = \"ann\"\napi_token = \"hunter2\"\n\
                    [targets.api]\nurl = \"http://127.0.0.1:1\"\n[[request]]\npath = \"/{{user}}\"\n";

fn merged(text: &str, more: &[&str]) -> anyhow::Result<Merged> {
    merged_in(tempfile::tempdir().unwrap().path(), text, more)
}

fn merged_in(folder: &Path, text: &str, more: &[&str]) -> anyhow::Result<Merged> {
    let path = folder.join("s.toml");
    fs::write(&path, text).unwrap();
    merge(&given(&[&[path.to_str().unwrap()], more].concat()))
}

fn spec_in(folder: &Path, text: &str, more: &[&str]) -> anyhow::Result<RunSpec> {
    Ok(merged_in(folder, text, more)?.spec)
}

/// If this fails, a run is not the one that was requested, or its record does not show where an option came from.
#[test]
fn a_typed_option_stands_before_a_set_and_that_before_the_file() {
    let merged = merged(TEXT, &["--timeout", "9s", "--set", "rate=7/s", "--set", "user=bob"]).unwrap();
    for (name, text, source) in [
        ("connections", "3", OptionSource::File),
        ("rate", "7/s", OptionSource::Set),
        ("timeout", "9s", OptionSource::Given),
    ] {
        assert_eq!(merged.given.0[name], GivenOption { texts: vec![text.to_owned()], source }, "{name}");
    }
    let values = merged.values();
    assert_eq!((values["vars.user"].value.as_str(), values["vars.user"].source), ("bob", OptionSource::Set));
    assert_eq!(values["vars.api_token"].value, "(redacted)");
    assert_eq!(values["targets.api.url"].value, "http://127.0.0.1:1");
}

/// If this fails, an option of the file that no longer applies conflicts with a typed one.
#[test]
fn a_load_that_was_typed_takes_the_place_of_the_files() {
    let run = |run: &str| TEXT.replace("rate = \"5/s\"\n", run);
    let even = run("rate = \"5/s\"\nduration = \"9s\"\njitter = \"10%\"\n");
    let stages = run("stages = [\"constant 1/s 1s\", \"pause 1s\"]\n");
    let replay = run("replay = \"log\"\nspeed = \"2x\"\nreplay_column = \"t\"\nduration = \"9s\"\n");
    let callers = run("think = \"1s\"\nduration = \"9s\"\n");
    let (stage, rate) = ("ramp 1/s..50/s 30s", "7/s");
    for (text, typed, left) in [
        (&even, ["--stage", stage], "stages 1"),
        (&even, ["--rate", rate], "rate 7/s duration 9s jitter"),
        (&even, ["--replay", "log"], "replay duration 9s"),
        (&even, ["--arrivals", "poisson"], "rate 5/s duration 9s arrivals"),
        (&even, ["--set", "stages=[\"constant 3/s 2s\"]"], "stages 1"),
        (&stages, ["--rate", rate], "rate 7/s"),
        (&stages, ["--stage", stage], "stages 1"),
        (&replay, ["--rate", rate], "rate 7/s duration 9s"),
        (&replay, ["--stage", stage], "stages 1"),
        (&callers, ["--rate", rate], "rate 7/s duration 9s"),
        (&callers, ["--stage", stage], "stages 1"),
    ] {
        let given = merged(text, &typed).unwrap_or_else(|error| panic!("{typed:?}: {error:#}")).given;
        let names =
            ["rate", "stage", "replay", "duration", "arrivals", "jitter", "speed", "replay-column", "think"];
        let words = names.iter().filter_map(|name| {
            let texts = &given.0.get(*name)?.texts;
            Some(match *name {
                "rate" | "duration" => format!("{name} {}", texts[0]),
                "stage" => format!("stages {}", texts.len()),
                name => name.to_owned(),
            })
        });
        assert_eq!(words.collect::<Vec<_>>().join(" "), left, "{typed:?}");
    }
}

#[test]
fn what_the_options_refuse_is_told_with_its_place_in_the_file() {
    for (text, place, what) in [
        (TEXT.replace("connections = 3", "connections = 0"), "s.toml:2:15: ", "at least 1"),
        (TEXT.replace("timeout", "pace"), "s.toml:4:8: ", "precise, balanced"),
        (TEXT.replace("connections", "stamps"), "s.toml:2:10: ", "kernel, read"),
    ] {
        let error = format!("{:#}", merged(&text, &[]).err().expect(what));
        assert!(error.contains(place) && error.contains(what) && error.lines().count() == 1, "{error}");
    }
}

fn places(text: &str, more: &[&str]) -> anyhow::Result<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let spec = spec_in(folder.path(), text, more)?;
    let plan = prepare(&spec, &Environment::none())?.plan;
    Ok(plan.peers.iter().map(|peer| format!("{:?}", peer.place)).collect())
}

/// If this fails, the load goes to another server than typed, without an error.
#[test]
fn options_say_where_the_targets_are_or_are_refused() {
    let one = TEXT.replace("127.0.0.1:1", "shop:80");
    let two = format!("{}target = \"api\"\n[targets.other]\nurl = \"http://other\"\n", one);
    let (resolve, unix) = (["--resolve", "shop:80:127.0.0.9"], ["--unix", "/x.sock"]);
    assert_eq!(places(&one, &resolve).unwrap(), ["Address(127.0.0.9:80)"]);
    assert_eq!(places(&two, &resolve).unwrap()[0], "Address(127.0.0.9:80)");
    assert_eq!(places(&one, &unix).unwrap(), [r#"Unix("/x.sock")"#]);
    for (text, options, what) in [
        (&one, ["--resolve", "shop:81:127.0.0.9"], "--resolve has a host and port that no URL has"),
        (&two, ["--resolve", "shp:80:127.0.0.9"], "--resolve has a host and port that no URL has"),
        (&two, unix, "--unix is one socket, but the scenario has 2 targets"),
        (&two, ["--sni", "shop"], "TLS options need an https:// URL"),
    ] {
        let error = format!("{:#}", places(text, &options).unwrap_err());
        assert!(error.contains(what) && error.lines().count() == 1, "{error}");
    }
}

/// If this fails, a scenario finds its certificates from one working directory only.
#[test]
fn certificates_stand_beside_the_scenario() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["ca.pem", "cert.pem", "key.pem"] {
        fs::write(folder.path().join(name), "no certificate").unwrap();
    }
    let text = TEXT.replace("http:", "https:");
    for (tls, file) in [
        ("tls = { ca = \"ca.pem\" }", "ca.pem"),
        ("tls = { insecure = true, cert = \"cert.pem\", key = \"none.pem\" }", "none.pem"),
    ] {
        let text = text.replace("[[request]]", &format!("{tls}\n[[request]]"));
        let spec = spec_in(folder.path(), &text, &[]).unwrap();
        let error = format!("{:#}", prepare(&spec, &Environment::none()).err().expect(tls));
        let path = folder.path().join(file);
        assert!(error.contains(&format!("`{}`", path.display())), "{error}");
    }
}

/// If this fails, the record of a scenario has other options when it is run from its printed spec.
#[test]
fn a_merged_spec_merges_to_itself() {
    let folder = tempfile::tempdir().unwrap();
    let first = merged_in(folder.path(), TEXT, &["--callers", "7", "--set", "timeout=3s"]).unwrap();
    let json = serde_json::to_string(&first.spec).unwrap();
    let again = merge(&RunSpec::from_json(&json).unwrap().given()).unwrap();
    assert_eq!(again.given, first.given);
    assert_eq!(again.given.0["rate"].source, OptionSource::File);
    assert_eq!(again.given.0["timeout"].source, OptionSource::Set);
    assert_eq!(again.given.0["max-in-flight"].texts, ["7"]);
}

/// If this fails, a scenario is mistaken for a host of that name.
#[test]
fn a_scenario_is_named_alone_and_in_small_letters() {
    let named = |urls: &[&str]| {
        let urls: Vec<String> = urls.iter().map(|url| (*url).to_owned()).collect();
        names_scenario(&urls).map_err(|error| error.to_string())
    };
    assert_eq!(named(&["x/a.toml"]), Ok(true));
    assert_eq!(named(&["http://h/a.toml", "h/b"]), Ok(false));
    for (urls, what) in [
        (&["a.toml", "http://h/"][..], "the only argument"),
        (&["h", "b.toml"], "`b.toml` is a scenario"),
        (&["A.TOML"], "in lower case"),
        (&["script.lua"], "there are no scripts"),
    ] {
        let error = named(urls).unwrap_err();
        assert!(error.contains(what) && error.lines().count() == 1, "{error}");
    }
}

/// If this fails, a scenario file or its data that has no end takes all memory.
#[test]
fn a_scenario_and_its_data_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.toml");
    std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
    let error = merge(&crate::testing::given(&[file.to_str().unwrap()])).err().unwrap();
    assert!(format!("{error:#}").ends_with("it is over 16.0 MiB; use a smaller file"), "{error:#}");
    let data = format!("{TEXT}[data.users]\nfile = \"/dev/zero\"\nformat = \"csv\"\n")
        .replace("{{user}}", "{{users.name}}");
    let error = merged(&data, &[]).unwrap().compile(1, &Environment::none()).err().unwrap();
    assert!(format!("{error:#}").contains("it is over 256.0 MiB"), "{error:#}");
}
