//! Servers of every model, read and written in every way: N sent = N reported, and the parts if one thread has the
//! request.

use kernel::account::Account;
use record::{Part, Served};
use units::Nanos;

use crate::judge::{self, check_parts, join};
use crate::support::client::Client;
use crate::support::hog::Hog;
use crate::support::planted::{Plan, Planted};
use crate::support::quiet::{self, Verdict};
use crate::support::tolerance::{is_close, promised};
use crate::support::watched::Watching;

const CLIENTS: usize = 4;
const ROUNDS: usize = 25;

/// Each client has one request in flight at a time; all clients at once. Returns how many were sent.
fn drive_at_once(server: &Planted, paths: &[&str], rounds: usize) -> usize {
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| server.new_client()).collect();
    for _ in 0..rounds {
        for path in paths {
            clients.iter_mut().for_each(|client| client.send_http(&[path]));
            clients.iter_mut().for_each(|client| drop(client.http_answer()));
        }
    }
    CLIENTS * rounds * paths.len()
}

/// One thread has a request from its read to its response.
#[test]
fn a_thread_a_connection_hopping_connections_and_a_process_a_connection() {
    for model in ["threads", "pool", "processes"] {
        quiet::in_trials(|| {
            let server = Plan::of(model).start();
            let _awake = Hog::that_keeps_awake();
            let watching = Watching::of(&server);
            let paths = ["/burn=200us,sleep=500us", "/lock=400us,burn=100us"];
            let sent = drive_at_once(&server, &paths, ROUNDS);
            let (watched, accounts) = (watching.finish(), server.accounts());
            let joined = join(&accounts, &watched.served);
            joined.check_count(sent, &watched.losses());
            for (account, one) in &joined.pairs {
                assert_eq!((one.pid, one.tid), (account.pid, account.tid), "{model}: {one:?}");
                assert_eq!(one.request_bytes, account.request_bytes, "{model}: {one:?}");
                assert_eq!(one.response_bytes, account.response_bytes, "{model}: {one:?}");
                assert_eq!(one.status, Some(200), "{model}: {one:?}");
            }
            check_parts(model, &joined.pairs, false)
        });
    }
}

/// One thread has many requests, and works on one of them at a time: for the others that is loop wait.
#[test]
fn a_loop_makes_requests_wait_for_later_ones() {
    quiet::in_trials(loop_waits);
}

fn loop_waits() -> Verdict {
    let server = Plan::of("loop").start();
    let watching = Watching::of(&server);
    let sent = drive_at_once(&server, &["/burn=1ms"], ROUNDS);
    let (watched, accounts) = (watching.finish(), server.accounts());
    let joined = join(&accounts, &watched.served);
    joined.check_count(sent, &watched.losses());
    // The account attributes what the loop does between two requests to none of them, the observer to the one that was
    // read last: here, keeping the account itself, up to 150 us. And if the loop was preempted while it had others,
    // some of the loop wait is run-queue latency.
    let right = joined.pairs.iter().filter(|(account, one)| {
        let truth = judge::expected(account);
        let waits = |parts: &[Nanos]| parts[Part::RunQueue as usize] + parts[Part::LoopWait as usize];
        let between = Nanos::from_micros(150);
        let (seen_wait, wait) = (waits(&one.parts), waits(&truth));
        is_close(one.part(Part::OnCpu), truth[Part::OnCpu as usize], between)
            && is_close(seen_wait, wait, promised(wait) + between + judge::gap(account, one))
    });
    let right = right.count();
    println!("loop: {right} of {sent}");
    assert!(right * 20 >= sent * 19, "{right} of {sent} are right");
    // Clients that a busy host keeps from sending at once do not wait for each other: then nothing was planted.
    let waits = joined.pairs.iter().map(|(account, _)| judge::expected(account)[Part::LoopWait as usize].0);
    let planted = Nanos(waits.sum());
    quiet::ensure(planted > Nanos::from_millis(30), || format!("{planted} of waiting by the account"))?;
    let waited = watched.sum(Part::LoopWait);
    assert!(waited > Nanos::from_millis(20), "{waited} of {planted}");
    Ok(())
}

