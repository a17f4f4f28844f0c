//! Records with a planted cause, written by the real writers and read back: does the explanation find it?

mod formats;
mod world;

use explain::{Place, Segment, explain};
use record::observation::ObservationBody;
use record::{Culprit, Part, Phase};
use units::Nanos;
use world::{MS, Plant, US, World};

/// Each request takes 50 ms longer in the planted place.
#[track_caller]
fn check(plant: Plant, place: Place, segment: Segment) {
    let world = World::of(200, plant);
    let read = world.write();
    let found = explain(&read.client, read.servers, &read.hosts);
    assert_eq!(found.blame.place, place, "{:#?}", found.blame);
    assert!(found.blame.share > 0.9, "{:?}", found.blame);
    assert_eq!(found.join.by_ends, 200);
    // All of it is in that segment, to the nanosecond.
    let all = &found.groups[0];
    assert_eq!(all.segments_ns[segment.name()], 200 * (50 * MS + World::usual(segment)), "{all:?}");
    for group in &found.groups {
        assert_eq!(group.segments_ns.values().sum::<u64>(), group.sum_ns);
    }
    let responses: u64 = world.requests.iter().map(|request| request.age().0).sum();
    assert_eq!(all.sum_ns, responses);
    for slow in &found.slowest {
        assert_eq!(slow.segments_ns.values().sum::<u64>(), slow.response_ns);
    }
}

#[test]
fn a_client_that_takes_requests_up_late() {
    check(Plant::Late, Place::Client, Segment::ScheduleLag);
}

#[test]
fn a_client_that_reads_answers_late() {
    check(Plant::Unread, Place::Client, Segment::ClientLag);
}

#[test]
fn a_pool_that_is_too_small() {
    check(Plant::Pool, Place::Pool, Segment::PoolWait);
}

#[test]
fn a_network_that_is_slow_on_the_way_there() {
    check(Plant::There, Place::Network, Segment::ToServer);
}

#[test]
fn a_network_that_is_slow_on_the_way_back() {
    check(Plant::Back, Place::Network, Segment::ToClient);
}

#[test]
fn a_server_that_does_not_read() {
    check(Plant::Queue, Place::SocketQueue, Segment::SocketQueue);
}

#[test]
fn a_server_that_works() {
    check(Plant::Part(Part::OnCpu), Place::HandlerCpu, Segment::OnCpu);
}

#[test]
fn a_server_that_is_blocked() {
    for (part, segment) in [
        (Part::Disk, Segment::Disk),
        (Part::Lock, Segment::Lock),
        (Part::Network, Segment::Polling),
        (Part::Other, Segment::OtherBlocked),
    ] {
        check(Plant::Part(part), Place::HandlerBlocked, segment);
    }
}

#[test]
fn a_server_whose_cpu_others_have() {
    check(Plant::Part(Part::RunQueue), Place::CpuContention, Segment::RunQueue);
    let mut world = World::of(200, Plant::Part(Part::RunQueue));
    for served in &mut world.served {
        served.culprit = Some(Culprit { pid: 77, comm: "hog".to_owned(), time: Nanos(41 * MS) });
    }
    let mut read = world.write();
    let found = explain(&read.client, read.servers.clone(), &read.hosts);
    assert!(found.blame.sentence.contains("most of all hog (pid 77), 8.20 s in all."), "{:?}", found.blame);
    assert_eq!(found.slowest[0].culprit.as_deref(), Some("hog (pid 77), 41.0 ms"));
    read.client.document.host.pid = Some(77);
    let found = explain(&read.client, read.servers, &read.hosts);
    assert!(
        found.blame.sentence.contains("most of all this client itself, thread hog (pid 77)"),
        "{:?}",
        found.blame
    );
}

#[test]
fn a_server_without_quota() {
    check(Plant::Part(Part::Throttled), Place::Throttled, Segment::Throttled);
}

