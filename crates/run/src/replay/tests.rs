//! Recordings of every form, and what of them is sent.

use super::*;

/// The methods and paths that are sent, in order, with their times in milliseconds, and what was left out.
#[track_caller]
fn check(options: &[&str], recording: &str, sent: &[&str], left_out: &[(&str, u64)]) -> ReplayFacts {
    let replayed = replayed(options, recording).unwrap().expect("it has requests");
    let instants = replayed.recorded.as_ref().unwrap().instants();
    let shown = replayed.turns.iter().zip(instants).map(|(&turn, at)| {
        let request = &replayed.requests[turn as usize];
        assert_eq!((request.url.host(), request.url.port()), ("127.0.0.1", 1), "{}", request.url);
        let headers: String =
            request.headers.iter().map(|one| format!(" {}={}", one.name, one.value)).collect();
        let body = String::from_utf8_lossy(&request.body).into_owned();
        let line = format!(
            "{} {} {}{headers} {body}",
            at.0 / 1_000_000,
            request.method,
            request.url.path_and_query()
        );
        line.trim_end().to_owned()
    });
    assert_eq!(shown.collect::<Vec<_>>(), sent);
    let facts = replayed.facts.unwrap();
    let expected: BTreeMap<String, u64> = left_out.iter().map(|&(why, n)| (why.to_owned(), n)).collect();
    assert_eq!(facts.left_out, expected);
    assert_eq!(facts.requests, sent.len() as u64);
    facts
}

fn replayed(options: &[&str], recording: &str) -> anyhow::Result<Option<Replayed>> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("recording");
    std::fs::write(&file, recording).unwrap();
    let line = [&["--replay", file.to_str().unwrap(), "http://127.0.0.1:1/ignored"], options].concat();
    read(&crate::testing::given(&line).spec()?)
}

const LOG: &str = r#"10.0.0.1 - ann [10/Oct/2026:13:55:36 +0000] "GET /a?x=1 HTTP/1.1" 200 2326
10.0.0.1 - ann [10/Oct/2026:13:55:38 +0000] "POST /pay HTTP/1.1" 200 12 "http://evil.example/" "curl/8"
10.0.0.1 - - [10/Oct/2026:13:55:37 +0000] "HEAD /b HTTP/2.0" 200 0 "-" "a \"quoted\" agent"
10.0.0.1 - - [10/Oct/2026:13:55:38 +0000] "\x16\x03" 400 0 "-" "-"
10.0.0.1 - - [10/Oct/2026:13:55:39 +0000] "BREW /pot HTTP/1.1" 418 0
10.0.0.1 - - [10/Oct/2026:13:55:39 +0000] "GET http://evil.example/c HTTP/1.1" 200 0
"#;

/// If this fails, a log that begins with a request that was none is replayed by its times alone: each request goes to
/// the URL of the command line.
#[test]
fn a_recording_may_begin_with_lines_without_a_request() {
    let other = LOG.lines().nth(3).unwrap();
    let empty = other.replace(r"\x16\x03", "-");
    let log = format!("{other}\n{empty}\n{}\n", LOG.lines().nth(4).unwrap().replace("BREW", "GET"));
    check(&[], &log, &["0 GET /pot"], &[("unreadable", 2)]);
    let json = r#"{"time":1,"message":"started"}
{"time":2,"path":"/a"}
"#;
    check(&[], json, &["0 GET /a"], &[("unreadable", 1)]);
}

/// If this fails, a replay of a production log repeats its users' orders, or sends requests to the servers named in the
/// log.
#[test]
fn an_access_log_is_replayed_with_its_paths_and_without_what_changes_a_server() {
    let sent = ["0 GET /a?x=1", "1000 HEAD /b", "3000 GET /c"];
    let left_out = [("method POST", 1), ("other methods", 1), ("unreadable", 1)];
    let facts = check(&[], LOG, &sent, &left_out);
    assert_eq!(facts.of_other_servers, 1);
    check(
        &["--replay-methods", "get,post", "--replay-filter", "^/(a|pay)"],
        LOG,
        &["0 GET /a?x=1", "2000 POST /pay"],
        &[("filter", 1), ("method HEAD", 1), ("other methods", 1), ("unreadable", 1)],
    );
}

