//! A watch from its beginning to its end: takes requests, adds them up, prints a line an interval, keeps the record.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use clap::ArgMatches;
use record::document::{MissingFact, State};
use record::observation::watch::{Losses, Preemptor, ProgramCost, Tier, WatchResults, WatchSubject};
use record::observation::{Observation, ObservationBody, ObservationWriter};
use record::{Durations, Event};
use report::{Style, WatchReport};
use units::Nanos;
use watch::{DigestSums, Session, Sums};

use super::args::{Args, Plan};
use super::keep::ServedFile;
use crate::under_way::UnderWay;
use crate::{observing, printed, say};

/// How often the ring is emptied. Nobody wakes us: that would cost the server more than the event itself.
const DRAIN: Nanos = Nanos::from_millis(10);

/// How often /proc is asked for new ports and processes.
const REFRESH: Nanos = Nanos::from_secs(1);

/// A server that is watched.
pub struct Observing<'a> {
    args: &'a Args,
    session: Session,
    document: Observation,
    results: WatchResults,
    writer: ObservationWriter,
    served: ServedFile,
    _mark: Option<UnderWay>,
    zero: Nanos,
    /// How far this process's clock is ahead of the kernel's, with which the kernel stamps requests: not at all, but
    /// in a time namespace.
    ahead: i64,
    own_cpu: Option<Nanos>,
    /// Of the interval under way, and of all before.
    interval: Sums,
    total: Sums,
    digests: DigestSums,
    lost: Losses,
}

impl<'a> Observing<'a> {
    /// Attaches, and begins the record.
    ///
    /// # Errors
    ///
    /// When the server is not there, the kernel refuses, or the record cannot be made.
    pub fn begin(
        plan: &Plan,
        args: &'a Args,
        matches: &ArgMatches,
        folder: &Path,
    ) -> anyhow::Result<Observing<'a>> {
        let own_cpu = host::process_cpu();
        let mut session = Session::start(plan.named.clone(), &plan.settings, plan.hint)?;
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
        let options = observing::effective("watch", matches);
        let mut document =
            observing::opening(ObservationBody::Watch(Box::new(results.clone())), options, zero);
        document.missing = missing;
        let writer = ObservationWriter::create(folder, &document)?;
        let served = ServedFile::begin(args.requests, folder, zero, &document.time.started)?;
        let ahead = document.host.monotonic_offset_ns.unwrap_or(0);
        Ok(Observing {
            args,
            session,
            document,
            results,
            writer,
            served,
            _mark: UnderWay::mark(folder),
            zero,
            ahead,
            own_cpu,
            interval: Sums::default(),
            total: Sums::default(),
            digests: DigestSums::default(),
            lost: Losses::default(),
        })
    }

    /// Watches until it is told to stop, its time is over, or the server is gone.
    ///
    /// # Errors
    ///
    /// When the record cannot be written.
    pub fn run(mut self, plan: &Plan, stop: &AtomicBool) -> anyhow::Result<Watched> {
        let subject = &self.results.subject;
        let who = subject.comm.clone().unwrap_or_else(|| "server".to_owned());
        if !self.args.json {
            say(format_args!("watching {who} ({}); Ctrl-C ends it", plan.told));
        }
        let end = self.args.duration.map_or(Nanos::MAX, |duration| self.zero + duration);
        let mut begun = self.zero;
        let mut refreshed = self.zero;
        loop {
            let line_at = begun + self.args.interval;
            clock::sleep_until((clock::now() + DRAIN).min(line_at).min(end));
            self.take()?;
            let now = clock::now();
            let mut over = stop.load(Ordering::Relaxed) || now >= end;
            if now >= refreshed + REFRESH {
                refreshed = now;
                if !self.session.refresh(Nanos(now.0.saturating_add_signed(-self.ahead)))? {
                    self.note_gone(now)?;
                    over = true;
                }
            }
            if now >= line_at || over {
                if over {
                    self.finish_requests()?;
                }
                self.close_interval(begun, now)?;
                begun = now;
            }
            if over {
                return self.end(now, plan);
            }
        }
    }

    fn take(&mut self) -> anyhow::Result<()> {
        let served = self.session.take();
        self.add(served)
    }

    /// What was written last on each connection was its answer.
    fn finish_requests(&mut self) -> anyhow::Result<()> {
        let served = self.session.finish();
        self.add(served)
    }

    fn add(&mut self, served: Vec<record::Served>) -> anyhow::Result<()> {
        for served in served {
            let served = served.later(self.ahead);
            // Nobody asked for what was read before the record began.
            if served.read < self.zero {
                continue;
            }
            self.interval.add(&served);
            self.digests.add(&served);
            self.served.take(served).context("served.parquet is incomplete")?;
        }
        Ok(())
    }

    fn note_gone(&mut self, now: Nanos) -> anyhow::Result<()> {
        let text = "the server has ended".to_owned();
        say(&text);
        let at_ns = (now - self.zero).0;
        Ok(self.writer.event(&Event { at_ns, kind: "server_ended".to_owned(), text, disturbance: None })?)
    }

    fn close_interval(&mut self, begun: Nanos, now: Nanos) -> anyhow::Result<()> {
        let losses = self.losses();
        let name = |class| self.args.class.as_ref().map_or_else(String::new, |arg| arg.name(class));
        let line = self.interval.line(difference(&losses, &self.lost), name);
        let logs = self.interval.logs(name);
        let logs: Vec<(&str, &Durations)> =
            logs.iter().map(|(name, durations)| (name.as_str(), *durations)).collect();
        let length = now - begun;
        self.writer.append(&line, begun - self.zero, length, &logs).context("the record is incomplete")?;
        if !self.args.json && !self.args.led {
            let at = crate::drive::timestamp(clock::wall()).strftime("%Y-%m-%d %H:%M:%S").to_string();
            printed(writeln!(io::stdout(), "{at}   {}", report::watch_line(&line, length)))?;
        }
        self.total.merge(&self.interval);
        self.interval.clear();
        self.lost = losses;
        Ok(())
    }

    /// What was lost so far, by what the record calls it.
    fn losses(&self) -> Losses {
        let kernel = self.session.losses();
        let counts = self.session.counts();
        Losses {
            ring_full: kernel.ring_full,
            map_full: kernel.map_full + self.session.given_up(),
            recursion: kernel.recursion + kernel.missed_switches,
            mid_connection: counts.mid_connection_requests,
            unparsed: counts.unparsed + counts.dropped + kernel.unreadable,
        }
    }

    fn end(mut self, now: Nanos, plan: &Plan) -> anyhow::Result<Watched> {
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
        results.losses = self.lost;
        results.self_cost = cost(&self.session);
        results.self_cpu_ns =
            host::process_cpu().zip(self.own_cpu).map(|(now, before)| now.saturating_sub(before).0);
        results.kept = Some(self.served.finish()?);
        report::summarize_watch(results, &logs);
        self.document.state = State::Finished;
        self.document.time.elapsed_ns = Some((now - self.zero).0);
        self.document.body = ObservationBody::Watch(Box::new(results.clone()));
        self.writer.finish(&self.document).context("the record is incomplete")?;
        Ok(Watched { document: self.document, results: self.results, logs })
    }
}

