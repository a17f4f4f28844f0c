//! Sinks of a planted run, over real sockets and files; no failure of a sink may affect the run.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::mpsc;

use record::Series;

use super::*;

fn second(index: u64) -> Interval {
    let mut interval = Interval::default();
    interval.index = index;
    interval.start = Nanos::from_secs(index);
    interval.length = Nanos::from_secs(1);
    interval.counts.scheduled = 1;
    interval.counts.ok = 1;
    interval.slot(Series::Response).record(Nanos::from_millis(1));
    interval.slot(Series::Service).record(Nanos::from_millis(1));
    interval
}

fn feed(sinks: &mut Sinks, seconds: u64) {
    for index in 0..seconds {
        let interval = second(index);
        sinks.interval(&interval, &Second::of(&interval, None));
    }
}

fn begin(sinks: &Sinks) {
    sinks.state.lock().facts = Some(Facts {
        targets: Vec::new(),
        url: "http://127.0.0.1/".to_owned(),
        protocol: "http/1.1".to_owned(),
        version: "0".to_owned(),
        started_unix_ns: 1,
    });
}

fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut respond = String::new();
    let _ = stream.read_to_string(&mut respond);
    respond
}

/// An address that was free a moment ago.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[test]
fn the_endpoint_shows_the_run_as_it_stands() {
    let address = free();
    let plan = SinkPlan { prometheus: Some(address), ..SinkPlan::default() };
    let mut sinks = Sinks::open(&plan).unwrap();
    let get = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    assert!(ask(address, get).starts_with("HTTP/1.1 503 "));
    begin(&sinks);
    feed(&mut sinks, 3);
    let respond = ask(address, get);
    assert!(respond.starts_with("HTTP/1.1 200 OK\r\n"), "{respond}");
    assert!(respond.contains("content-type: text/plain; version=0.0.4; charset=utf-8\r\n"), "{respond}");
    assert!(respond.contains("\nparallax_response_seconds_count 3\n"), "{respond}");
    let open = ask(
        address,
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: application/openmetrics-text\r\n\r\n",
    );
    assert!(open.ends_with("# EOF\n"), "{open}");
    assert!(ask(address, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").starts_with("HTTP/1.1 404 "));
    assert!(ask(address, "POST /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").starts_with("HTTP/1.1 405 "));
    let long =
        format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "a".repeat(REFUSED_BYTES));
    assert!(!ask(address, &long).starts_with("HTTP/1.1 200 "));
    assert_eq!(sinks.finish(&|| false, &|_| {}), [""; 0]);
    assert!(TcpStream::connect(address).is_err(), "it serves on after the run");
}

/// If this fails, a web page open on this host can read the results: its name can be made to resolve to loopback.
#[test]
fn the_endpoint_is_reached_under_a_name_of_this_host_only() {
    let address = free();
    let plan = SinkPlan { prometheus: Some(address), ..SinkPlan::default() };
    let mut sinks = Sinks::open(&plan).unwrap();
    begin(&sinks);
    let get = |hosts: &[&str]| {
        let hosts: String = hosts.iter().map(|host| format!("Host: {host}\r\n")).collect();
        ask(address, &format!("GET /metrics HTTP/1.1\r\n{hosts}\r\n"))
    };
    let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
    for host in ["localhost", "LocalHost:9464", "127.0.0.1:9464", "127.0.1.1", "[::1]:9464", own.as_str()] {
        assert!(get(&[host]).starts_with("HTTP/1.1 200 "), "{host}");
    }
    for hosts in [
        &["evil.example"][..],
        &["localhost.evil.example:9464"],
        &["10.0.0.1"],
        &["localhost", "evil.example"],
        &["localhost@evil.example"],
        &[""],
    ] {
        let answer = get(hosts);
        assert!(!answer.starts_with("HTTP/1.1 200 "), "{hosts:?}");
    }
    assert_eq!(sinks.finish(&|| false, &|_| {}), [""; 0]);
}

/// If this fails, a scraper with an interval of 15 s never sees the end of a run.
#[test]
fn the_endpoint_waits_for_one_last_scrape() {
    let address = free();
    let linger = Some(Nanos::from_secs(3_600));
    let plan = SinkPlan { prometheus: Some(address), linger, ..SinkPlan::default() };
    let mut sinks = Sinks::open(&plan).unwrap();
    begin(&sinks);
    feed(&mut sinks, 3);
    let state = Arc::clone(&sinks.state);
    let scraper = thread::spawn(move || {
        assert!(state.ends_within(Duration::from_secs(600)));
        assert!(ask(address, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").starts_with("HTTP/1.1 404 "));
        ask(address, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    });
    assert_eq!(sinks.finish(&|| false, &|_| {}), [""; 0]);
    let respond = scraper.join().unwrap();
    assert!(respond.contains("\nparallax_response_seconds_count 3\n"), "{respond}");
    assert!(TcpStream::connect(address).is_err(), "it serves on after the last scrape");
}

#[test]
fn a_stop_ends_the_wait_for_a_last_scrape() {
    let linger = Some(Nanos::from_secs(3_600));
    for looks_before in [0, 2] {
        let plan = SinkPlan { prometheus: Some(free()), linger, ..SinkPlan::default() };
        let mut sinks = Sinks::open(&plan).unwrap();
        begin(&sinks);
        let looks = std::cell::Cell::new(0);
        let is_stopped = || looks.replace(looks.get() + 1) >= looks_before;
        assert_eq!(sinks.finish(&is_stopped, &|_| {}), [""; 0]);
    }
}

/// More than the endpoint reads of a request.
const REFUSED_BYTES: usize = 100_000;

/// If this fails, anybody who can reach the port can use up this process's descriptors.
#[test]
fn silent_peers_beyond_a_few_are_turned_away() {
    let address = free();
    let mut sinks = Sinks::open(&SinkPlan { prometheus: Some(address), ..SinkPlan::default() }).unwrap();
    begin(&sinks);
    let silent: Vec<_> = (0..40).map(|_| TcpStream::connect(address).unwrap()).collect();
    let mut closed = 0;
    for mut stream in &silent {
        stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        closed += usize::from(matches!(stream.read(&mut [0]), Ok(0) | Err(_)) && is_closed(stream));
    }
    assert_eq!(closed, 40 - 16);
    assert_eq!(sinks.finish(&|| false, &|_| {}), [""; 0]);
}

fn is_closed(mut stream: &TcpStream) -> bool {
    match stream.read(&mut [0]) {
        Ok(0) => true,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        Ok(_) => false,
    }
}

#[test]
fn a_taken_port_refuses_the_run() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let plan = SinkPlan { prometheus: Some(taken.local_addr().unwrap()), ..SinkPlan::default() };
    let error = Sinks::open(&plan).err().unwrap().to_string();
    assert!(error.contains("cannot listen on") && error.contains("--prometheus"), "{error}");
}

#[test]
fn rows_arrive_in_full_and_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows");
    let mut sinks = Sinks::open(&SinkPlan::rows_to(&path)).unwrap();
    feed(&mut sinks, 20);
    assert_eq!(sinks.finish(&|| false, &|_| {}), [""; 0]);
    let text = std::fs::read_to_string(path).unwrap();
    let index =
        |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["index"].as_u64().unwrap();
    let indices: Vec<u64> = text.lines().map(index).collect();
    assert_eq!(indices, (0..20).collect::<Vec<_>>());
}

/// As with `--jsonl - | reader`: if this fails, the reader sees partial lines, or none.
#[test]
fn rows_come_out_of_a_pipe_whole() {
    for form in [export::rows::Form::Jsonl, export::rows::Form::Csv] {
        let (reader, writer) = std::io::pipe().unwrap();
        let path = format!("/dev/fd/{}", writer.as_raw_fd()).into();
        let rows = vec![RowPlan { form, option: "--rows", path }];
        let mut sinks = Sinks::open(&SinkPlan { rows, ..SinkPlan::default() }).unwrap();
        drop(writer);
        let lines = thread::spawn(move || std::io::read_to_string(reader).unwrap());
        feed(&mut sinks, 30);
        assert_eq!(sinks.finish(&|| false, &|_| {}), [""; 0]);
        let lines = lines.join().unwrap();
        assert!(lines.ends_with('\n'));
        let widths: Vec<usize> = lines.lines().map(|line| line.split(',').count()).collect();
        let heads = usize::from(form == export::rows::Form::Csv);
        assert_eq!(widths.len(), 30 + heads, "{lines}");
        assert!(heads == 0 || widths.iter().all(|width| *width == widths[0]), "{lines}");
        let is_whole =
            |line: &str| serde_json::from_str::<serde_json::Value>(line).is_ok_and(|row| row.is_object());
        assert!(heads == 1 || lines.lines().all(is_whole), "{lines}");
    }
}

#[test]
fn a_full_disk_is_told_at_the_end() {
    let mut sinks = Sinks::open(&SinkPlan::rows_to(Path::new("/dev/full"))).unwrap();
    feed(&mut sinks, 5);
    let warnings = sinks.finish(&|| false, &|_| {});
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].starts_with("--jsonl: 5 rows were not written: No space left"), "{warnings:?}");
}

