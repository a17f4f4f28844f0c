//! Carries out a watch: takes requests, adds them up, prints one line per interval, writes the record.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use findings::WatchRecord;
use findings::view::Subject;
use record::document::{MissingFact, State};
use record::observation::watch::{Inexact, Losses, Preemptor, ProgramCost, Tier, WatchResults, WatchSubject};
use record::observation::{Observation, ObservationBody};
use record::{Durations, Event, RecordError};
use report::Style;
use units::Nanos;
use watch::{DigestSums, Session, Sums};

use super::args::{Args, WatchPlan};
use super::progress::Progress;
use super::recording::Recording;
use crate::command_line::CommandLine;
use crate::observing;
use crate::output::{printed, report_line};
use tui::table::{RequestSample, TableSnapshot, TableSubject};

/// How often /proc is asked for new ports and processes.
const REFRESH: Nanos = Nanos::from_secs(1);

/// What is missing in the record while /proc or the kernel cannot be read.
const NEW_PLACES: &str = "new ports and processes";

/// A server that is watched.
pub struct Observing<'a> {
    args: &'a Args,
    session: Session,
    document: Observation,
    results: WatchResults,
    recording: Recording,
    zero: Nanos,
    /// How far this process's clock is ahead of the kernel's clock, which timestamps requests: zero outside of a time
    /// namespace.
    ahead: i64,
    own_cpu: Option<Nanos>,
    /// Sums of the current interval, and of all earlier ones.
    interval: Sums,
    total: Sums,
    digests: DigestSums,
    /// The server has ended.
    gone: bool,
}

