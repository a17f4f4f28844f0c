//! Requests assembled from made-up events, with known truth.

use proptest::prelude::*;
use record::{Part, Served};
use units::Nanos;

use super::{Assembler, KnownRequests, UNIX_SOCKETS};
use crate::kernel::{
    Account, Arrival, Arrived, Class, Culprit, Edge, Event, IDLE, Opened, PARTS, SoFar, Wake,
};

/// A server of several threads in simulated time: every nanosecond of a thread is in its account.
struct Server {
    assembler: Assembler,
    accounts: Vec<Account>,
    /// When each thread's account was last reported.
    reported: Vec<u64>,
    woken: Vec<Option<(u64, Account)>>,
    now: u64,
    seen: Vec<u64>,
    /// io_uring reads.
    asynchronous: bool,
    done: Vec<Served>,
}

const GET: &[u8] = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n";
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

impl Server {
    fn new(threads: usize) -> Server {
        Server::with(threads, Assembler::new(KnownRequests::default(), false, false))
    }

    /// A function classifies its requests.
    fn classifying() -> Server {
        Server::with(1, Assembler::new(KnownRequests::default(), true, false))
    }

    fn with(threads: usize, assembler: Assembler) -> Server {
        Server {
            assembler,
            accounts: vec![[0; PARTS]; threads],
            reported: vec![1_000; threads],
            woken: vec![None; threads],
            now: 1_000,
            seen: Vec::new(),
            asynchronous: false,
            done: Vec::new(),
        }
    }

    /// `thread` spends `time` in a part; all others poll in the meantime.
    fn spend(&mut self, thread: usize, part: usize, time: u64) {
        self.now += time;
        for (n, account) in self.accounts.iter_mut().enumerate() {
            account[if n == thread { part } else { IDLE }] += time;
        }
    }

    fn wake(&mut self, thread: usize) {
        self.woken[thread] = Some((self.now, self.accounts[thread]));
    }

    fn read(&mut self, thread: usize, socket: u64, bytes: &[u8], arrived: u64) {
        let arrival = [Arrival::new(arrived, bytes.len() as u32)];
        self.emit(thread, (Edge::Read, socket), bytes, &arrival);
    }

    fn write(&mut self, thread: usize, socket: u64, bytes: &[u8]) {
        self.emit(thread, (Edge::Write, socket), bytes, &[]);
    }

    fn idle(&mut self, thread: usize) {
        self.emit(thread, (Edge::Idle, 0), &[], &[]);
    }

    /// A TLS library returns or takes plain text; `read` bytes of the client were before it.
    fn plain(&mut self, edge: Edge, bytes: &[u8], read: usize) {
        let with = if edge == Edge::PlainRead { bytes.len() } else { 0 };
        let so_far = Some(SoFar { turns: 0, bytes: (read + with) as u64 });
        let length = bytes.len() as u32;
        let event = Event { edge, length, bytes, so_far, ..self.event(0, 1) };
        let done = &mut self.done;
        self.assembler.take(&event, &mut |served| done.push(served));
    }

    /// Its function, called at `since` for a request of `socket`, returns now.
    fn classify(&mut self, socket: u64, since: u64, value: i64) {
        let event = Event {
            edge: Edge::Classified,
            class: Some(Class { since: Nanos(since), value }),
            ..self.event(0, socket)
        };
        let done = &mut self.done;
        self.assembler.take(&event, &mut |served| done.push(served));
    }