/// Every fifth request only: the others are as fast as usual, and the tail is explained by what it has in addition.
#[test]
fn a_client_that_stalls_now_and_then() {
    let mut world = World::of(1_000, Plant::Late);
    world.plant_only(|n| n % 5 == 0);
    let read = world.write();
    let found = explain(&read.client, read.servers, &read.hosts);
    assert_eq!(
        (found.blame.place, found.blame.over.as_str()),
        (Place::Client, "the slowest 5 % of the requests")
    );
    // Except the 5 us in the pool, which are the client's in those requests and the pool's in the others.
    let beside = found.blame.explained_ns - found.blame.rows * 50 * MS;
    assert!(beside <= found.blame.rows * 5 * US, "{beside}");
}

/// A server that is blocked for 50 ms now and then makes a queue for the client's connections: that is not the pool's
/// fault.
#[test]
fn a_queue_for_the_pool_behind_a_stall_is_the_stall_s() {
    let read = World::stalled(1_000, 50 * MS).write();
    let found = explain(&read.client, read.servers, &read.hosts);
    assert_eq!(
        (found.blame.place, found.blame.share > 0.9),
        (Place::HandlerBlocked, true),
        "{:#?}",
        found.blame
    );
    assert!(found.groups.iter().any(|group| group.most == Some(Place::Pool)), "{:#?}", found.groups);
    // The table lists these as waits for a connection, so the sentence gives their time.
    assert!(
        found.blame.sentence.contains("of that is waiting for connections that were occupied because of it."),
        "{:?}",
        found.blame
    );
}

/// If this fails, a client that is late all the time counts as stalled because of one long stall in another second, or
/// because of a stall that is shorter than its lateness.
#[test]
fn a_client_stood_still_where_its_meter_stalled_in_the_same_second_for_as_long() {
    let rule = |stall_ns: u64, is_stalled: fn(usize) -> bool| {
        let mut read = World::of(200, Plant::Late).write();
        for (index, second) in read.client.seconds.iter_mut().enumerate() {
            second.hiccup_max_ns = Some(if is_stalled(index) { stall_ns } else { MS / 10 });
        }
        let found = explain(&read.client, read.servers, &[]);
        assert_eq!(found.blame.place, Place::Client, "{found:#?}");
        found.sentences[0].rule
    };
    assert_eq!(rule(60 * MS, |_| true), "client-stalled");
    assert_eq!(rule(60 * MS, |index| index == 1), "client-late-to-send");
    assert_eq!(rule(40 * MS, |_| true), "client-late-to-send");
}

/// Requests that became due while the client was stalled are sent all at once: their wait for connections is not the
/// pool's fault.
#[test]
fn a_burst_after_a_stall_is_the_client_s() {
    let read = World::burst(20, 50 * MS, 3 * MS).write();
    let found = explain(&read.client, read.servers, &read.hosts);
    assert_eq!(found.blame.place, Place::Client, "{found:#?}");
    assert!(found.groups[0].segments_ns["pool_after_lag"] > 400 * MS, "{found:#?}");
    assert!(found.groups[0].segments_ns["pool_wait"] < 100 * MS, "{found:#?}");
}

#[test]
fn a_host_that_does_not_run_excuses_its_client() {
    let mut world = World::of(200, Plant::Unread);
    world.hiccup = Some("stolen");
    let mut read = world.write();
    let found = explain(&read.client, read.servers.clone(), &read.hosts);
    assert_eq!((found.blame.place, found.sentences[0].rule), (Place::Platform, "host-stalled"), "{found:#?}");
    // A record of another host does not count, and that is stated.
    read.hosts[0].observed.document.host.boot_id = Some("other".to_owned());
    let found = explain(&read.client, read.servers, &read.hosts);
    assert_eq!((found.blame.place, found.surroundings.stalls), (Place::Client, 0), "{found:#?}");
    assert!(
        found.notes.iter().any(|note| note.starts_with("hiccup was made on another host")),
        "{:?}",
        found.notes
    );
    // Nor do other processes on the host.
    world.hiccup = Some("run_queue");
    let read = world.write();
    let found = explain(&read.client, read.servers, &read.hosts);
    assert_eq!((found.blame.place, found.surroundings.stalls), (Place::Client, 1), "{found:#?}");
}