/// If this fails, a run waits for the reader of its rows.
#[test]
fn a_reader_that_sleeps_loses_rows_and_holds_nobody_up() {
    let (_taken_by_nobody, queue) = {
        let (queue, taken) = mpsc::sync_channel(60);
        (taken, queue)
    };
    let mut sinks = Sinks::open(&SinkPlan::default()).unwrap();
    sinks.rows.push(RowQueue { option: "--csv", queue, lost: 0 });
    feed(&mut sinks, 100);
    assert_eq!(
        sinks.finish(&|| false, &|_| {}),
        ["--csv: 40 rows were lost because it was not read in time"]
    );
}

/// If this fails, totals on a dashboard are lower than the run's, because a sink was reading at that moment.
#[test]
fn what_is_measured_while_somebody_looks_is_not_lost() {
    let address = free();
    let mut sinks = Sinks::open(&SinkPlan { prometheus: Some(address), ..SinkPlan::default() }).unwrap();
    begin(&sinks);
    let state = Arc::clone(&sinks.state);
    let looking = state.lock();
    feed(&mut sinks, 4);
    drop(looking);
    feed(&mut sinks, 1);
    let count = state.snapshot(|snapshot| snapshot.total.response().map(|response| response.count()));
    assert_eq!(count.flatten(), Some(5));
    sinks.finish(&|| false, &|_| {});
}