    fn event(&self, thread: usize, socket: u64) -> Event<'static> {
        Event {
            at: Nanos(self.now),
            edge: Edge::Read,
            socket,
            pid: 100,
            tid: 100 + thread as u32,
            length: 0,
            bytes: &[],
            parts: [0; PARTS],
            preempted: Nanos::ZERO,
            preemptions: 0,
            contended: Nanos::ZERO,
            culprit: None,
            sleep: None,
            woken: None,
            wakes: &[],
            class: None,
            waited: None,
            answered: None,
            held_back: false,
            arrived: Arrived::None,
            opened: None,
            missed: false,
            begins_turn: false,
            so_far: None,
            asynchronous: self.asynchronous,
        }
    }

    fn emit(&mut self, thread: usize, (edge, socket): (Edge, u64), bytes: &[u8], arrived: &[Arrival]) {
        let account = std::mem::take(&mut self.accounts[thread]);
        assert_eq!(account.iter().sum::<u64>(), self.now - self.reported[thread], "the test's own accounts");
        self.reported[thread] = self.now;
        let woken = self.woken[thread].take();
        let wakes: Vec<Wake> = woken.iter().map(|&(at, parts)| Wake { at, parts }).collect();
        let is_new = socket != 0 && !self.seen.contains(&socket);
        let opened = is_new.then_some(Opened { local: None, peer: None, fresh: true });
        self.seen.push(socket);
        let culprit = Culprit { pid: 7, comm: *b"hog\0\0\0\0\0\0\0\0\0\0\0\0\0", time: Nanos(account[2]) };
        let event = Event {
            edge,
            length: bytes.len() as u32,
            bytes,
            parts: account,
            preempted: Nanos(account[Part::RunQueue as usize]),
            preemptions: u32::from(account[Part::RunQueue as usize] > 0),
            culprit: (account[Part::RunQueue as usize] > 0).then_some(culprit),
            woken: woken.as_ref().map(|(at, until_then)| (Nanos(*at), until_then)),
            wakes: &wakes,
            arrived: Arrived::Several(arrived),
            opened,
            ..self.event(thread, socket)
        };
        let done = &mut self.done;
        self.assembler.take(&event, &mut |served| done.push(served));
    }

    fn finish(mut self) -> Vec<Served> {
        let done = &mut self.done;
        self.assembler.finish(&mut |served| done.push(served));
        assert!(self.done.iter().all(Served::is_lawful), "{:?}", self.done);
        self.done
    }
}

/// If this fails, a server that is watched in windows has the time between them in its requests, loses the first one of
/// each window, or counts one that was under way at the window's end as answered.
#[test]
fn nothing_goes_from_one_window_into_the_next() {
    let on_cpu = Part::OnCpu as usize;
    let mut server = Server::new(1);
    server.spend(0, IDLE, 100);
    server.read(0, 1, GET, 1_050);
    server.spend(0, on_cpu, 20);
    server.write(0, 1, OK);
    server.spend(0, IDLE, 80);
    server.read(0, 1, GET, 1_190);
    assert!(server.assembler.awaits_response(Nanos(1_201)));
    assert!(!server.assembler.awaits_response(Nanos(1_200)), "it was read at this instant");
    let done = &mut server.done;
    let unanswered = server.assembler.pause((Nanos(1_000), Nanos(1_201)), &mut |served| done.push(served));
    assert_eq!((unanswered, server.done.len()), (1, 1));
    // Unseen: the response, and another request with its response. The account starts again.
    server.spend(0, on_cpu, 10_000);
    server.accounts[0] = [0; PARTS];
    server.reported[0] = server.now;
    server.spend(0, IDLE, 100);
    server.read(0, 1, GET, server.now - 5);
    assert!(server.assembler.awaits_response(Nanos(server.now + 1)), "its turn is not known to fit yet");
    server.spend(0, on_cpu, 30);
    server.write(0, 1, OK);
    assert!(!server.assembler.awaits_response(Nanos(server.now)));
    let done = &mut server.done;
    let unanswered = server.assembler.pause((Nanos::ZERO, Nanos::MAX), &mut |served| done.push(served));
    let times: Vec<u64> = server.finish().iter().map(|served| served.response().0).collect();
    assert_eq!((unanswered, times), (0, vec![20, 30]));
}

/// If this fails, a request of a TLS connection has the times of another one, or a handshake is a request.
#[test]
fn plain_text_has_the_times_of_its_socket() {
    let on_cpu = Part::OnCpu as usize;
    let mut server = Server::with(1, Assembler::new(KnownRequests::default(), false, true));
    let record = |bytes: &[u8]| [&[23, 3, 3, 0, bytes.len() as u8][..], bytes].concat();
    server.read(0, 1, b"\x16\x03\x01\0\x02hi", 1_000);
    server.write(0, 1, b"\x16\x03\x03\0\x02hi");
    // The certificate of the client and the end of its handshake; tickets.
    server.read(0, 1, &[record(b"certificate"), record(b"finished")].concat(), 1_000);
    server.write(0, 1, &record(b"ticket"));
    server.plain(Edge::PlainRead, b"", 0);
    // Two requests in one record, and the first half of a third, which is read later.
    let three = [GET, GET, GET].concat();
    let (most, rest) = three.split_at(2 * GET.len() + 9);
    server.spend(0, IDLE, 500);
    server.read(0, 1, &record(most), 1_400);
    server.spend(0, on_cpu, 10);
    server.plain(Edge::PlainRead, most, 0);
    server.spend(0, on_cpu, 30);
    server.write(0, 1, &record(OK));
    server.plain(Edge::PlainWrite, OK, most.len());
    server.spend(0, on_cpu, 50);
    server.write(0, 1, &record(OK));
    server.spend(0, on_cpu, 5);
    server.plain(Edge::PlainWrite, OK, most.len());
    server.spend(0, IDLE, 400);
    server.read(0, 1, &record(rest), 1_950);
    server.plain(Edge::PlainRead, rest, most.len());
    server.spend(0, on_cpu, 20);
    server.write(0, 1, &record(OK));
    server.plain(Edge::PlainWrite, OK, three.len());
    let served = server.finish();
    let times: Vec<_> =
        served.iter().map(|one| (one.arrived.unwrap().0, one.read.0, one.done.0, one.n)).collect();
    assert_eq!(times, [(1_400, 1_500, 1_540, 0), (1_400, 1_500, 1_590, 1), (1_950, 1_995, 2_015, 2)]);
    let bytes = (GET.len() as u64, OK.len() as u64);
    assert!(served.iter().all(|one| (one.request_bytes, one.response_bytes) == bytes), "{served:?}");
    assert!(served.iter().all(|one| one.protocol == record::Protocol::Http1 && one.status == Some(200)));
}