/// If this fails, a stall of the client's host is attributed to a server on another host.
#[test]
fn a_host_that_does_not_run_excuses_no_server_of_another_host() {
    for (is_far, place) in [(false, Place::Platform), (true, Place::Network)] {
        let mut world = World::of(200, Plant::Back);
        (world.hiccup, world.other_boot) = (Some("stolen"), is_far);
        let read = world.write();
        let found = explain(&read.client, read.servers, &read.hosts);
        assert_eq!(found.blame.place, place, "{found:#?}");
    }
}

/// A relay has its own connections to the server: the ends differ, so requests are joined by time.
#[test]
fn a_network_with_a_relay_in_it() {
    let mut world = World::of(200, Plant::Back);
    for served in &mut world.served {
        served.peer = served.peer.map(|mut peer| {
            peer.set_port(peer.port() + 1_000);
            peer
        });
    }
    let read = world.write();
    let found = explain(&read.client, read.servers, &read.hosts);
    assert_eq!((found.join.by_time, found.blame.place), (200, Place::Network));
    assert_eq!(found.sentences[0].rule, "network-between");
}

/// A server with one thread that works 50 ms for each of four clients: three wait unread while it serves the fourth.
#[test]
fn requests_that_wait_behind_the_work_for_others_are_not_unread_for_nothing() {
    let world = World::one_thread(120, 50 * MS);
    let read = world.write();
    let found = explain(&read.client, read.servers, &read.hosts);
    assert_eq!((found.blame.place, found.sentences[0].rule), (Place::HandlerCpu, "cpu-behind"), "{found:#?}");
}

/// If this fails, a server that is busy with requests that its observer did not keep is reported as one that does not
/// read.
#[test]
fn where_not_all_requests_were_kept_a_busy_thread_is_not_told_from_an_idle_one() {
    let mut read = World::one_thread(400, 3 * MS).write();
    read.keep_one_in(5);
    let found = explain(&read.client, read.servers, &read.hosts);
    assert_eq!(
        (found.blame.place, found.sentences[0].rule),
        (Place::Undecided, "waits-unseen"),
        "{found:#?}"
    );
    assert!(found.blame.sentence.contains("`watch --requests all`"), "{:?}", found.blame);
    // Requests that were seen but could not be kept are missing in the same way.
    let mut read = World::of(200, Plant::Queue).write();
    let ObservationBody::Watch(results) = &mut read.servers[0].observed.document.body else { unreachable!() };
    results.kept.as_mut().unwrap().lost = 40;
    let found = explain(&read.client, read.servers, &read.hosts);
    assert_eq!(
        (found.blame.place, found.sentences[0].rule),
        (Place::Undecided, "waits-unseen"),
        "{found:#?}"
    );
}

#[test]
fn without_a_record_of_the_server_server_and_network_are_undivided() {
    let read = World::of(200, Plant::Part(Part::OnCpu)).write();
    let found = explain(&read.client, Vec::new(), &[]);
    assert_eq!((found.blame.place, found.sentences[0].rule), (Place::Undecided, "no-server"));
    assert_eq!((found.join.rows, found.join.connection_not_seen), (200, 200));
    assert!(found.notes[0].contains("There is no record of the server"));
    // The client's part is known nevertheless.
    let read = World::of(200, Plant::Late).write();
    assert_eq!(explain(&read.client, Vec::new(), &[]).blame.place, Place::Client);
}

/// If this fails, requests that a server never saw are dropped, and the blame is still said to be for all.
#[test]
fn requests_that_were_not_found_stay_in_what_is_explained() {
    let mut read = World::of(300, Plant::Part(Part::OnCpu)).write();
    read.servers[0].served.truncate(150);
    for row in &mut read.client.rows.as_mut().unwrap().1[150..] {
        row.response += Nanos(20 * MS);
        let wait = &mut row.phases[Phase::Wait as usize];
        *wait = wait.map(|wait| wait + Nanos(20 * MS));
    }
    let found = explain(&read.client, read.servers, &read.hosts);
    assert_eq!(
        (found.blame.rows, found.blame.over.as_str()),
        (300, "all requests with a response"),
        "{found:#?}"
    );
    assert_eq!(found.blame.explained_ns, found.groups[0].sum_ns);
    assert!(
        found.notes.iter().any(|note| note.starts_with("150 of the 300 explained requests were not")),
        "{:?}",
        found.notes
    );
}

