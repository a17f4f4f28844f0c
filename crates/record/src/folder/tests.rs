//! Tests of the record's writer: crashes at every byte, full disks, occupied directories. Uses recorded writes.

use std::fs;

use intervals::{Failure, Outcome, Phase, Timeline};
use proptest::prelude::*;

use super::*;
use crate::commit::RUN;
use crate::files::journal::{Journal, Write, apply};
use crate::fixture;
use crate::folder_reader::read;

fn new_folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn writer_on(journal: &Journal) -> FolderWriter {
    let document = fixture::document();
    let commits = Commits::on(Box::new(journal.clone()), Path::new("run"), &document.time.started).unwrap();
    FolderWriter::with(commits, &document).unwrap()
}

#[test]
fn a_run_reads_back_as_it_was() {
    let parent = new_folder();
    let path = parent.path().join("some/where/run");
    let intervals = fixture::intervals();
    let mut writer = FolderWriter::create(&path, &fixture::document()).unwrap();
    assert_eq!(writer.path(), path);
    for (n, interval) in intervals.iter().enumerate() {
        let running = read(&path).unwrap();
        assert!(running.is_cut_off());
        fixture::assert_same(&running.total, &fixture::merged(&intervals[..n]));
        writer.append(interval, Some(Nanos(500_000))).unwrap();
    }
    fixture::events().iter().for_each(|event| writer.event(event).unwrap());
    writer.finish(&fixture::finished(&intervals)).unwrap();

    let mut recording = read(&path).unwrap();
    assert_eq!(recording.document, fixture::finished(&intervals));
    assert_eq!(recording.events, fixture::events());
    assert_eq!(recording.seconds.len(), 3);
    assert_eq!(recording.seconds[0].process_cpu_ns, Some(500_000));
    fixture::assert_same(&recording.total, &fixture::merged(&intervals));
    // There is nothing to settle.
    recording.settle();
    assert_eq!(recording.document.state, crate::document::State::Finished);
    fixture::assert_same(&recording.total, &fixture::merged(&intervals));
}

#[test]
fn a_folder_that_holds_a_run_is_refused() {
    let folder = new_folder();
    FolderWriter::create(folder.path(), &fixture::document()).unwrap();
    let error = FolderWriter::create(folder.path(), &fixture::document()).err().unwrap().to_string();
    let expected = "already contains a record; use another directory, or remove this one";
    assert_eq!(error, format!("{} {expected}", folder.path().display()));
    // The state after a process was killed between its first two writes.
    fs::remove_file(folder.path().join(RUN)).unwrap();
    let error = FolderWriter::create(folder.path(), &fixture::document()).err().unwrap();
    assert!(matches!(error, RecordError::Occupied { .. }));
    assert!(matches!(read(folder.path()), Err(RecordError::NoRun { .. })));
}

#[test]
fn intervals_out_of_order_are_refused() {
    let mut writer = writer_on(&Journal::default());
    let intervals = fixture::intervals();
    writer.append(&intervals[1], None).unwrap();
    for interval in &intervals[..2] {
        assert!(matches!(writer.append(interval, None), Err(RecordError::OutOfOrder { .. })));
    }
    writer.append(&intervals[2], None).unwrap();
}

/// If this fails, a crash at that byte loses more than the last second, or adds requests that never existed.
#[test]
fn a_crash_at_any_byte_leaves_every_committed_interval() {
    let journal = Journal::default();
    let intervals = fixture::short_intervals();
    let mut writer = writer_on(&journal);
    for interval in &intervals {
        writer.append(interval, None).unwrap();
        fixture::events().iter().for_each(|event| writer.event(event).unwrap());
    }
    writer.finish(&fixture::finished(&intervals)).unwrap();

    let expected: Vec<_> = (0..=3).map(|n| fixture::merged(&intervals[..n])).collect();
    let folder = new_folder();
    let (mut committed, mut events, mut documents) = (0, 0, 0);
    let writes = journal.writes();
    for write in &writes {
        let Write::Append(name, bytes) = write else {
            apply(folder.path(), write);
            documents += usize::from(matches!(write, Write::Replace(..)));
            continue;
        };
        for byte in bytes {
            apply(folder.path(), &Write::Append(name.clone(), vec![*byte]));
            committed += usize::from(name == SERIES && *byte == b'\n');
            events += usize::from(name == EVENTS && *byte == b'\n');
            let recording = read(folder.path()).unwrap();
            assert!(recording.is_cut_off());
            assert_eq!((recording.seconds.len(), recording.events.len()), (committed, events));
            fixture::assert_same(&recording.total, &expected[committed]);
        }
    }
    assert_eq!((committed, events, documents), (3, 3, 2));
    assert!(!read(folder.path()).unwrap().is_cut_off());
}

#[test]
fn what_a_cut_off_run_left_open_is_in_flight() {
    let folder = new_folder();
    let mut intervals = fixture::intervals();
    intervals[2].counts.scheduled += 5;
    let mut writer = FolderWriter::create(folder.path(), &fixture::document()).unwrap();
    intervals.iter().for_each(|interval| writer.append(interval, None).unwrap());
    drop(writer);
    let mut recording = read(folder.path()).unwrap();
    recording.settle();
    assert_eq!(recording.document.state, crate::document::State::Recovered);
    assert_eq!(recording.total.counts.scheduled, recording.total.ended());
    let lost = Failure::new(Outcome::InFlight, Phase::Wait);
    // One was in flight with an age, five without.
    assert!(recording.total.failures().contains(&(lost, 6)));
    assert_eq!(recording.total.failed(Outcome::InFlight).unwrap().count(), 1);
}