/// If this fails, a request is paired with the response of one whose plain text was lost.
#[test]
fn after_lost_plain_text_the_next_turn_is_found() {
    let mut server = Server::with(1, Assembler::new(KnownRequests::default(), false, true));
    let turn = |server: &mut Server, n: usize, is_lost: bool| {
        server.read(0, 1, b"\x17\x03\x03\0\x02xx", 1_000);
        let read = n * GET.len();
        if is_lost {
            let so_far = Some(SoFar { turns: 0, bytes: (read + GET.len()) as u64 });
            server.spend(0, Part::OnCpu as usize, 10);
            server.write(0, 1, b"\x17\x03\x03\0\x02yy");
            let event = Event {
                edge: Edge::PlainWrite,
                missed: true,
                so_far,
                length: OK.len() as u32,
                bytes: OK,
                ..server.event(0, 1)
            };
            return server.assembler.take(&event, &mut |served| panic!("{served:?}"));
        }
        server.plain(Edge::PlainRead, GET, read);
        server.spend(0, Part::OnCpu as usize, 10);
        server.write(0, 1, b"\x17\x03\x03\0\x02yy");
        server.plain(Edge::PlainWrite, OK, read + GET.len());
    };
    for n in 0..8 {
        turn(&mut server, n, n == 3);
    }
    let served = server.finish();
    // The lost one, and the one that proves the boundary.
    assert_eq!(served.len(), 6, "{served:?}");
    assert!(served.iter().all(|one| one.response() == Nanos(10) && one.status == Some(200)));
}

fn parts(served: &Served) -> Vec<(&'static str, u64)> {
    let named = Part::ALL.into_iter().map(|part| (part.name(), served.part(part).0));
    named.filter(|&(_, time)| time > 0).collect()
}

#[test]
fn a_thread_with_one_connection_gives_it_all_its_time() {
    let mut server = Server::new(1);
    server.spend(0, IDLE, 500);
    server.read(0, 1, GET, 1_400);
    server.spend(0, Part::OnCpu as usize, 40);
    server.spend(0, Part::Disk as usize, 300);
    server.spend(0, Part::RunQueue as usize, 60);
    server.write(0, 1, OK);
    let [served] = &server.finish()[..] else { panic!("one request") };
    assert_eq!(parts(served), [("on_cpu", 40), ("run_queue", 60), ("disk", 300)]);
    assert_eq!((served.arrived, served.read, served.done), (Some(Nanos(1_400)), Nanos(1_500), Nanos(1_900)));
    assert_eq!((served.status, served.preemptions, served.preempted), (Some(200), 1, Nanos(60)));
    assert_eq!(served.culprit.as_ref().map(|culprit| culprit.comm.as_str()), Some("hog"));
}

/// If this fails, a request is reported as blocked while the loop served others.
#[test]
fn while_the_loop_serves_others_a_request_waits_for_it() {
    let mut server = Server::new(1);
    server.read(0, 1, GET, 1_000);
    server.spend(0, Part::OnCpu as usize, 10);
    server.read(0, 2, GET, 1_000);
    server.spend(0, Part::OnCpu as usize, 700);
    server.write(0, 2, OK);
    server.spend(0, Part::OnCpu as usize, 5);
    server.write(0, 1, OK);
    let served = server.finish();
    assert_eq!(parts(&served[0]), [("on_cpu", 700)]);
    assert_eq!(parts(&served[1]), [("on_cpu", 15), ("loop_wait", 700)]);
}