/// The same requests in the logs of nginx 1.22.1 and Apache 2.4.71, sent as raw bytes: a quote and backslashes, UTF-8
/// and a byte that is not, a tab, a handshake of TLS (of which Apache logs nothing), UTF-8, and a control character.
const ESCAPED: [(&str, u64); 2] = [
    (
        r#"127.0.0.1 - - [25/Nov/2026:22:58:11 +0000] "GET /q\x22uote?a=\x5Cx22&b=\x5C\x5C HTTP/1.1" 200 2 "-" "a \x22quoted\x22 agent"
127.0.0.1 - - [25/Nov/2026:22:58:11 +0000] "GET /\xC3\xA4?q=\xFF HTTP/1.1" 200 2 "-" "-"
127.0.0.1 - - [25/Nov/2026:22:58:11 +0000] "GET /t\x09ab HTTP/1.1" 400 157 "-" "-"
127.0.0.1 - - [25/Nov/2026:22:58:11 +0000] "\x16\x03\x01\x05\xA8\x01\x00" 400 157 "-" "-"
127.0.0.1 - - [25/Nov/2026:22:58:11 +0000] "GET /\xC3\xB6 HTTP/1.1" 200 2 "-" "-"
127.0.0.1 - - [25/Nov/2026:22:58:11 +0000] "GET /d\x7Fel HTTP/1.1" 400 157 "-" "-"
"#,
        3,
    ),
    (
        r#"127.0.0.1 - - [25/Nov/2026:22:58:11 +0000] "GET /q\"uote?a=\\x22&b=\\\\ HTTP/1.1" 404 416 "-" "a \"quoted\" agent"
127.0.0.1 - - [25/Nov/2026:22:58:11 +0000] "GET /\xc3\xa4?q=\xff HTTP/1.1" 404 416 "-" "-"
127.0.0.1 - - [25/Nov/2026:22:58:11 +0000] "GET /t ab" 400 448 "-" "-"
127.0.0.1 - - [25/Nov/2026:22:58:11 +0000] "GET /\xc3\xb6 HTTP/1.1" 404 416 "-" "-"
127.0.0.1 - - [25/Nov/2026:22:58:11 +0000] "GET /d\x7fel HTTP/1.1" 400 448 "-" "-"
"#,
        2,
    ),
];

/// If this fails, a replay requests other paths than the clients did, or ends a path at a quote within it.
#[test]
fn escapes_of_web_servers_are_decoded() {
    for (log, unreadable) in ESCAPED {
        let sent = ["0 GET /q%22uote?a=%5Cx22&b=%5C%5C", "333 GET /%C3%A4?q=%FF", "666 GET /%C3%B6"];
        check(&[], log, &sent, &[("unreadable", unreadable)]);
        let left_out = [("filter", 2), ("unreadable", unreadable)];
        check(&["--replay-filter", "^/ö$"], log, &["0 GET /%C3%B6"], &left_out);
    }
    // A backslash that begins no escape is itself; without a closing quote the line was cut off.
    let cut = r#"1.1.1.1 - - [25/Nov/2026:22:00:00 +0000] "GET /a\q\xZZ HTTP/1.1" 200 2
1.1.1.1 - - [25/Nov/2026:22:00:01 +0000] "GET /b\"#;
    check(&[], cut, &["0 GET /a%5Cq%5CxZZ"], &[("unreadable", 1)]);
}

#[test]
fn json_lines_have_methods_headers_and_bodies() {
    let lines = r#"{"ts": 1.5, "path": "/a", "headers": {"X-Id": "7", "Cookie": "s=1", "X-Api-Key": "k", "Host": "evil.example"}}
{"ts": 2.5, "method": "post", "url": "https://evil.example/b?c#d", "body": {"n": 1}}
{"ts": 2.0, "request": "GET /nginx HTTP/1.1"}
{"ts": 3.0}
"#;
    let all = ["--replay-methods", "GET,POST"];
    let sent = ["0 GET /a X-Id=7", "500 GET /nginx", "1000 POST /b?c {\"n\":1}"];
    let facts = check(&all, lines, &sent, &[("unreadable", 1)]);
    assert_eq!((facts.without_credentials, facts.of_other_servers), (1, 1));
    let kept = ["--replay-filter", "/a", "--replay-credentials"];
    let facts = check(
        &kept,
        lines,
        &["0 GET /a Cookie=s=1 X-Api-Key=k X-Id=7"],
        &[("filter", 1), ("method POST", 1), ("unreadable", 1)],
    );
    assert_eq!(facts.without_credentials, 0);
}

#[test]
fn an_archive_and_results_of_vegeta_are_replayed() {
    let archive = r#"{
      "log": {"entries": [
        {"startedDateTime": "2026-01-31T12:00:00.250Z", "request": {"method": "GET", "url": "https://shop.example/x",
          "headers": [{"name": "Authorization", "value": "Bearer t"}, {"name": ":authority", "value": "shop.example"},
                      {"name": "Accept", "value": "*/*"}]}},
        {"startedDateTime": "2026-01-31T12:00:00Z", "request": {"method": "POST", "url": "https://shop.example/y",
          "postData": {"text": "a=1"}}},
        {"request": {"method": "GET", "url": "data:text/plain,x"}}
      ]}
    }"#;
    let facts = check(
        &["--replay-methods", "GET,POST"],
        archive,
        &["0 POST /y a=1", "250 GET /x Accept=*/*"],
        &[("unreadable", 1)],
    );
    assert_eq!((facts.without_credentials, facts.of_other_servers), (1, 2));
    let results = r#"{"attack":"","seq":0,"code":200,"timestamp":"2026-01-31T12:00:00Z","latency":5,"method":"GET","url":"http://h/a","body":"aGk=","headers":{"Server":["x"]}}
{"attack":"","seq":1,"code":200,"timestamp":"2026-01-31T12:00:00.1Z","latency":5,"method":"GET","url":"http://h/a"}
"#;
    let facts = check(&[], results, &["0 GET /a", "100 GET /a"], &[]);
    assert_eq!(facts.of_other_servers, 2);
}

