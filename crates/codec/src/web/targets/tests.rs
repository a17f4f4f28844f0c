//! Target files as people write them, and the error message for each mistake.

use std::io;
use std::path::Path;

use super::*;

/// Method, URL, headers, body and weight of a target, on one line.
fn summary(request: &Request) -> String {
    let headers: Vec<String> =
        request.headers.iter().map(|header| format!("{}={}", header.name, header.value)).collect();
    let body = String::from_utf8_lossy(&request.body);
    format!("{} {} [{}] {body:?} x{}", request.method, request.url, headers.join(" "), request.weight)
}

fn read(text: &str) -> Result<Vec<String>, String> {
    let read_body = |path: &Path| match path.to_str() {
        Some("/path/to/newthing.json") => Ok(b"{}".to_vec()),
        _ => Err(io::Error::from(io::ErrorKind::NotFound)),
    };
    let targets = parse(text, detect(text), read_body);
    targets.map(|requests| requests.iter().map(summary).collect()).map_err(|error| error.to_string())
}

fn check(text: &str, expected: &[&str]) {
    assert_eq!(read(text), Ok(expected.iter().map(|line| (*line).to_owned()).collect()), "{text}");
}

fn check_refused(text: &str, line: &str, cure: &str) {
    let error = read(text).expect_err(text);
    assert!(error.starts_with(line) && error.contains(cure), "{text}: {error}");
}

/// The examples of vegeta's own documentation, except for the password in a URL, which is refused with advice.
#[test]
fn the_documented_examples_are_read() {
    check(
        "GET http://goku:9090/path/to/dragon?item=ball\nHEAD http://goku:9090/path/to/success\n",
        &[
            "GET http://goku:9090/path/to/dragon?item=ball [] \"\" x1",
            "HEAD http://goku:9090/path/to/success [] \"\" x1",
        ],
    );
    check(
        "GET http://goku:9090/path/to\nX-Account-ID: 8675309\n\nDELETE http://goku:9090/path/to/remove\n\
         Confirmation-Token: 90215\nAuthorization: Token DEADBEEF\n",
        &[
            "GET http://goku:9090/path/to [X-Account-ID=8675309] \"\" x1",
            "DELETE http://goku:9090/path/to/remove [Confirmation-Token=90215 Authorization=Token DEADBEEF] \"\" x1",
        ],
    );
    check(
        "POST http://goku:9090/things\nX-Account-ID: 99\n@/path/to/newthing.json\n",
        &["POST http://goku:9090/things [X-Account-ID=99] \"{}\" x1"],
    );
    check(
        "# get a dragon ball\nGET http://goku:9090/path/to/dragon?item=ball\n# specify a test account\n\
         X-Account-ID: 99\n",
        &["GET http://goku:9090/path/to/dragon?item=ball [X-Account-ID=99] \"\" x1"],
    );
    check(
        r#"{"method":"GET","url":"http://goku","body":"UHVuY2gh","header":{"Content-Type":["text/plain"]}}"#,
        &["GET http://goku/ [Content-Type=text/plain] \"Punch!\" x1"],
    );
    check_refused("GET http://user:password@goku:9090/path/to\n", "line 1", "use -H");
}

#[test]
fn weights_are_read_in_both_forms() {
    check(
        "# weight: 3\r\nGET http://h/a\r\nX: y\r\n\r\n#weight:2\r\nGET http://h/b\r\n",
        &["GET http://h/a [X=y] \"\" x3", "GET http://h/b [] \"\" x2"],
    );
    // Without the empty line, the comment still belongs to the target that follows it.
    check(
        "GET http://h/a\n# weight: 4\nGET http://h/b\n",
        &["GET http://h/a [] \"\" x1", "GET http://h/b [] \"\" x4"],
    );
    check(
        "\n{\"method\":\"GET\",\"url\":\"http://h/a\",\"weight\":3}\n\n{\"method\":\"GET\",\"url\":\"http://h/b\",\
         \"header\":null,\"body\":null}\n",
        &["GET http://h/a [] \"\" x3", "GET http://h/b [] \"\" x1"],
    );
}