#[test]
fn polling_on_behalf_of_a_request_is_network() {
    let mut server = Server::new(1);
    server.read(0, 1, GET, 1_000);
    server.spend(0, Part::OnCpu as usize, 10);
    server.idle(0);
    server.spend(0, IDLE, 2_000);
    server.spend(0, Part::OnCpu as usize, 20);
    server.write(0, 1, OK);
    let served = server.finish();
    assert_eq!(parts(&served[0]), [("on_cpu", 30), ("network", 2_000)]);
}

#[test]
fn requests_of_one_write_share_its_time_and_lose_none() {
    let mut server = Server::new(1);
    let three = [GET, GET, GET].concat();
    server.read(0, 1, &three, 1_000);
    server.spend(0, Part::OnCpu as usize, 100);
    server.write(0, 1, &[OK, OK, OK].concat());
    let served = server.finish();
    assert_eq!(served.len(), 3);
    assert_eq!(served.iter().map(|one| one.part(Part::OnCpu).0).sum::<u64>(), 100);
    assert!(served.iter().all(|one| one.response() == Nanos(100)));
}

#[test]
fn pipelined_requests_with_separate_responses_have_separate_times() {
    let mut server = Server::new(1);
    server.read(0, 1, &[GET, GET].concat(), 1_000);
    server.spend(0, Part::OnCpu as usize, 100);
    server.write(0, 1, OK);
    server.spend(0, Part::OnCpu as usize, 40);
    server.write(0, 1, OK);
    let served = server.finish();
    assert_eq!(parts(&served[0]), [("on_cpu", 100)]);
    assert_eq!(parts(&served[1]), [("on_cpu", 40), ("loop_wait", 100)]);
}

#[test]
fn a_thread_that_takes_over_gives_its_time_since_it_was_woken() {
    let mut server = Server::new(2);
    server.spend(0, Part::OnCpu as usize, 5);
    server.read(0, 1, GET, 1_000);
    server.spend(0, Part::OnCpu as usize, 30);
    server.idle(0);
    server.spend(2, 0, 50);
    server.wake(1);
    server.spend(1, Part::OnCpu as usize, 400);
    server.write(1, 1, OK);
    let served = server.finish();
    assert_eq!(parts(&served[0]), [("on_cpu", 430), ("loop_wait", 50)]);
    assert_eq!(served[0].hand_offs, 1);
}

/// If this fails, what an io_uring loop waited for before a request came is attributed to the request.
#[test]
fn time_before_io_uring_has_read_belongs_to_no_request() {
    let mut server = Server::new(1);
    server.asynchronous = true;
    for socket in [1, 2] {
        server.spend(0, Part::Disk as usize, 848);
        server.read(0, socket, GET, 1_000);
        server.spend(0, Part::OnCpu as usize, 100);
        server.write(0, socket, OK);
    }
    let served = server.finish();
    assert_eq!(served.len(), 2);
    assert!(served.iter().all(|one| parts(one) == [("on_cpu", 100)]), "{served:?}");
}

/// If this fails, the work for a request is lost when io_uring reads the next one in the meantime.
#[test]
fn a_read_by_io_uring_does_not_end_the_work_of_a_thread() {
    let mut server = Server::new(1);
    server.asynchronous = true;
    server.read(0, 1, GET, 1_000);
    server.spend(0, Part::OnCpu as usize, 60);
    server.read(0, 2, GET, 1_000);
    server.spend(0, Part::OnCpu as usize, 40);
    server.write(0, 1, OK);
    server.spend(0, Part::OnCpu as usize, 100);
    server.write(0, 2, OK);
    let served = server.finish();
    assert_eq!(parts(&served[0]), [("on_cpu", 100)]);
    assert_eq!(parts(&served[1]), [("on_cpu", 100), ("loop_wait", 40)]);
}

/// If this fails, a server whose clients use a new Unix socket each fills the memory of a watch that runs for days.
#[test]
fn silent_unix_sockets_are_forgotten_where_there_are_many() {
    let mut server = Server::new(1);
    for socket in 1..=UNIX_SOCKETS as u64 + 1 {
        server.read(0, socket, GET, server.now);
        server.spend(0, Part::OnCpu as usize, 10);
        if socket > 1 {
            server.write(0, socket, OK);
        }
    }
    server.spend(0, IDLE, 10);
    let before = Nanos(server.now);
    server.read(0, 7, GET, server.now);
    server.assembler.forget_unix_sockets(before);
    let mut left: Vec<u64> = server.assembler.connections.keys().copied().collect();
    left.sort_unstable();
    assert_eq!(left, [1, 7], "one waits for its response, and one has just been read");
}

