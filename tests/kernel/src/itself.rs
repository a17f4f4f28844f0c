//! The planted server compared with itself and with the kernel's counters: its account can be trusted.

use kernel::account::Account;
use units::Nanos;

use crate::support::cores::Core;
use crate::support::group::Group;
use crate::support::hog::{Hog, overlap};
use crate::support::planted::{Plan, Planted};
use crate::support::quiet;
use crate::support::tolerance::{error, is_close, promised};

const MODELS: [&str; 6] = ["threads", "pool", "handoff", "loop", "processes", "ring"];

/// Requests of a test that asserts times; 19 of 20 have to show what was planted. The hypervisor takes CPU time from
/// some requests, and no clock of this host shows from which.
const REQUESTS: usize = 20;
const MOST_STRAY: usize = 1;

/// The accounts of requests with this path.
fn of_path<'a>(accounts: &'a [Account], path: &str) -> Vec<&'a Account> {
    accounts.iter().filter(|account| account.path == path).collect()
}

fn drive(server: &Planted, path: &str) {
    let mut client = server.client();
    (0..REQUESTS).for_each(|_| drop(client.http(path)));
}

#[test]
fn every_model_responds_to_all_requests_and_accounts_for_each() {
    let _together = quiet::together();
    for model in MODELS {
        let server = Plan::of(model).start();
        let mut clients: Vec<_> = (0..4).map(|_| server.client()).collect();
        for _ in 0..10 {
            clients.iter_mut().for_each(|client| client.send_http(&["/burn=100us", "/answer=100000"]));
            for client in &mut clients {
                assert_eq!(client.http_answer().len(), 3);
                assert_eq!(client.http_answer().len(), 100_000);
                assert_eq!(client.line("burn=10us"), "oo\n");
            }
        }
        let (sent, ports) = (4 + 4 * 10 * 3, clients.iter().map(|client| client.port).collect::<Vec<_>>());
        drop(clients);
        let accounts = server.accounts();
        assert_eq!(accounts.len(), sent, "{model}");
        for port in ports {
            let ns = accounts.iter().filter(|account| account.peer_port == port).map(|account| account.n);
            assert_eq!(ns.collect::<Vec<_>>(), (0..31).collect::<Vec<_>>(), "{model}");
        }
        accounts.iter().for_each(check_order);
    }
}

#[test]
fn a_unix_socket_is_served_as_a_port_is() {
    let _together = quiet::together();
    for model in MODELS {
        let server = Plan { is_unix: true, ..Plan::of(model) }.start();
        let mut client = server.client();
        assert_eq!(client.line("burn=10us"), "oo\n");
        drop(client);
        assert_eq!(server.accounts().len(), 2, "{model}");
    }
}

fn check_order(account: &Account) {
    let stamps =
        [account.read_ns, account.begun_ns, account.worked_ns, account.writing_ns, account.written_ns];
    assert!(stamps.is_sorted(), "{account:?}");
    let steps: u64 = account.steps.iter().map(|done| done.used.wall_ns).sum();
    assert!(steps <= account.worked_ns - account.begun_ns, "{account:?}");
    let used = account.used;
    assert!(used.wall_ns <= account.written_ns - account.begun_ns, "{account:?}");
}

/// Each step takes the planted time, in the planted way. A busy host makes some of them later.
#[test]
fn a_step_is_of_its_kind_and_length() {
    let _alone = quiet::alone();
    let path = "/burn=4ms,sleep=1ms,lock=3ms,pipe=2ms,socket=2ms,fault=64,fsync,burn=1ms";
    let server = Plan::of("threads").start();
    drive(&server, path);
    let accounts = server.accounts();
    let requests = of_path(&accounts, path);
    assert_eq!(requests.len(), REQUESTS);
    for step in ["burn", "sleep", "lock", "pipe", "socket"] {
        let strays: Vec<String> = requests.iter().filter_map(|request| stray(request, step)).collect();
        println!("{step}: {strays:?}");
        assert!(strays.len() <= REQUESTS / 2, "{step}: {strays:#?}");
    }
    let burns = requests.iter().flat_map(|request| &request.steps).filter(|done| done.step == "burn");
    for done in burns {
        assert!(done.used.cpu_ns >= done.planned_ns.unwrap(), "burnt too little: {done:?}");
    }
}

/// What is wrong with a step of a request.
fn stray(request: &Account, name: &str) -> Option<String> {
    request.steps.iter().filter(|done| done.step == name).find_map(|done| {
        let (planned, used) = (Nanos(done.planned_ns?), done.used);
        let is_right = match name {
            "burn" => is_close(Nanos(used.cpu_ns), planned, promised(planned)) && used.rest_ns() < LATE.0,
            // It never ends early. If a timer is late, by 50 us of slack and its thread's run-queue latency, the
            // account includes that: the bound only shows that it is neither work nor another wait.
            _ => {
                let took = used.rest_ns() + used.cpu_ns + used.run_delay_ns;
                took >= planned.0 && used.rest_ns() <= planned.0 + LATE.0 && used.cpu_ns < LATE.0
            }
        };
        (!is_right).then(|| format!("{used:?}"))
    })
}

/// A quarter of this kernel's tick of 4 ms: anything longer was planted, or is due to the host.
const LATE: Nanos = Nanos::from_millis(1);

/// Burnt time is on the thread's own clock, however long it waits for the CPU; and the hog's account of when it ran
/// agrees with the kernel's account of how long the thread waited.
#[test]
fn a_hog_makes_requests_wait_and_not_work() {
    let _alone = quiet::alone();
    let server = Plan::of("threads").start();
    let hog = Hog::start("hog-itself", Core::Last, 0, None);
    drive(&server, "/burn=20ms");
    let (accounts, stretches) = (server.accounts(), hog.stretches());
    let requests = of_path(&accounts, "/burn=20ms");
    let right = requests.iter().filter(|request| {
        let cpu = Nanos(request.used.cpu_ns);
        is_close(cpu, Nanos::from_millis(20), Nanos::from_micros(400))
    });
    assert!(right.count() >= REQUESTS - MOST_STRAY);
    let waited: u64 = requests.iter().map(|request| request.used.run_delay_ns).sum();
    let hogged: u64 =
        requests.iter().map(|request| overlap(&stretches, request.begun_ns, request.written_ns).0).sum();
    println!("waited {}, hogged {}: {:+.2} %", Nanos(waited), Nanos(hogged), error(hogged, waited));
    assert!(waited > 100_000_000, "the hog took no CPU: {}", Nanos(waited));
    // Other processes of this host take their part too: the hog had no more than the wait.
    assert!(error(hogged, waited) < 1.0, "the hog says it ran longer than anybody waited");
}

/// The kernel counts the time that a quota takes as waiting, and in the group's own account.
#[test]
fn a_quota_makes_requests_wait_as_its_group_reports() {
    let _alone = quiet::alone();
    let group = Group::with_quota(Nanos::from_millis(5), Nanos::from_millis(20));
    let server = Plan::of("threads").start();
    server.join(&group);
    let mut client = server.client();
    let before = group.throttled();
    (0..REQUESTS).for_each(|_| drop(client.http("/burn=10ms")));
    let throttled = group.throttled() - before;
    let accounts = server.accounts();
    let requests = of_path(&accounts, "/burn=10ms");
    let waited: u64 = requests.iter().map(|request| request.used.run_delay_ns).sum();
    println!("waited {}, throttled {throttled}: {:+.2} %", Nanos(waited), error(throttled.0, waited));
    assert!(throttled > Nanos::from_millis(200), "{throttled}");
}