/// If this fails, one connection dropped at any time by any listener of the host makes slow connects the server's
/// fault.
#[test]
fn connections_turned_away_count_while_connects_hang() {
    let first = |connect: u64, second: usize| {
        let mut read = World::of(200, Plant::Pool).write();
        for (index, row) in read.client.rows.as_mut().unwrap().1.iter_mut().enumerate() {
            row.carried.as_mut().unwrap().server = "127.0.0.1:80".parse().unwrap();
            if index < 20 {
                row.phases[Phase::Connect as usize] = Some(Nanos(connect));
                row.response += Nanos(connect);
            }
        }
        read.client.seconds[second].host.listen_drops = Some(3);
        let found = explain(&read.client, Vec::new(), &[]);
        (found.blame.place, found.blame.sentence)
    };
    let (place, sentence) = first(1_200 * MS, 1);
    assert_eq!(place, Place::SocketQueue, "{sentence}");
    assert!(
        sentence.contains("3 connections were dropped by a full listen queue on this host"),
        "{sentence}"
    );
    // They hung from 0 s to 1.7 s, and the last is in second 4; a connect that took half a second was not dropped.
    assert_eq!(first(1_200 * MS, 4).0, Place::Network);
    assert_eq!(first(500 * MS, 0).0, Place::Network);
}

/// If this fails, a relay that existed before the run is not mentioned, and one that never existed is.
#[test]
fn a_disturbance_counts_for_as_long_as_it_was_in_effect() {
    let world = World::of(200, Plant::Back);
    let mut read = world.write();
    // The run is from 0.5 s to 6.5 s on the record's clock.
    read.hosts =
        vec![world.write_disturb(&[Some((0, 2_500)), None, Some((3_500, 4_500)), Some((9_000, 9_500))])];
    read.client.document.subject.url = "http://127.0.0.1:4000/plaintext".to_owned();
    let found = explain(&read.client, read.servers, &read.hosts);
    assert_eq!(found.surroundings.disturbances, 2);
    let planted = &found.surroundings.planted[0];
    assert_eq!((planted.times, planted.in_effect_ns), (2, 3_000 * MS));
    let note = "A deliberate disturbance was active for 3.00 s of the run: relaying 127.0.0.1:4000 to 127.0.0.1:5000.";
    assert!(found.notes.iter().any(|one| one == note), "{:?}", found.notes);
    let text = rendered(&found);
    assert!(text.contains("deliberate disturbance for 3.00 s of the run in 2 times: relaying"), "{text}");
    // One that ended before the run began, and one with other addresses.
    read.client.document.subject.url = "http://127.0.0.1:400/".to_owned();
    read.hosts = vec![world.write_disturb(&[Some((0, 400))])];
    let found = explain(&read.client, Vec::new(), &read.hosts);
    assert!(found.surroundings.planted.is_empty() && found.surroundings.disturbances == 0);
    read.hosts = vec![world.write_disturb(&[Some((0, 2_500))])];
    let found = explain(&read.client, Vec::new(), &read.hosts);
    assert!(!found.notes.iter().any(|note| note.contains("on purpose")), "{:?}", found.notes);
}