#[test]
fn slips_in_the_http_form_are_answered_with_a_cure() {
    check_refused("", "line 1", "GET http://");
    check_refused("# only a comment\n", "line 1", "GET http://");
    check_refused("\nhttp://h/\n", "line 2", "METHOD URL");
    check_refused("GET\n", "line 1", "METHOD URL");
    check_refused("get http://h/\n", "line 1", "METHOD URL");
    check_refused("GET http://h/ HTTP/1.1\n", "line 1", "leave it out");
    check_refused("GET ftp://h/\n", "line 1", "https://");
    check_refused("GET http://h/\nnot a header\n", "line 2", "Name: value");
    check_refused("GET http://h/\nX:\n", "line 2", "Name: value");
    check_refused("GET http://h/\nx y: z\n", "line 2", "Name: value");
    check_refused("GET http://h/\n@nowhere\n", "line 2", "`nowhere`");
    check_refused("GET http://h/\n@\n", "line 2", "@body.json");
    check_refused("GET http://h/\n@/path/to/newthing.json\nX: y\n", "line 3", "METHOD URL");
    check_refused("GET http://h/\nTransfer-Encoding: chunked\n", "line 1", "leave it out");
    for weight in ["0", "-1", "x", "", "1.5"] {
        check_refused(&format!("# weight: {weight}\nGET http://h/\n"), "line 1", "whole number");
    }
    check_refused("# weight: 1\n# weight: 2\nGET http://h/\n", "line 2", "move it");
    check_refused("GET http://h/\n# weight: 2\nX: y\n", "line 3", "move it");
    check_refused("GET http://h/\n# weight: 2\n", "line 2", "move it");
}

#[test]
fn slips_in_the_json_form_are_answered_with_a_cure() {
    check_refused(
        "{\"method\":\"GET\",\"url\":\"http://h/\",\"headers\":{}}",
        "line 1",
        "unknown field `headers`",
    );
    check_refused("{\"method\":\"GET\"}", "line 1", "missing field `url`");
    check_refused("{\"method\":\"GET\",\"url\":\"http://h/\"}\n{\n", "line 2", "write for example");
    check_refused("{\"method\":\"GET\",\"url\":\"http://h/\",\"body\":\"%\"}", "line 1", "base64");
    check_refused("{\"method\":\"GET\",\"url\":\"http://h/\",\"weight\":0}", "line 1", "whole number");
    check_refused("{\"method\":\"G T\",\"url\":\"http://h/\"}", "line 1", "GET or POST");
    let injected = r#"{"method":"GET","url":"http://h/","header":{"A":["b\r\nC: d"]}}"#;
    check_refused(injected, "line 1", "remove it");
}

/// Found by fuzzing: a lone carriage return in a weight broke the line of the error message.
#[test]
fn an_error_is_one_line_whatever_the_file_holds() {
    let files = [
        "# weight: 1{\0\rx\nGET h\n",
        "G\rT h\n",
        "GET h\nA\rb: c\n",
        "GET h\n@no\rwhere\n",
        r#"{"a\nb":1}"#,
    ];
    for text in files {
        let error = read(text).expect_err(text);
        assert!(!error.contains(['\r', '\n', '\0']), "{error}");
    }
}

/// If this fails, a file of short targets takes many times its size of memory.
#[test]
fn there_are_at_most_as_many_targets_as_a_run_can_number() {
    for target in ["GET h\n", "{\"method\":\"GET\",\"url\":\"h\"}\n"] {
        let most = target.repeat(1 << 16);
        assert!(read(&most).is_ok());
        check_refused(&format!("{most}{target}"), "line 65537", "more than 65536 targets");
    }
}