/// If this fails, a disk that was full for a second makes the whole run unreadable.
#[test]
fn a_full_disk_costs_only_what_did_not_fit() {
    let intervals = fixture::short_intervals();
    for (room, cut_fails) in (0..4_000).step_by(37).flat_map(|room| [(room, false), (room, true)]) {
        let journal = Journal::default();
        let mut writer = writer_on(&journal);
        writer.append(&intervals[0], None).unwrap();
        journal.set_room(Some(room));
        journal.set_cut_fails(cut_fails);
        let second = writer.append(&intervals[1], None);
        let event = writer.event(&fixture::events()[0]);
        if let Err(error) = &second {
            assert!(matches!(error, RecordError::Write { .. }), "{error}");
            // The interval used the last free byte.
            assert!(event.is_err());
        }
        let kept = if second.is_ok() { &intervals[..2] } else { &intervals[..1] };
        check_journal(&journal, kept);

        // Space was freed.
        journal.set_room(None);
        journal.set_cut_fails(false);
        writer.append(&intervals[2], None).unwrap();
        check_journal(&journal, &[kept, &intervals[2..]].concat());
    }
}

fn check_journal(journal: &Journal, intervals: &[Interval]) {
    let folder = new_folder();
    journal.replay(folder.path());
    fixture::assert_same(&read(folder.path()).unwrap().total, &fixture::merged(intervals));
}

prop_compose! {
    fn timeline()(lengths in proptest::collection::vec(proptest::option::of(0u64..1 << 36), Phase::COUNT)) -> Timeline {
        let mut timeline = Timeline::due(Nanos(7));
        for (phase, length) in Phase::ALL.into_iter().zip(lengths) {
            match length {
                Some(length) => drop(timeline.end(phase, timeline.last() + Nanos(length))),
                None => timeline.skip(phase),
            }
        }
        timeline
    }
}

prop_compose! {
    fn interval()(
        length in 1u64..2_000_000_000,
        answered in proptest::collection::vec((timeline(), any::<u16>()), 0..20),
        failed in proptest::collection::vec((1..Outcome::COUNT, 0..Phase::COUNT, 0u64..5_000_000_000_000), 0..10),
        counts in proptest::array::uniform9(0u64..1 << 40),
        cpu in (0u64..1 << 40, 0u64..1 << 40),
        transactions in proptest::collection::vec((0u64..1 << 41, 0u64..5, any::<bool>()), 0..20),
    ) -> Interval {
        let mut interval = Interval::default();
        interval.length = Nanos(length);
        for (timeline, code) in &answered {
            interval.record_ok(timeline);
            interval.record_code(units::Code::status(*code));
        }
        for (n, &(age, retries, is_ok)) in transactions.iter().enumerate() {
            let journey = interval.journey(n as u16 % 3);
            (journey.begun, journey.retries) = (journey.begun + 1, journey.retries + retries);
            if is_ok { journey.record_ok(Nanos(age)) } else { journey.record_failed(Nanos(age)) }
        }
        interval.add_other_codes(transactions.len() as u64 / 4);
        for (outcome, phase, age) in failed {
            interval.record_failure(Failure::new(Outcome::ALL[outcome], Phase::ALL[phase]), Nanos(age));
        }
        let [scheduled, sent, outstanding, bytes_sent, bytes_received, body_bytes, opened, unstamped, moved] = counts;
        interval.counts = intervals::Counts {
            retries: unstamped / 5,
            ok: interval.counts.ok,
            scheduled,
            sent,
            outstanding,
            bytes_sent,
            bytes_received,
            body_bytes,
            connections_opened: opened,
            idle_closes: opened / 2,
            unstamped,
            stamps_moved: moved,
            out_of_descriptors: unstamped / 3,
            out_of_ports: moved / 3,
        };
        interval.outstanding_time = (sent % 2 == 0).then_some(u128::from(sent));
        interval.host.steal_ns = (moved % 2 == 0).then_some(moved);
        (0..opened % 4).for_each(|ms| interval.record_hiccup(Nanos::from_millis(ms)));
        interval.describe_worker(opened);
        (interval.worker_cpu, interval.worker_cpu_max) = (Nanos(cpu.0), Nanos(cpu.1));
        interval
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// If this fails, a record does not contain what was measured.
    #[test]
    fn any_run_reads_back_as_it_was(mut intervals in proptest::collection::vec(interval(), 0..6)) {
        let folder = new_folder();
        let mut writer = FolderWriter::create(folder.path(), &fixture::document()).unwrap();
        let mut at = Nanos(0);
        for (index, interval) in (0..).zip(&mut intervals) {
            interval.index = index;
            interval.start = at;
            at += interval.length;
            writer.append(interval, None).unwrap();
        }
        let recording = read(folder.path()).unwrap();
        fixture::assert_same(&recording.total, &fixture::merged(&intervals));
        let lines: Vec<_> = intervals.iter().map(|interval| Second::of(interval, None)).collect();
        prop_assert_eq!(recording.seconds, lines);
    }
}
