//! Requests assembled from made-up events, with known truth.

use proptest::prelude::*;
use record::{Part, Served};
use units::Nanos;

use super::{Assembler, KnownRequests};
use crate::kernel::{Account, Arrival, Arrived, Class, Culprit, Edge, Event, IDLE, Opened, PARTS, Wake};

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
        Server::with(threads, Assembler::new(KnownRequests::default(), false))
    }

    /// A function classifies its requests.
    fn classifying() -> Server {
        Server::with(1, Assembler::new(KnownRequests::default(), true))
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
            culprit: None,
            woken: None,
            wakes: &[],
            class: None,
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