/// If this fails, a garbage collector's pause is reported as a lock of the server.
#[test]
fn a_jvm_that_stood_still_has_the_time_of_the_requests_it_served() {
    let mut world = World::of(1_000, Plant::Part(Part::Lock));
    world.plant_only(|n| n % 5 == 0);
    let mut read = world.write();
    let held: Vec<_> = world.served.iter().step_by(5).collect();
    let pid = world.served[0].pid;
    read.hosts = vec![world.write_jvm(pid, &held)];
    let found = explain(&read.client, read.servers.clone(), &read.hosts);
    assert_eq!(found.blame.place, Place::Runtime, "{:?}", found.blame);
    assert!(found.blame.share > 0.95, "{:?}", found.blame);
    let pauses = "is within 50 of its pauses, of up to 50.0 ms, most by G1 Evacuation Pause.";
    assert!(found.blame.sentence.ends_with(pauses), "{:?}", found.blame);
    let runtime = &found.surroundings.runtimes[0];
    assert_eq!((runtime.pauses, runtime.paused_ns), (200, 200 * 50 * MS));
    assert_eq!(runtime.causes_ns["G1 Evacuation Pause"], 200 * 50 * MS);
    let text = rendered(&found).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("stood still 200 times for 10.0 s in all, at most 50.0 ms: G1"), "{text}");
    // Without a record of `watch` it is still attributed to the JVM.
    let found = explain(&read.client, Vec::new(), &read.hosts);
    assert_eq!(found.blame.place, Place::Runtime, "{:?}", found.blame);
    // One JVM that served none of them, and one that was stalled when there were no requests.
    read.hosts = vec![world.write_jvm(pid + 1, &held)];
    assert_eq!(explain(&read.client, read.servers.clone(), &read.hosts).blame.place, Place::HandlerBlocked);
    let fast: Vec<_> = world.served.iter().skip(2).step_by(5).collect();
    read.hosts = vec![world.write_jvm(pid, &fast)];
    assert_eq!(explain(&read.client, read.servers, &read.hosts).blame.place, Place::HandlerBlocked);
}

/// Neither side kept individual requests: only sums and averages are available.
#[test]
fn without_requests_one_by_one_the_sums_are_explained() {
    for (plant, place) in [
        (Plant::Part(Part::Disk), Place::HandlerBlocked),
        (Plant::Back, Place::Network),
        // Whether its thread was busy with others is unknown.
        (Plant::Queue, Place::Undecided),
        (Plant::Pool, Place::Pool),
    ] {
        let mut read = World::of(200, plant).write();
        read.client.rows = None;
        read.servers[0].served.clear();
        let found = explain(&read.client, read.servers, &[]);
        assert_eq!(found.blame.place, place, "{found:#?}");
        assert_eq!(found.groups[0].segments_ns.values().sum::<u64>(), found.groups[0].sum_ns);
    }
}

#[test]
fn on_another_host_the_network_is_one_sum() {
    let mut world = World::of(200, Plant::Back);
    world.other_boot = true;
    let read = world.write();
    let found = explain(&read.client, read.servers, &read.hosts);
    assert_eq!((found.join.by_ends, found.blame.place), (200, Place::Network));
    assert!(found.groups[0].segments_ns.contains_key("network"));
}

/// If this fails, a clock of another host puts a slow way to the server on the way back, or the reverse.
#[test]
fn on_another_host_whose_clock_is_known_the_two_ways_are_told_apart() {
    for (plant, segment) in [(Plant::There, Segment::ToServer), (Plant::Back, Segment::ToClient)] {
        let read = World::of(200, plant).on_another_host(400 * US).write();
        let found = explain(&read.client, read.servers, &read.hosts);
        assert_eq!((found.join.by_ends, found.blame.place), (200, Place::Network), "{found:#?}");
        let all = &found.groups[0];
        assert_eq!(all.segments_ns.values().sum::<u64>(), all.sum_ns);
        // The exchanges bound the error by half their length.
        let error = all.segments_ns[segment.name()].abs_diff(200 * (50 * MS + World::usual(segment)));
        assert!(error <= 200 * 201 * US, "{} is off by {error} ns", segment.name());
        assert!(found.notes.iter().any(|note| note.contains("known within 200 us")), "{:?}", found.notes);
    }
    // Ways of 50 ms cannot be separated by a clock that is off by up to 10 ms.
    let read = World::of(200, Plant::Back).on_another_host(20 * MS).write();
    let found = explain(&read.client, read.servers, &read.hosts);
    assert_eq!((found.join.by_ends, found.blame.place), (200, Place::Network), "{found:#?}");
    assert!(found.groups[0].segments_ns.contains_key("network"));
    assert!(!found.groups[0].segments_ns.contains_key("to_client"));
}

