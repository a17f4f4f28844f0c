//! The message for every mistake that we could think of: where, what, what to do, in one line.

use expect_test::{Expect, expect};

use super::{compile, with_target};

#[track_caller]
fn check(text: &str, wanted: &Expect) {
    check_with(text, &[], &[], wanted);
}

#[track_caller]
fn check_with(text: &str, sets: &[&str], files: &[(&str, &str)], wanted: &Expect) {
    let text = with_target(text);
    let mistake = compile(&text, sets, files).expect_err("a mistake").to_string();
    assert_eq!(mistake.lines().count(), 1, "{mistake}");
    wanted.assert_eq(&mistake);
}

#[test]
fn keys_that_are_not_known() {
    check(
        "[run]\nduraton = \"10s\"",
        &expect!["s.toml:4:1: `duraton` is not a key here; did you mean `duration`?"],
    );
    check(
        "[[request]]\npath = \"/\"\nwieght = 3",
        &expect!["s.toml:5:1: unknown key `wieght`; did you mean `weight`?"],
    );
    check(
        "[[requests]]\npath = \"/\"",
        &expect!["s.toml:3:3: unknown key `requests`; did you mean `request`?"],
    );
    check(
        "[[request]]\npath = \"/\"\nexpect.stauts = 200",
        &expect!["s.toml:5:8: unknown key `stauts`; did you mean `status`?"],
    );
    check(
        "[[journey]]\nname = \"a\"\n[[journey.step]]\npath = \"/\"\ncapture.id = { jsno = \"/id\" }",
        &expect!["s.toml:7:16: unknown key `jsno`; did you mean `json`?"],
    );
    check(
        "[[request]]\npath = \"/\"\nexpect.json = { \"/a\" = { equal = 1 } }",
        &expect!["s.toml:5:26: unknown key `equal`; did you mean `equals`?"],
    );
    check(
        "[data.users]\nfile = \"u.csv\"\norder = \"randm\"",
        &expect!["s.toml:5:9: unknown key `randm`; did you mean `random`?"],
    );
    check(
        "colour = \"blue\"",
        &expect!["s.toml:3:1: unknown key `colour`; valid keys are url, headers, tls"],
    );
}