/// If this fails, a request is lost whose client closes the connection before the server's write returns, and the write
/// counts for another connection.
#[test]
fn a_response_whose_client_left_before_the_write_returned_is_served() {
    let mut server = Server::new(1);
    for socket in 1..=3 {
        server.read(0, socket, GET, server.now);
        server.spend(0, Part::OnCpu as usize, 10);
        let closed = Event { edge: Edge::Closed, ..server.event(0, socket) };
        server.assembler.take(&closed, &mut |served| panic!("{served:?}"));
        server.spend(0, Part::RunQueue as usize, 5);
        // The second client left without a response.
        if socket != 2 {
            server.write(0, socket, OK);
        }
        // Those before are forgotten now.
        server.spend(0, IDLE, 2_000_000_000);
    }
    assert_eq!((server.assembler.connections.len(), server.assembler.closed.len()), (1, 1));
    assert_eq!((server.assembler.connections(), server.assembler.counts().mid_connection), (3, 0));
    let served = server.finish();
    let seen: Vec<_> = served.iter().map(|one| (one.connection, one.response().0, one.status)).collect();
    assert_eq!(seen, [(0, 15, Some(200)), (2, 15, Some(200))]);
}

proptest! {
    /// Whatever threads do, the parts of a request sum to its response time.
    #[test]
    fn parts_sum_to_the_response(
        steps in proptest::collection::vec((0usize..3, 0usize..5, 1u64..4, 0usize..PARTS, 0u64..1_000), 1..200)
    ) {
        let mut server = Server::new(3);
        for (thread, what, socket, part, time) in steps {
            server.spend(thread, part, time);
            let arrived = server.now;
            match what {
                0 | 1 => server.read(thread, socket, GET, arrived),
                2 | 3 => server.write(thread, socket, OK),
                _ => server.idle(thread),
            }
            if part == 2 {
                server.wake(thread);
            }
        }
        let served = server.finish();
        prop_assert!(served.iter().all(|one| one.residual() == 0));
    }
}

/// If this fails, a response from a cache, which is written before the function returns, has no class or that of the
/// next request.
#[test]
fn a_function_classifies_the_request_that_was_served_when_it_was_called() {
    let on_cpu = Part::OnCpu as usize;
    let mut server = Server::classifying();
    let read = |server: &mut Server| {
        server.spend(0, IDLE, 10);
        server.read(0, 1, GET, server.now);
        server.spend(0, on_cpu, 10);
        server.now
    };
    // A hit: answered within the function. A second call for the same request does not count.
    let mut now = read(&mut server);
    server.spend(0, on_cpu, 5);
    server.write(0, 1, OK);
    assert!(server.done.is_empty(), "its class may follow");
    server.spend(0, on_cpu, 5);
    server.classify(1, now, 1);
    assert_eq!(server.done.len(), 1);
    server.classify(1, now + 1, 7);
    // A miss: answered after it.
    now = read(&mut server);
    server.spend(0, on_cpu, 5);
    server.classify(1, now, 0);
    server.write(0, 1, OK);
    assert_eq!(server.done.len(), 2);
    // No call, but one after the response, and then the thread polls.
    read(&mut server);
    server.write(0, 1, OK);
    server.spend(0, on_cpu, 5);
    server.classify(1, server.now - 1, 7);
    assert_eq!(server.done.len(), 2);
    server.idle(0);
    assert_eq!(server.done.len(), 3);
    // A call before the request was read to its end.
    server.spend(0, IDLE, 10);
    server.read(0, 1, &GET[..9], server.now);
    now = server.now;
    server.spend(0, on_cpu, 5);
    server.read(0, 1, &GET[9..], server.now);
    server.classify(1, now, 2);
    server.write(0, 1, OK);
    // Two requests in one read, of which the first is a hit.
    server.spend(0, on_cpu, 5);
    server.read(0, 1, &GET.repeat(2), server.now);
    server.write(0, 1, OK);
    server.classify(1, server.now, 3);
    server.spend(0, on_cpu, 5);
    server.classify(1, server.now - 1, 4);
    server.write(0, 1, OK);
    // Without a class until the end.
    read(&mut server);
    server.write(0, 1, OK);
    let classes: Vec<Option<i64>> = server.finish().iter().map(|served| served.class).collect();
    assert_eq!(classes, [Some(1), Some(0), None, Some(2), Some(3), Some(4), None]);
}