#[test]
fn pushes_reach_a_collector_and_those_that_do_not_are_told() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (pushed, pushes) = mpsc::sync_channel(2);
    let collector = thread::spawn(move || {
        // The first push fails; the last one, at the end of the run, does not.
        for status in ["503 Service Unavailable", "200 OK"] {
            let (mut stream, _) = listener.accept().unwrap();
            let body = read_body(&mut stream);
            write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}")
                .unwrap();
            pushed.send(body).unwrap();
        }
    });
    let plan = SinkPlan {
        otlp: Some(format!("http://{address}/v1/metrics")),
        otlp_interval: Nanos::from_millis(300),
        ..SinkPlan::default()
    };
    let mut sinks = Sinks::open(&plan).unwrap();
    begin(&sinks);
    feed(&mut sinks, 2);
    let first = pushes.recv().unwrap();
    let warnings = sinks.finish(&|| false, &|_| {});
    let text = warnings.join("\n");
    assert!(
        text.starts_with("--otlp: 1 of ") && text.ends_with("/v1/metrics responded 503 Service Unavailable"),
        "{text}"
    );
    for body in [first, pushes.recv().unwrap()] {
        let json: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert!(json["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap().len() > 5);
    }
    collector.join().unwrap();
}

/// If this fails, a collector that is down prints the password of its URL.
#[test]
fn a_push_that_fails_shows_no_credentials() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let echoes = thread::spawn(move || {
        for status in ["500 hunter2", "302 Found\r\nLocation: http://u:hunter2@h/", "hunter2 is no status"] {
            let (mut stream, _) = listener.accept().unwrap();
            read_body(&mut stream);
            write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 7\r\nConnection: close\r\n\r\nhunter2")
                .unwrap();
        }
    });
    let credentials = |address| format!("http://user:hunter2@{address}/v1/hunter2?api_key=hunter2#hunter2");
    let of_server = credentials(address);
    for (url, words) in [
        (&of_server, "500 Internal Server Error"),
        (&of_server, "302 Found"),
        (&of_server, ": "),
        (&credentials(free()), "refused"),
        (&credentials(SocketAddr::from(([127, 0, 0, 1], 0))), ": "),
        (&"http://user:hunter2@no.invalid/?api_key=hunter2".to_owned(), ": "),
    ] {
        let plan =
            SinkPlan { otlp: Some(url.clone()), otlp_interval: Nanos::from_secs(60), ..SinkPlan::default() };
        let mut sinks = Sinks::open(&plan).unwrap();
        begin(&sinks);
        feed(&mut sinks, 1);
        let text = sinks.finish(&|| false, &|_| {}).join("\n");
        assert!(text.starts_with("--otlp: 1 of 1 pushes failed; the first error: http://"), "{text}");
        assert!(text.contains(words) && text.contains("(redacted)@"), "{words}: {text}");
        assert!(!text.contains("hunter2") && !text.contains("user"), "{text}");
    }
    echoes.join().unwrap();
}

fn read_body(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let mut part = [0; 4096];
    loop {
        let n = stream.read(&mut part).unwrap();
        text.extend_from_slice(&part[..n]);
        let whole = String::from_utf8_lossy(&text).into_owned();
        let Some((head, body)) = whole.split_once("\r\n\r\n") else { continue };
        let length = head
            .to_lowercase()
            .split_once("content-length: ")
            .map(|(_, rest)| rest.split("\r\n").next().unwrap().parse::<usize>().unwrap());
        match length {
            Some(length) if body.len() >= length => return body.to_owned(),
            None if body.ends_with("0\r\n\r\n") => return unchunked(body),
            _ => {}
        }
    }
}

fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            break;
        }
        whole.push_str(&rest[..size]);
        body = &rest[size + 2..];
    }
    whole
}