/// One thread reads, another works: the total time is right, and the work is found.
#[test]
fn a_request_that_is_handed_over_keeps_its_time() {
    let _alone = quiet::alone();
    let server = Plan::of("handoff").start();
    let watching = Watching::of(&server);
    let sent = drive_at_once(&server, &["/burn=1ms"], 2 * ROUNDS);
    let (watched, accounts) = (watching.finish(), server.accounts());
    let joined = join(&accounts, &watched.served);
    joined.check_count(sent, &watched.losses());
    let right = joined.pairs.iter().filter(|(account, one)| {
        is_within(account, one) && one.part(Part::OnCpu) + Nanos::from_micros(20) >= Nanos::from_millis(1)
    });
    let right = right.count();
    println!("handoff: {right} of {sent}");
    assert!(right * 20 >= sent * 19, "{right} of {sent}");
}

/// Responses that are passed to io_uring together are reported one after another: the total work for them is known, but
/// not its division.
#[test]
fn requests_by_io_uring_keep_their_time_and_all_their_work() {
    quiet::in_trials(ring_works);
}

fn ring_works() -> Verdict {
    let server = Plan::of("ring").start();
    let watching = Watching::of(&server);
    let sent = drive_at_once(&server, &["/burn=1ms"], 2 * ROUNDS);
    let (watched, accounts) = (watching.finish(), server.accounts());
    let joined = join(&accounts, &watched.served);
    joined.check_count(sent, &watched.losses());
    let right = joined.pairs.iter().filter(|(account, one)| is_within(account, one)).count();
    assert!(right * 20 >= sent * 19, "{right} of {sent}");
    // One thread works no more than the elapsed time.
    let worked = watched.sum(Part::OnCpu);
    let planted = Nanos::from_millis(sent as u64);
    let first = watched.served.iter().map(|one| one.read).min().unwrap();
    let last = watched.served.iter().map(|one| one.done).max().unwrap();
    assert!((planted..=last - first).contains(&worked), "{worked} for {planted} in {}", last - first);
    // What the loop itself takes in addition is less than a tenth of the planted work.
    quiet::ensure(worked <= Nanos(planted.0 + planted.0 / 10), || format!("{worked} for {planted}"))
}

/// If this fails, what the loop waited for before a request arrived is reported as the request's.
#[test]
fn a_request_at_a_time_by_io_uring_has_its_own_parts() {
    quiet::in_trials(|| {
        let server = Plan::of("ring").start();
        let _awake = Hog::that_keeps_awake();
        let watching = Watching::of(&server);
        let mut client = server.new_client();
        (0..2 * ROUNDS).for_each(|_| drop(client.http("/burn=300us,sleep=500us")));
        let sent = client.sent;
        let (watched, accounts) = (watching.finish(), server.accounts());
        let joined = join(&accounts, &watched.served);
        joined.check_count(sent as usize, &watched.losses());
        check_parts("ring", &joined.of("/burn"), false)
    });
}

/// It begins before the server knows of it, and ends while the server writes.
fn is_within(account: &Account, one: &Served) -> bool {
    one.read.0 <= account.read_ns && (account.writing_ns..=account.written_ns).contains(&one.done.0)
}

#[test]
fn every_way_to_read_and_to_write_is_seen() {
    quiet::in_trials(every_way);
}

