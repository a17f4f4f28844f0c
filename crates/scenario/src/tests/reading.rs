//! What files compile to: requests as they would be sent, settings, rows, limits.

use codec::web::Script;
use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::{compile, with_target};
use crate::{Draft, SettingOrigin};

#[track_caller]
fn check(text: &str, files: &[(&str, &str)], wanted: &Expect) {
    let scenario = compile(&with_target(text), &[], files).unwrap_or_else(|mistake| panic!("{mistake}"));
    wanted.assert_eq(&scenario.preview(3, &redacted));
}

/// Redacts a header, as a user of the crate might.
fn redacted(line: &str) -> String {
    match line.split_once(": ") {
        Some((name @ ("Authorization" | "X-Api-Key"), _)) => format!("{name}: (redacted)"),
        _ => line.to_owned(),
    }
}

#[test]
fn requests_are_made_of_all_that_is_said() {
    check(
        r#"
        headers = { X-From = "target", X-Both = "target" }
        [vars]
        host = "ünï"
        [defaults]
        headers = { X-Both = "defaults", Authorization = "Bearer {{env.TOKEN}}" }
        [[request]]
        path = "/a b/{{host}}?x=1"
        query = { q = "1&2", r = "{{n}}" }
        headers = { X-Both = "own-{{seed}}" }
        [[request]]
        weight = 2
        name = "write"
        method = "PUT"
        path = "/write"
        json = { a = "x\"{{n}}", b = "{{n|number}}", c = [1, 2.5, true, { d = "{{host}}" }] }
        "#,
        &[],
        &expect![[r##"
            # 0: write
            PUT http://127.0.0.1:8080/write
            X-Both: target
            X-From: target
            Authorization: (redacted)
            Content-Type: application/json

            {"a":"x\"0","b":0,"c":[1,2.5,true,{"d":"ünï"}]}

            # 1: GET /a b/{{host}}?x=1
            GET http://127.0.0.1:8080/a%20b/%C3%BCn%C3%AF?x=1&q=1%262&r=1
            X-Both: own-7
            X-From: target
            Authorization: (redacted)

            # 2: write
            PUT http://127.0.0.1:8080/write
            X-Both: target
            X-From: target
            Authorization: (redacted)
            Content-Type: application/json

            {"a":"x\"2","b":2,"c":[1,2.5,true,{"d":"ünï"}]}

        "##]],
    );
}

/// If this fails, a variable is sent with another value than it has.
#[test]
fn what_a_variable_holds_is_written_for_its_place_once() {
    check(
        r#"
        [vars]
        word = 'a"b %&c'
        port = "8080"
        [[request]]
        path = "/{{word}}"
        query = { q = "={{word}}" }
        json = { a = '"{{word}}', b = "{{port|number}}", c = ["{{port}}", "{{random 1 1|number}}"] }
        [[request]]
        path = "/form"
        form = { a = "={{word}}" }
        "#,
        &[],
        &expect![[r##"
            # 0: POST /{{word}}
            POST http://127.0.0.1:8080/a%22b%20%25%26c?q=%3Da%22b%20%25%26c
            Content-Type: application/json

            {"a":"\"a\"b %&c","b":8080,"c":["8080",1]}

            # 1: POST /form
            POST http://127.0.0.1:8080/form
            Content-Type: application/x-www-form-urlencoded

            a=%3Da%22b%20%25%26c

            # 2: POST /{{word}}
            POST http://127.0.0.1:8080/a%22b%20%25%26c?q=%3Da%22b%20%25%26c
            Content-Type: application/json

            {"a":"\"a\"b %&c","b":8080,"c":["8080",1]}

        "##]],
    );
}

/// If this fails, secrets appear in a build log.
#[test]
fn what_came_from_the_environment_is_not_shown() {
    let text = r#"
        [vars]
        key = "k-{{env.TOKEN}}"
        [targets.api]
        url = "http://h/{{env.TOKEN}}"
        [[request]]
        path = "/a/{{env.TOKEN}}"
        query = { k = "{{key}}" }
        headers = { X-Signed = "v1 {{key}}", X-Api-Key = "typed" }
        json = { k = "{{key}}" }
        "#;
    let scenario = compile(text, &[], &[]).unwrap();
    let sent = scenario.prepared().remove(0);
    assert_eq!(sent.url.to_string(), "http://h/from-outside/a/from-outside?k=k-from-outside");
    assert_eq!(sent.headers[1].value, "v1 k-from-outside");
    assert_eq!(sent.body, br#"{"k":"k-from-outside"}"#);
    let preview = scenario.preview(1, &redacted);
    assert!(!preview.contains("from-outside"), "{preview}");
    expect![[r##"
        # 0: POST /a/{{env.TOKEN}}
        POST http://h/{{env.TOKEN}}/a/~env.TOKEN~?k=k-~env.TOKEN~
        X-Api-Key: (redacted)
        X-Signed: v1 k-~env.TOKEN~
        Content-Type: application/json

        {"k":"k-~env.TOKEN~"}

    "##]]
    .assert_eq(&preview);
}

#[test]
fn bodies_come_in_four_forms() {
    check(
        r#"
        [[request]]
        path = "/form"
        form = { user = "a&b", n = "{{n}}" }
        [[request]]
        path = "/file"
        file = "body.bin"
        [[request]]
        path = "/body"
        body = 'raw {{n}} \{{n}}'
        "#,
        &[("body.bin", "{{n}} is not filled in here")],
        &expect![[r#"
            # 0: POST /form
            POST http://127.0.0.1:8080/form
            Content-Type: application/x-www-form-urlencoded

            n=0&user=a%26b

            # 1: POST /file
            POST http://127.0.0.1:8080/file

            {{n}} is not filled in here

            # 2: POST /body
            POST http://127.0.0.1:8080/body

            raw 2 {{n}}

        "#]],
    );
    check(
        "[[request]]\npath = \"/json\"\njson = '''{\"b\": [1, \"{{n}}\"]}'''",
        &[],
        &expect![[r##"
            # 0: POST /json
            POST http://127.0.0.1:8080/json
            Content-Type: application/json

            {"b":[1,"0"]}

            # 1: POST /json
            POST http://127.0.0.1:8080/json
            Content-Type: application/json

            {"b":[1,"1"]}

            # 2: POST /json
            POST http://127.0.0.1:8080/json
            Content-Type: application/json

            {"b":[1,"2"]}

        "##]],
    );
}

#[test]
fn journeys_have_a_row_each_and_values_that_differ_between_journeys_alone() {
    check(
        r#"
        [vars]
        order = "{{uuid}}"
        [data.users]
        file = "users.csv"
        [[journey]]
        name = "buy"
        target = "api"
        [[journey.step]]
        path = "/login"
        form = { user = "{{users.name}}" }
        capture = { token = "/token", next = { header = "Location" } }
        [[journey.step]]
        path = "{{next|path}}"
        headers = { Authorization = "Bearer {{token}}", X-Order = "{{order}}" }
        [[journey.step]]
        name = "done"
        path = "/orders/{{order}}/{{users.name}}"
        "#,
        &[("users.csv", "id,name\n1,ann\n2,bob\n")],
        &expect![[r#"
            # 0: buy: POST /login
            POST http://127.0.0.1:8080/login
            Content-Type: application/x-www-form-urlencoded

            user=ann

            # 0: buy: GET {{next|path}}
            GET http://127.0.0.1:8080/~next~
            Authorization: (redacted)
            X-Order: 4aeaac5e-a906-4464-821f-b8030eb97230

            # 0: buy: done
            GET http://127.0.0.1:8080/orders/4aeaac5e-a906-4464-821f-b8030eb97230/ann

            # 1: buy: POST /login
            POST http://127.0.0.1:8080/login
            Content-Type: application/x-www-form-urlencoded

            user=bob

            # 1: buy: GET {{next|path}}
            GET http://127.0.0.1:8080/~next~
            Authorization: (redacted)
            X-Order: 79a2dc43-be09-4e20-9f1c-91089ac03aa6

            # 1: buy: done
            GET http://127.0.0.1:8080/orders/79a2dc43-be09-4e20-9f1c-91089ac03aa6/bob

            # 2: buy: POST /login
            POST http://127.0.0.1:8080/login
            Content-Type: application/x-www-form-urlencoded

            user=ann

            # 2: buy: GET {{next|path}}
            GET http://127.0.0.1:8080/~next~
            Authorization: (redacted)
            X-Order: b81faf0d-03c7-4416-9c46-1b8d55dc1536

            # 2: buy: done
            GET http://127.0.0.1:8080/orders/b81faf0d-03c7-4416-9c46-1b8d55dc1536/ann

        "#]],
    );
}

#[test]
fn settings_come_with_their_places_and_sets_lie_over_them() {
    let text = "[run]\nrate = \"5/s\"\nconnections = 3\nstages = [\"a\", \"b\"]\n[vars]\nuser = 1\n[thresholds]\nfail_if = \"x > 1\"\n";
    let sets = ["rate=10/s", "run.timeout=off", "vars.user=ann", "thresholds.fail_if=[\"a\", \"b\"]"];
    let draft = Draft::read("s.toml", text, &sets.map(str::to_owned)).unwrap();
    let settings = draft.settings().unwrap();
    let lines: Vec<String> = settings
        .iter()
        .map(|setting| {
            let by = if setting.origin == SettingOrigin::Set { "set" } else { "file" };
            format!("{} = {:?} by {by} at {}", setting.option, setting.values, setting.place)
        })
        .collect();
    expect![[r#"
        connections = ["3"] by file at s.toml:3:15
        rate = ["10/s"] by set at --set rate=10/s
        stage = ["a", "b"] by file at s.toml:4:10
        timeout = ["off"] by set at --set run.timeout=off
        fail-if = ["a", "b"] by set at --set thresholds.fail_if=["a", "b"]"#]]
    .assert_eq(&lines.join("\n"));
    let text = with_target("[vars]\nuser = 1\n[[request]]\nname = \"r\"\npath = \"/{{user}}\"\nweight = 2");
    let sets = ["user=é", "request.r.headers.X-A=1", "targets.api.url=http://h:1/base/"];
    let scenario = compile(&text, &sets, &[]).unwrap();
    expect![[r#"
        # 0: r
        GET http://h:1/base/%C3%A9
        X-A: 1

    "#]]
    .assert_eq(&scenario.preview(1, &redacted));
}

/// If this fails, two journeys log in as one user, or a run does not end when its data is used up.
#[test]
fn rows_that_are_used_once_bound_the_run() {
    let text = with_target(
        "[data.u]\nfile = \"u.csv\"\norder = \"once\"\n[[request]]\npath = \"/\"\nweight = 3\n[[request]]\npath = \"/{{u.a}}\"",
    );
    let scenario = compile(&text, &[], &[("u.csv", "a\n1\n2\n3\n")]).unwrap();
    let limit = scenario.limit().unwrap();
    assert_eq!((limit.data.as_str(), limit.rows), ("u", 3));
    let used: Vec<u64> =
        (0..limit.arrivals).filter(|n| scenario.route(&scenario.begin(*n)).kind == 1).collect();
    assert_eq!(used.len(), 3);
    assert_eq!(scenario.route(&scenario.begin(limit.arrivals)).kind, 1, "the first without a row");
    let preview = scenario.preview(100, &redacted);
    for row in ["GET http://127.0.0.1:8080/1\n", "/2\n", "/3\n"] {
        assert_eq!(preview.matches(row).count(), 1, "{preview}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// If this fails, a row of a file or a value from a command line can inject headers and requests.
    #[test]
    fn no_value_adds_a_line_to_a_request(value in "(?s).{0,40}") {
        // Braces are not a value: they refer to one.
        prop_assume!(!value.contains("{{"));
        let text = with_target(
            "[vars]\nv = \"\"\n[[request]]\npath = \"/{{v}}/{{v|path}}\"\nquery = { a = \"{{v}}\" }\n[[request]]\npath = \"/\"\nheaders = { X = \"a{{v}}\" }",
        );
        let quoted = format!("vars.v={}", serde_json::to_string(&value).unwrap());
        match compile(&text, &[&quoted], &[]) {
            Ok(scenario) => {
                for request in scenario.prepared() {
                    prop_assert!(request.check().is_ok());
                    prop_assert!(request.url.path_and_query().bytes().all(|byte| byte.is_ascii_graphic()));
                }
            }
            Err(mistake) => prop_assert!(mistake.what.contains("control character"), "{}", mistake),
        }
    }
}