/// The remote host was suspended for a second: clock readings from before do not apply after.
#[test]
fn a_clock_that_cannot_be_believed_is_not_used() {
    let mut world = World::of(200, Plant::Back).on_another_host(400 * US);
    let clocks = world.clocks.as_mut().unwrap();
    for reading in &mut clocks.readings[10..] {
        reading.least_ns -= 1_000 * MS as i64;
        reading.most_ns -= 1_000 * MS as i64;
    }
    let read = world.write();
    let found = explain(&read.client, read.servers, &read.hosts);
    assert!(found.groups[0].segments_ns.contains_key("network"), "{found:#?}");
    assert!(found.notes.iter().any(|note| note.contains("stopped or jumped")), "{:?}", found.notes);
}

/// If this fails, what a server did for others after the run is counted in the run's last second.
#[test]
fn what_was_served_after_the_run_is_in_none_of_its_seconds() {
    let mut world = World::of(200, Plant::Queue);
    let mut late = world.served[0].clone().later(3_600 * 1_000 * MS as i64);
    late.peer = None;
    world.served.push(late);
    let read = world.write();
    let found = explain(&read.client, read.servers, &read.hosts);
    let reported = found.seconds.iter().filter_map(|second| second.servers[0]).map(|sums| sums.requests);
    assert_eq!((reported.sum::<u64>(), found.join.others_at_servers), (200, 1));
}

/// Rows and requests with the longest times that the format can hold: no sum of them may overflow.
#[test]
fn a_record_of_impossible_lengths_is_explained_without_harm() {
    let mut read = World::of(40, Plant::Pool).write();
    let rows = &mut read.client.rows.as_mut().unwrap().1;
    for row in rows.iter_mut() {
        row.phases[Phase::PoolWait as usize] = Some(Nanos(i64::MAX as u64));
        row.response = Nanos(row.phases.iter().flatten().map(|length| length.0).sum());
    }
    for served in &mut read.servers[0].served {
        let length = Nanos(u64::MAX / 2);
        served.parts = [Nanos::ZERO; Part::COUNT];
        served.parts[Part::OnCpu as usize] = length;
        (served.first_sent, served.done) = (served.read + length, served.read + length);
    }
    let found = explain(&read.client, read.servers, &read.hosts);
    assert!(!rendered(&found).is_empty());
}

#[test]
fn an_explanation_can_be_read_by_people_and_programs() {
    let read = World::of(200, Plant::Part(Part::Disk)).write();
    let found = explain(&read.client, read.servers, &read.hosts);
    let text = rendered(&found);
    assert!(
        text.starts_with(
            "blame: handler_blocked\n        The server waits for its disk: 50.0 ms per request;"
        ),
        "{text}"
    );
    assert!(text.contains("100 % of 200 requests were found at the server"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() < 400), "{text}");
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(json["blame"]["place"], "handler_blocked");
    assert_eq!(json["groups"][0]["segments_ns"]["disk"], 200 * 50 * MS);
    // One per 25 ms, done 50.25 ms after it was due: those up to number 37 within the first second.
    assert_eq!(json["seconds"][0]["servers"][0]["requests"], 38);
    assert_eq!(World::usual(Segment::OnCpu), 200 * US);
}

/// The text of an explanation. It is the same when made from the view's JSON alone.
fn rendered(found: &explain::Explanation) -> String {
    let view = explain::view(found);
    let json = serde_json::to_string(&view).expect("a view has nothing that can fail to be written");
    let text = |view: &findings::view::View| {
        let mut out = Vec::new();
        report::text(view, &mut out, report::Style::PLAIN).expect("a vector takes every write");
        String::from_utf8(out).expect("reports are text")
    };
    let read = serde_json::from_str(&json).expect("what was written is read");
    assert_eq!(text(&read), text(&view), "the text of the view's JSON");
    text(&view)
}