impl<'a> Observing<'a> {
    /// Attaches, and begins the record.
    ///
    /// # Errors
    ///
    /// When the server is not found, the kernel refuses, or the record cannot be created.
    pub fn begin(
        plan: &WatchPlan,
        args: &'a Args,
        line: &CommandLine<'_>,
        folder: &Path,
    ) -> anyhow::Result<Observing<'a>> {
        let own_cpu = host::process_cpu();
        let mut session = Session::start(plan.named.clone(), &plan.settings, plan.known.clone())?;
        let mut missing = Vec::new();
        if args.self_cost
            && let Err(error) = session.measure_cost()
        {
            missing.push(MissingFact {
                what: "self_cost".to_owned(),
                why: format!("the kernel keeps no account of programs: {error}"),
            });
        }
        missing.extend(session.missing().iter().map(|what| {
            let (what, why) = what.split_once(": ").unwrap_or((what, ""));
            MissingFact { what: what.to_owned(), why: why.to_owned() }
        }));
        let zero = clock::now();
        let results = WatchResults {
            subject: subject(plan, &session),
            tier: tier(&session),
            ..WatchResults::default()
        };
        let options = line.effective();
        let mut document =
            observing::opening(ObservationBody::Watch(Box::new(results.clone())), options, zero);
        document.missing = missing;
        let recording = Recording::begin(folder, &document, args.requests, zero)?;
        let ahead = document.host.monotonic_offset_ns.unwrap_or(0);
        Ok(Observing {
            args,
            session,
            document,
            results,
            recording,
            zero,
            ahead,
            own_cpu,
            interval: Sums::default(),
            total: Sums::default(),
            digests: DigestSums::default(),
            gone: false,
        })
    }

    /// Watches until it is stopped, its time is over, or the server has ended.
    pub fn run(mut self, plan: &WatchPlan, stop: &Arc<AtomicBool>) -> Watched {
        let subject = &self.results.subject;
        let who = format!("{} ({})", subject.comm.as_deref().unwrap_or("server"), plan.selection);
        if !self.args.json && !self.args.controlled {
            report_line(format_args!("watching {who}; Ctrl-C ends it"));
        }
        let subject =
            TableSubject { who: &who, ports: &subject.ports, start: self.zero, length: self.args.duration };
        let mut progress = Progress::begin(self.args, &subject, stop);
        let end = self.args.duration.map_or(Nanos::MAX, |duration| self.zero + duration);
        let mut begun = self.zero;
        let mut refreshed = self.zero;
        loop {
            let line_at = begun + self.args.interval;
            // No wake-ups from the kernel: one would cost the server more than the event itself.
            clock::sleep_until((clock::now() + self.session.patience()).min(line_at).min(end));
            let served = self.session.take();
            self.add(served);
            let now = clock::now();
            let mut over = stop.load(Ordering::Relaxed) || now >= end;
            if now >= refreshed + REFRESH {
                refreshed = now;
                over |= !self.refresh(now);
            }
            if now >= line_at || over {
                if over {
                    // The last write on each connection was the end of its response.
                    let served = self.session.finish();
                    self.add(served);
                }
                self.close_interval(begun, now, &progress);
                begun = now;
            }
            if over {
                progress.end();
                if self.gone {
                    report_line("the server has ended");
                }
                return self.end(now, plan);
            }
        }
    }

    fn add(&mut self, served: Vec<record::Served>) {
        for served in served {
            let served = served.later(self.ahead);
            // Requests read before the record began are not part of it.
            if served.read < self.zero {
                continue;
            }
            self.interval.add(&served);
            self.digests.add(&served);
            self.recording.keep(served);
        }
    }

    /// Looks for new processes and ports of the server; false if it has ended.
    fn refresh(&mut self, now: Nanos) -> bool {
        match self.session.refresh(Nanos(now.0.saturating_add_signed(-self.ahead))) {
            Ok(true) => true,
            Ok(false) => {
                let text = "the server has ended".to_owned();
                self.gone = true;
                let at_ns = (now - self.zero).0;
                self.recording.event(&Event::new(at_ns, "server_ended", text));
                false
            }
            // The known processes are watched further, and the next look may succeed.
            Err(error) => {
                if !self.document.missing.iter().any(|fact| fact.what == NEW_PLACES) {
                    let why = format!("at {}: {error}", now - self.zero);
                    self.document.missing.push(MissingFact { what: NEW_PLACES.to_owned(), why });
                }
                true
            }
        }
    }

    fn close_interval(&mut self, begun: Nanos, now: Nanos, progress: &Progress) {
        let (losses, inexact) = self.shortcomings();
        let (losses, inexact) = (losses.since(&self.results.losses), inexact.since(&self.results.inexact));
        let name = |class| self.args.class.as_ref().map_or_else(String::new, |arg| arg.name(class));
        let line = self.interval.line((losses, inexact), name);
        let logs = self.interval.logs(name);
        let logs: Vec<(&str, &Durations)> =
            logs.iter().map(|(name, durations)| (name.as_str(), *durations)).collect();
        let length = now - begun;
        self.recording.append(&line, begun - self.zero, length, &logs);
        self.total.merge(&self.interval);
        self.results.losses.add(&losses);
        self.results.inexact.add(&inexact);
        progress.interval(&line, length, || self.seen(length));
        self.interval.clear();
    }

    /// The figures for the live table.
    fn seen(&self, length: Nanos) -> TableSnapshot {
        let mut digests =
            self.session.with_digests(|digests| self.digests.rows(|id| digests.text(dissect::DigestId(id))));
        digests.retain(|digest| digest.count > 0);
        digests.sort_by_key(|digest| std::cmp::Reverse(digest.sum_ns));
        TableSnapshot {
            length,
            lately: RequestSample::of(&self.interval),
            whole: RequestSample::of(&self.total),
            protocols: self.total.protocols(),
            connections: self.session.connections(),
            digests,
            preemptors: preemptors(&self.session),
            losses: self.results.losses,
            inexact: self.results.inexact,
        }
    }

    /// What was lost so far and what is inexact, by the record's names.
    fn shortcomings(&self) -> (Losses, Inexact) {
        let kernel = self.session.losses();
        let counts = self.session.counts();
        let losses = Losses {
            ring_full: kernel.ring_full,
            map_full: kernel.map_full + self.session.given_up(),
            recursion: kernel.recursion,
            mid_connection: counts.mid_connection_requests,
            unparsed: counts.unparsed + counts.dropped + kernel.unreadable,
        };
        let inexact = Inexact {
            forgotten_slices: kernel.forgotten_slices,
            joined_arrivals: kernel.joined_arrivals,
            missed_switches: kernel.missed_switches,
        };
        (losses, inexact)
    }

    fn end(mut self, now: Nanos, plan: &WatchPlan) -> Watched {
        let name = |class| self.args.class.as_ref().map_or_else(String::new, |arg| arg.name(class));
        let logs: BTreeMap<String, Durations> =
            self.total.logs(name).into_iter().map(|(name, durations)| (name, durations.clone())).collect();
        let results = &mut self.results;
        results.subject = subject(plan, &self.session);
        results.subject.protocols = self.total.protocols();
        results.requests = self.total.requests;
        results.preempted = self.total.preempted;
        results.connections = self.session.connections();
        results.request_bytes = self.total.request_bytes;
        results.response_bytes = self.total.response_bytes;
        results.parts_ns = self.total.parts_ns;
        results.classes = self.total.classes(name);
        results.digests =
            self.session.with_digests(|digests| self.digests.rows(|id| digests.text(dissect::DigestId(id))));
        results.preemptors = preemptors(&self.session);
        results.preemptors.iter_mut().for_each(|one| one.cgroup = watch::cgroup(one.pid));
        results.self_cost = cost(&self.session);
        results.self_cpu_ns =
            host::process_cpu().zip(self.own_cpu).map(|(now, before)| now.saturating_sub(before).0);
        let (kept, unkept) = self.recording.finish_served();
        results.kept = kept;
        findings::summarize_watch(results, &logs);
        self.document.missing.extend(unkept);
        self.document.state = State::Finished;
        self.document.time.elapsed_ns = Some((now - self.zero).0);
        self.document.body = ObservationBody::Watch(Box::new(results.clone()));
        let damage = self.recording.finish(&self.document);
        Watched { document: self.document, results: self.results, logs, damage }
    }
}