#[test]
fn values_that_are_not_of_their_form() {
    check(
        "[run]\nduration = 10",
        &expect!["s.toml:4:12: `duration`: `10` has no unit; write for example 2s, 500us or 1.5ms"],
    );
    check(
        "[run]\nrate = \"fast\"",
        &expect![
            "s.toml:4:8: `rate`: `fast` is not a number with a unit; write for example 500/s, 10k/s or 30/m"
        ],
    );
    check("[run]\nconnections = [1, 2]", &expect!["s.toml:4:15: `connections` takes one value, not a list"]);
    check("[[request]]\npath = 7", &expect!["s.toml:4:8: invalid type: integer `7`, expected a string"]);
    check(
        "[[request]]\npath = \"/\"\nweight = \"many\"",
        &expect![[r#"s.toml:5:10: invalid type: string "many", expected a whole number"#]],
    );
    check(
        "[[request]]\npath = \"/\"\nweight = 0",
        &expect!["s.toml:5:10: with weight 0 it would never be sent; give 1 or more, or take it out"],
    );
    check(
        "[[request]]\npath = \"/\"\nmethod = \"get\"",
        &expect!["s.toml:5:10: methods are case-sensitive; write GET"],
    );
    check(
        "[[request]]\npath = \"/\"\nheaders = { \"a b\" = \"c\" }",
        &expect!["s.toml:5:21: `a b` is not the name of a header; write for example X-Name"],
    );
    check(
        "[[request]]\npath = \"/\"\nheaders = { A = \"b\\r\\nC: d\" }",
        &expect![
            "s.toml:5:17: the value of a header cannot contain a line break or another control character"
        ],
    );
    check(
        "[[request]]\npath = \"/\"\nexpect.status = \"20x\"",
        &expect![
            "s.toml:5:17: `20x` is not a set of statuses; write for example 200, 2xx, 200-299 or 200,404"
        ],
    );
    check(
        "[[request]]\npath = \"/\"\nexpect.body_matches = \"(\"",
        &expect!["s.toml:5:23: `(` is not a regular expression: unclosed group"],
    );
    check(
        "[[request]]\npath = \"/\"\nexpect.json = { ok = true }",
        &expect!["s.toml:5:22: `ok` is not a JSON pointer; write for example /data/token or /items/0/id"],
    );
    check(
        "[[request]]\npath = \"items\"",
        &expect![
            "s.toml:4:8: a path begins with a slash; a value that is a whole path is written {{name|path}}"
        ],
    );
    check(
        "[[request]]\npath = \"/\"\njson = \"{\"",
        &expect![[
            r#"s.toml:5:8: not JSON: EOF while parsing an object at line 1 column 1; values in it need quotes: "{{name}}""#
        ]],
    );
    check("[[request]]\npath = \"/\nx", &expect!["s.toml:5:2: key with no value, expected `=`"]);
}

#[test]
fn parts_that_are_missing_or_too_many() {
    check(
        "[[request]]\npath = \"/\"\nheaders = { Host = \"a\", host = \"{{n}}\" }",
        &expect!["s.toml:3:1: header `Host` is given twice; remove one"],
    );
    check(
        "",
        &expect!["s.toml:1:1: nothing to send; add a [[request]] with a path, or a [[journey]] with steps"],
    );
    check(
        "[[request]]\nname = \"x\"",
        &expect![[r#"s.toml:3:1: a request needs a path; add for example path = "/""#]],
    );
    check(
        "[[journey]]\nname = \"x\"",
        &expect!["s.toml:3:1: journey `x` has no steps; add a [[journey.step]] with a path"],
    );
    check(
        "[[request]]\npath = \"/\"\nbody = \"a\"\nform = { b = 1 }",
        &expect!["s.toml:6:14: a request has one body: keep one of body, json, form and file"],
    );
    check(
        "[targets.other]\nurl = \"http://127.0.0.1:1\"\n[[request]]\npath = \"/\"",
        &expect!["s.toml:5:1: which server? there are several; add target = one of api, other"],
    );
    check(
        "[[request]]\npath = \"/\"\ntarget = \"apy\"",
        &expect!["s.toml:5:10: there is no target `apy`; did you mean `api`?"],
    );
    check(
        "[targets.other]\n[[request]]\npath = \"/\"\ntarget = \"api\"",
        &expect![[r#"s.toml:3:1: target `other` has no url; add for example url = "http://127.0.0.1:8080""#]],
    );
    check(
        "[[request]]\nname = \"a\"\npath = \"/\"\n[[request]]\nname = \"a\"\npath = \"/b\"",
        &expect!["s.toml:7:8: `a` is already the name of another request; use another name"],
    );
    check(
        "[[request]]\npath = \"/\"\ncapture = { id = \"/id\" }",
        &expect![
            "s.toml:5:18: a stand-alone request has no next step that could use a captured value; make it a [[journey.step]]"
        ],
    );
    check(
        "[[request]]\npath = \"/\"\nfile = \"none.bin\"",
        &expect!["s.toml:5:8: cannot read the body `none.bin`: entity not found"],
    );
}

/// If this fails, an error shows what nobody may read.
#[test]
fn a_url_from_the_environment_that_is_none() {
    let text = "[targets.api]\nurl = \"{{env.TOKEN}}://h\"\n[[request]]\npath = \"/\"";
    expect!["s.toml:2:7: with these environment variables this is not a URL; check their values"]
        .assert_eq(&compile(text, &[], &[]).unwrap_err().to_string());
}

/// If this fails, a run goes without the client certificate that was requested, or trusts what it must not.
#[test]
fn tls_that_cannot_be_meant() {
    let check = |tls: &str, wanted: &Expect| {
        check(&format!("tls = {{ {tls} }}\n[[request]]\npath = \"/\""), wanted);
    };
    check("cert = \"c.pem\"", &expect!["s.toml:3:16: `cert` needs its `key`; add it"]);
    check("key = \"k.pem\"", &expect!["s.toml:3:15: `key` needs its `cert`; add it"]);
    check(
        "insecure = true, ca = \"ca.pem\"",
        &expect!["s.toml:3:31: `insecure` takes any certificate; leave it out, or `ca`"],
    );
}

#[test]
fn names_that_texts_do_not_know() {
    check(
        "[vars]\nuser = \"a\"\n[[request]]\npath = \"/{{usr}}\"",
        &expect!["s.toml:6:12: unknown name `{{usr}}`; did you mean `user`?"],
    );
    check(
        "[[request]]\npath = \"/{{iteration}}\"",
        &expect![
            "s.toml:4:12: unknown name `{{iteration}}`; the number of the journey in the run is `{{n}}`"
        ],
    );
    check(
        "[[request]]\npath = \"/{{nonsense}}\"",
        &expect![
            "s.toml:4:12: unknown name `{{nonsense}}`; valid names are variables of [vars], columns `data.column`, values captured by an earlier step, and the built-in n, seed, uuid, random LOW HIGH, zipf LOW HIGH and other distributions, env.NAME"
        ],
    );
    check(
        "[[request]]\npath = \"/{{n\"",
        &expect![[r#"s.toml:4:10: `{{` without `}}`; close it, or write `\{{` for the braces themselves"#]],
    );
    check(
        "[[request]]\npath = \"/{{random 9}}\"",
        &expect!["s.toml:4:12: `random 9` has no bounds; write for example random 1 100"],
    );
    check(
        "[[request]]\npath = \"/{{env.NOWHERE}}\"",
        &expect!["s.toml:4:12: the environment has no NOWHERE; set it, or use a variable of [vars]"],
    );
    check(
        "[[request]]\npath = \"/{{n|upper}}\"",
        &expect!["s.toml:4:12: `upper` is not a filter; filters are path, json, url and number"],
    );
    check(
        "[[request]]\npath = \"/\"\njson = { a = { b = \"{{nonsuch}}\" } }",
        &expect![
            "s.toml:5:23: unknown name `{{nonsuch}}`; valid names are variables of [vars], columns `data.column`, values captured by an earlier step, and the built-in n, seed, uuid, random LOW HIGH, zipf LOW HIGH and other distributions, env.NAME"
        ],
    );
    check(
        "[[journey]]\nname = \"j\"\n[[journey.step]]\npath = \"/{{id}}\"\n[[journey.step]]\npath = \"/\"\ncapture.id = \"/id\"\n[[journey.step]]\npath = \"/\"",
        &expect!["s.toml:6:12: `{{id}}` is not captured yet: step 2 does, after this one"],
    );
    check(
        "[[journey]]\nname = \"j\"\n[[journey.step]]\npath = \"/\"\ncapture.id = \"/id\"\n[[journey.step]]\npath = \"/\"\n[[request]]\npath = \"/{{id}}\"",
        &expect![
            "s.toml:11:12: `{{id}}` is not captured yet: journey `j` does, and values do not pass between journeys"
        ],
    );
}

#[test]
fn data_that_is_not_there() {
    let users = [
        ("users.csv", "name,city\nann,Bern\n"),
        ("rows.ndjson", "{\"a\":1}\n{\"b\":2}\n"),
        ("empty.csv", "a,b\n"),
    ];
    let check = |text: &str, wanted: &Expect| check_with(text, &[], &users, wanted);
    check(
        "[data.users]\nfile = \"users.csv\"\n[[request]]\npath = \"/{{users.nmae}}\"",
        &expect!["s.toml:6:12: users.csv has no column `nmae`; did you mean `name`?"],
    );
    check(
        "[data.users]\nfile = \"users.csv\"\n[[request]]\npath = \"/{{user.name}}\"",
        &expect!["s.toml:6:12: there is no data `user` for `{{user.name}}`; did you mean `users`?"],
    );
    check(
        "[data.users]\nfile = \"nosuch.csv\"\n[[request]]\npath = \"/{{users.name}}\"",
        &expect!["s.toml:4:8: cannot read `nosuch.csv`: entity not found"],
    );
    check(
        "[data.users]\nfile = \"users.txt\"\n[[request]]\npath = \"/{{users.name}}\"",
        &expect![[
            r#"s.toml:4:8: `users.txt` does not end in csv or ndjson; add format = "csv" or "ndjson""#
        ]],
    );
    check(
        "[data.rows]\nfile = \"rows.ndjson\"\n[[request]]\npath = \"/{{rows.a}}\"",
        &expect!["s.toml:4:8: rows.ndjson line 2: no key `a`"],
    );
    check(
        "[data.users]\nfile = \"users.csv\"\ncolumns = [\"a\", \"b\", \"c\"]\n[[request]]\npath = \"/{{users.c}}\"",
        &expect![
            "s.toml:4:8: users.csv line 1: the row has 2 columns and `columns` names 3; name those that are there"
        ],
    );
    check(
        "[data.rows]\nfile = \"rows.ndjson\"\ncolumns = [\"a\"]\n[[request]]\npath = \"/{{rows.a}}\"",
        &expect!["s.toml:5:11: this is for CSV; in NDJSON each line names its keys: leave it out"],
    );
    check(
        "[data.rows]\nfile = \"empty.csv\"\n[[request]]\npath = \"/{{rows.a}}\"",
        &expect!["s.toml:4:8: empty.csv has no rows; a run needs at least one"],
    );
    check(
        "[data.users]\nfile = \"users.csv\"\n[[request]]\npath = \"/\"\njson = { a = \"{{users.name|number}}\" }",
        &expect!["s.toml:4:8: users.csv line 2: `name` is used as a number, but `ann` is not a number"],
    );
}

#[test]
fn sets_that_do_not_fit() {
    let check = |set: &str, wanted: &Expect| {
        check_with(
            "[vars]\nuser = \"a\"\n[[request]]\nname = \"r\"\npath = \"/{{user}}\"",
            &[set],
            &[],
            wanted,
        );
    };
    check("rate", &expect!["--set rate: is not `key=value`; write for example --set run.rate=500/s"]);
    check(
        "rtae=5/s",
        &expect![
            "--set rtae=5/s: `rtae` is neither a variable of the file nor an option of [run]; did you mean `rate`?"
        ],
    );
    check("run.rtae=5/s", &expect!["--set run.rtae=5/s: `rtae` is not a key here; did you mean `rate`?"]);
    check("vars.usr=b", &expect!["--set vars.usr=b: the file has no variable `usr`; did you mean `user`?"]);
    check(
        "request.s.weight=2",
        &expect!["--set request.s.weight=2: `request` has no entry of the name or number `s`"],
    );
    check(
        "request.r.wieght=2",
        &expect!["--set request.r.wieght=2: unknown key `wieght`; did you mean `weight`?"],
    );
    check(
        "run.duration=long",
        &expect![
            "--set run.duration=long: `duration`: `long` is not a number with a unit; write for example 2s, 500us or 1.5ms"
        ],
    );
}