/// What a watch has seen.
pub struct Watched {
    document: Observation,
    results: WatchResults,
    logs: BTreeMap<String, Durations>,
}

impl Watched {
    /// # Errors
    ///
    /// When nothing can be printed.
    pub fn print(&self, args: &Args, out: &mut dyn Write, style: Style) -> anyhow::Result<()> {
        if args.json {
            return printed(report::json(&self.document, &mut *out));
        }
        let report = WatchReport { document: &self.document, results: &self.results, logs: &self.logs };
        printed(writeln!(out).and_then(|()| report::watch_text(&report, out, style)))?;
        if args.self_cost {
            let elapsed = Nanos(self.document.time.elapsed_ns.unwrap_or(0));
            printed(report::watch_cost(&self.results, elapsed, out, style))?;
        }
        Ok(())
    }
}

fn subject(plan: &Plan, session: &Session) -> WatchSubject {
    let found = session.found();
    WatchSubject {
        named: plan.told.clone(),
        pids: found.processes.iter().copied().take(1_000).collect(),
        ports: found.ports.clone(),
        comm: found.comm.clone(),
        protocols: Vec::new(),
    }
}

fn tier(session: &Session) -> Tier {
    Tier { name: "btf_tracepoints".to_owned(), attached: session.attached() }
}

/// Who took CPUs, one row for each process and name, the most time first.
fn preemptors(session: &Session) -> Vec<Preemptor> {
    let mut rows: BTreeMap<(u32, String), Preemptor> = BTreeMap::new();
    for row in session.culprits() {
        let comm = watch::comm_text(&row.comm);
        let one = rows.entry((row.pid, comm.clone())).or_insert_with(|| Preemptor {
            pid: row.pid,
            comm,
            cgroup: watch::cgroup(row.pid),
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

fn difference(now: &Losses, before: &Losses) -> Losses {
    Losses {
        ring_full: now.ring_full - before.ring_full,
        map_full: now.map_full - before.map_full,
        recursion: now.recursion - before.recursion,
        mid_connection: now.mid_connection - before.mid_connection,
        unparsed: now.unparsed - before.unparsed,
    }
}