/// The results of a watch.
pub struct Watched {
    document: Observation,
    results: WatchResults,
    logs: BTreeMap<String, Durations>,
    /// The first error when writing the record. The results are complete even so.
    pub damage: Option<RecordError>,
}

impl Watched {
    /// # Errors
    ///
    /// When nothing can be printed.
    pub fn print(&self, args: &Args, out: &mut dyn Write, style: Style) -> anyhow::Result<()> {
        if args.json {
            return printed(report::json(&self.document, &mut *out));
        }
        let record = WatchRecord { document: &self.document, results: &self.results, logs: &self.logs };
        printed(writeln!(out).and_then(|()| report::text(&findings::watch_view(&record), out, style)))?;
        if args.self_cost {
            let elapsed = Nanos(self.document.time.elapsed_ns.unwrap_or(0));
            let cost = findings::watch_cost(&self.results, elapsed);
            let shown = writeln!(out).and_then(|()| report::section(Subject::Watch, &cost, out, style));
            printed(shown)?;
        }
        Ok(())
    }
}

fn subject(plan: &WatchPlan, session: &Session) -> WatchSubject {
    let found = session.found();
    WatchSubject {
        named: plan.selection.clone(),
        pids: found.processes.iter().copied().take(1_000).collect(),
        ports: found.ports.clone(),
        comm: found.comm.clone(),
        protocols: Vec::new(),
    }
}

fn tier(session: &Session) -> Tier {
    Tier { name: "btf_tracepoints".to_owned(), attached: session.attached() }
}

/// The preemptors, one row per process and name, the most time first; their control groups are not looked up.
fn preemptors(session: &Session) -> Vec<Preemptor> {
    let mut rows: BTreeMap<(u32, String), Preemptor> = BTreeMap::new();
    for row in session.culprits() {
        let comm = watch::comm_text(&row.comm);
        let one = rows.entry((row.pid, comm.clone())).or_insert_with(|| Preemptor {
            pid: row.pid,
            comm,
            cgroup: None,
            time_ns: 0,
            count: 0,
        });
        one.time_ns += row.time.0;
        one.count += row.count;
    }
    let mut rows: Vec<Preemptor> = rows.into_values().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.time_ns));
    rows
}

fn cost(session: &Session) -> Vec<ProgramCost> {
    let cost =
        |cost: watch::kernel::Cost| ProgramCost { name: cost.program, runs: cost.runs, ns: cost.time.0 };
    session.cost().into_iter().map(cost).collect()
}