fn every_way() -> Verdict {
    let server = Plan::of("threads").start();
    let watching = Watching::of(&server);
    let mut sent = 0;
    for reading in ["read", "recv", "readv", "recvmsg"] {
        for writing in ["write", "send", "writev", "sendmsg", "sendfile"] {
            let mut client = server.new_client();
            client.http(&format!("/io={reading}+{writing}"));
            (0..5).for_each(|_| drop(client.http("/burn=100us")));
            // Many packets, and for a file many calls.
            (0..5).for_each(|_| drop(client.http("/burn=50us,answer=1000000")));
            sent += client.sent;
        }
    }
    let (watched, accounts) = (watching.finish(), server.accounts());
    let joined = join(&accounts, &watched.served);
    joined.check_count(sent as usize, &watched.losses());
    for (account, one) in &joined.pairs {
        let ends = (one.request_bytes, one.response_bytes);
        assert_eq!(ends, (account.request_bytes, account.response_bytes), "{}: {one:?}", account.io);
        assert!(one.read.0 <= account.read_ns && one.done.0 <= account.written_ns, "{}: {one:?}", account.io);
        // The last byte was handed over by the last write.
        assert!(one.done.0 >= account.writing_ns, "{}: {one:?}", account.io);
    }
    check_parts("ways", &joined.of("/burn=100us"), false)
}

/// Not for a server whose reads and writes the kernel does: the observer does not see their bytes, so there a pipeline
/// is one turn.
#[test]
fn pipelined_requests_are_all_reported() {
    let _together = quiet::together();
    for model in ["threads", "loop", "pool", "processes"] {
        let server = Plan::of(model).start();
        let watching = Watching::of(&server);
        let mut client = server.new_client();
        let paths = ["/burn=20us"; 16];
        (0..20).for_each(|_| drop(client.http_pipelined(&paths)));
        drop(client);
        let (watched, accounts) = (watching.finish(), server.accounts());
        join(&accounts, &watched.served).check_count(320, &watched.losses());
    }
}

/// Lines of text are not a known protocol: a request is what comes before the server writes.
#[test]
fn an_unknown_protocol_is_counted_by_its_turns() {
    let _together = quiet::together();
    let server = Plan::of("threads").start();
    let watching = Watching::of(&server);
    let mut client = server.new_client();
    (0..100).for_each(|_| drop(client.line("burn=50us")));
    let (watched, accounts) = (watching.finish(), server.accounts());
    join(&accounts, &watched.served).check_count(100, &watched.losses());
}

#[test]
fn a_unix_socket_is_watched_as_a_port_is() {
    let _together = quiet::together();
    let server = Plan { is_unix: true, ..Plan::of("threads") }.start();
    let watching = Watching::of(&server);
    let mut client = server.new_client();
    (0..100).for_each(|_| drop(client.http("/burn=50us")));
    let (watched, accounts) = (watching.finish(), server.accounts());
    let seen = join(&accounts, &watched.served);
    // Such a socket is known from its first read on: the beginning of the request that this read brought is unknown.
    let lost = watched.results.losses.mid_connection as usize;
    assert_eq!((seen.pairs.len() + seen.unknown + lost, seen.unknown), (100, 0), "{}", watched.losses());
}

/// If this fails, attaching to a busy server turns its responses into requests.
#[test]
fn connections_that_were_there_before_are_taken_up_at_a_request() {
    let _together = quiet::together();
    let server = Plan::of("threads").start();
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| server.client()).collect();
    // In flight when the watch begins: its read was not seen.
    clients[0].send_http(&["/sleep=3s"]);
    let watching = Watching::of(&server);
    clients[0].http_answer();
    clients.iter_mut().for_each(|client| (0..50).for_each(|_| drop(client.http("/burn=50us"))));
    let ports: Vec<u16> = clients.iter().map(|client| client.port).collect();
    let watched = watching.finish();
    for port in ports {
        let seen = watched.served.iter().filter(|one| one.peer.is_some_and(|peer| peer.port() == port));
        let seen = seen.count();
        assert!(seen >= 48, "port {port}: {seen} of 50; {}", watched.losses());
    }
    // What was not picked up was counted.
    let lost = watched.results.losses.mid_connection;
    assert_eq!(watched.served.len() as u64 + lost, 201, "{}", watched.losses());
}