/// If this fails, a request that was sent a million times is stored a million times.
#[test]
fn a_request_is_kept_once_however_often_it_is_sent() {
    let line = "h - - [10/Oct/2026:13:55:36 +0000] \"GET /a HTTP/1.1\" 200 1\n";
    let replayed = replayed(&[], &line.repeat(1_000)).unwrap().unwrap();
    assert_eq!((replayed.requests.len(), replayed.turns.len()), (1, 1_000));
}

#[test]
fn times_alone_are_used_where_there_is_nothing_else_or_nothing_else_is_wanted() {
    for (options, recording) in [
        (&[][..], "1\n2\n"),
        (&[], "time,path\n1,/a\n"),
        (&[], "{\"ts\": 1}\n"),
        (&["--replay-times-only"], LOG),
    ] {
        assert!(replayed(options, recording).unwrap().is_none(), "{recording}");
    }
}

#[test]
fn what_cannot_be_replayed_is_one_line() {
    for (options, recording, says) in [
        (&["-b", "x"][..], LOG, "-b cannot be used with --replay"),
        (&["http://127.0.0.1:2/"], LOG, "name one URL, or add --replay-times-only"),
        (&["--replay-methods", "DELETE"], LOG, "none of its requests is to be sent: 2 method GET"),
        (&["--replay-filter", "("], LOG, "--replay-filter"),
        (&["--replay-methods", "GET POST"], LOG, "no list of methods"),
        (&[], "{\n\"log\": 1}", "it has no log.entries"),
        (&[], "{\nno JSON", "it is neither an HTTP archive nor JSON lines"),
        (&[], "h - - [yesterday] \"GET /a HTTP/1.1\" 200 1\n", "line 1: "),
    ] {
        let error = format!("{:#}", replayed(options, recording).unwrap_err());
        assert!(error.contains(says), "{error}");
    }
    let error =
        crate::testing::given(&["--replay-filter", "/a", "http://h/"]).spec().unwrap_err().to_string();
    assert_eq!(error, "--replay-filter needs --replay FILE");
}

/// If this fails, an option for the requests of a recording is accepted although none of them is sent.
#[test]
fn options_for_requests_are_refused_where_only_times_are_used() {
    let times = "1.0\n2.0\n";
    let unused: [&[&str]; 4] = [
        &["--replay-times-only"],
        &["--replay-methods", "GET"],
        &["--replay-filter", "a"],
        &["--replay-credentials"],
    ];
    for options in unused {
        let error = replayed(options, times).unwrap_err().to_string();
        let expected = format!("{} has no effect: the recording has times and no requests", options[0]);
        assert!(error.starts_with(&expected), "{error}");
    }
    let error = replayed(&["--replay-times-only", "--replay-filter", "a"], LOG).unwrap_err().to_string();
    assert!(error.starts_with("--replay-filter has no effect: --replay-times-only"), "{error}");
    assert!(replayed(&["--replay-times-only"], LOG).unwrap().is_none());
}

/// If this fails, a line without an end takes all memory, and the parts of a pipe that were read first are lost.
#[test]
fn lines_are_bounded_and_pipes_are_refused() {
    let log = format!("{}\n{}", LOG.lines().next().unwrap(), " ".repeat((16 << 20) + 1));
    let error = format!("{:#}", replayed(&[], &log).unwrap_err());
    assert!(error.ends_with("recording`: line 2 is over 16.0 MiB; use a file with shorter lines"), "{error}");
    let zero = crate::testing::prepared(&["--replay", "/dev/zero", "http://127.0.0.1:1/"]).map(|_| ());
    assert_eq!(
        format!("{:#}", zero.unwrap_err()),
        "cannot read the recording `/dev/zero`: line 1 is over 16.0 MiB; use a file with shorter lines"
    );
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let line = ["--replay", pipe.to_str().unwrap(), "http://127.0.0.1:1/"];
    let error = format!("{:#}", read(&crate::testing::given(&line).spec().unwrap()).unwrap_err());
    assert!(error.contains("is a pipe, but it is read twice"), "{error}");
}
