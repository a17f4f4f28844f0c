//! Sends the figures of a run to others while it goes on: a Prometheus endpoint, OTLP pushes, JSON lines and CSV.
//!
//! Called once per second from the collector's thread, which must not wait: each sink has its own thread. Totals are
//! shared state that a sink reads, rows go through a short queue, and rows that a slow sink misses are counted.

pub(crate) mod endpoint;
mod push;
mod rows;
mod state;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, ensure};
use export::Facts;
use record::document::Document;
use record::{Interval, Second};
use units::Nanos;

use self::rows::RowPlan;
use self::state::{RunStage, State};
use crate::options::or_default;
use crate::values::{Length, Timeout, value};

/// Maximum time for a sink to end after the run: a reader that has stopped reading does not block the program.
const PATIENCE: Duration = Duration::from_secs(6);

/// How often to check for a stop while waiting for the last scrape.
const STOP_EVERY: Duration = Duration::from_millis(50);

impl SinkPlan {
    /// Refuses what can be refused before anything is opened. `json` states that standard output gets the result.
    ///
    /// # Errors
    ///
    /// When two sinks would write to the same place, or a URL is invalid.
    pub fn of(sinks: &crate::spec::Sinks, json: bool) -> anyhow::Result<SinkPlan> {
        let rows = [
            (export::rows::Form::Jsonl, "--jsonl", &sinks.jsonl),
            (export::rows::Form::Csv, "--csv", &sinks.csv),
        ];
        let rows: Vec<RowPlan> = rows
            .into_iter()
            .filter_map(|(form, option, path)| {
                path.as_ref().map(|path| RowPlan { form, option, path: PathBuf::from(path) })
            })
            .collect();
        if let [one, other] = rows.as_slice() {
            ensure!(
                one.path != other.path,
                "--jsonl and --csv both write to {}; use two files",
                one.path.display()
            );
        }
        let first = rows.iter().find(|row| row.is_stdout());
        if let Some(row) = first.filter(|_| json) {
            anyhow::bail!(
                "{} - and --json both write to standard output; give one of them a file",
                row.option
            );
        }
        Ok(SinkPlan {
            prometheus: value(&sinks.prometheus).map(|address| address.0),
            linger: or_default::<Timeout>(&sinks.prometheus_linger, "prometheus-linger").0,
            otlp: sinks.otlp.as_deref().map(push::url).transpose()?,
            otlp_interval: or_default::<Length>(&sinks.otlp_interval, "otlp-interval").0,
            rows,
        })
    }
}

#[cfg(test)]
impl SinkPlan {
    /// A plan with JSON lines to `path` only.
    pub fn rows_to(path: &std::path::Path) -> SinkPlan {
        let jsonl = RowPlan { form: export::rows::Form::Jsonl, option: "--jsonl", path: path.to_owned() };
        SinkPlan { rows: vec![jsonl], ..SinkPlan::default() }
    }
}

/// The sinks of a run.
#[derive(Debug, Clone, Default)]
pub struct SinkPlan {
    prometheus: Option<SocketAddr>,
    /// How long the endpoint waits for a last scrape.
    linger: Option<Nanos>,
    /// The URL including its path.
    otlp: Option<String>,
    otlp_interval: Nanos,
    rows: Vec<RowPlan>,
}

/// All sinks of a run in progress.
pub struct Sinks {
    plan: SinkPlan,
    /// Bound before the run, so that a port in use refuses the run.
    listener: Option<std::net::TcpListener>,
    state: Arc<State>,
    /// What could not be merged into the shared state yet because a sink was reading it.
    pending: Interval,
    rows: Vec<RowQueue>,
    threads: Vec<Running>,
}

struct RowQueue {
    option: &'static str,
    queue: SyncSender<Second>,
    lost: u64,
}

/// A sink's thread.
struct Running {
    name: &'static str,
    /// Receives the thread's final message for the user; closed without one if all went well.
    ended: Receiver<String>,
}

impl Sinks {
    /// Binds, opens and starts everything, before anything is sent.
    ///
    /// # Errors
    ///
    /// One line for what cannot be opened.
    pub fn open(plan: &SinkPlan) -> anyhow::Result<Sinks> {
        let listener = plan.prometheus.map(endpoint::bind).transpose()?;
        let mut sinks = Sinks {
            plan: plan.clone(),
            listener,
            state: Arc::default(),
            pending: Interval::default(),
            rows: Vec::new(),
            threads: Vec::new(),
        };
        for row in &plan.rows {
            let out = rows::open(row)?;
            // 60 rows: enough for a disk that hesitates; beyond that, rows are lost and counted.
            let (queue, taken) = sync_channel(60);
            let (form, option) = (row.form, row.option);
            sinks.rows.push(RowQueue { option, queue, lost: 0 });
            sinks.start(option, move |_| rows::write(form, out, &taken))?;
        }
        if let Some(listener) = sinks.listener.take() {
            sinks.start("--prometheus", move |state| endpoint::serve(listener, state))?;
        }
        if let Some(url) = plan.otlp.clone() {
            let every = Duration::from(plan.otlp_interval);
            sinks.start("--otlp", move |state| push::keep_pushing(&url, every, state))?;
        }
        Ok(sinks)
    }

    fn start(
        &mut self,
        name: &'static str,
        work: impl FnOnce(&Arc<State>) -> Result<(), String> + Send + 'static,
    ) -> anyhow::Result<()> {
        let (say, ended) = sync_channel(1);
        let state = Arc::clone(&self.state);
        thread::Builder::new()
            .name(name.trim_start_matches('-').to_owned())
            .spawn(move || {
                if let Err(words) = work(&state) {
                    let _ = say.send(words);
                }
            })
            .with_context(|| format!("cannot start the thread of {name}"))?;
        self.threads.push(Running { name, ended });
        Ok(())
    }

    /// The run begins.
    pub fn started(&mut self, document: &Document) {
        let started = document.time.started.parse::<jiff::Timestamp>().unwrap_or_default();
        let started_ns = u64::try_from(started.as_nanosecond()).unwrap_or(0);
        self.state.lock().facts = Some(Facts::of(document, started_ns));
    }

    /// An interval is over. Never waits for a sink.
    pub fn interval(&mut self, interval: &Interval, second: &Second) {
        for row in &mut self.rows {
            if row.queue.try_send(second.clone()).is_err() {
                row.lost += 1;
            }
        }
        if self.plan.prometheus.is_none() && self.plan.otlp.is_none() {
            return;
        }
        self.pending.merge(interval);
        let Ok(mut run) = self.state.run.try_lock() else { return };
        run.total.merge(&self.pending);
        run.last = Some(second.clone());
        run.at = interval.start + interval.length;
        self.pending.clear();
    }

    /// The run is over: lets the sinks write what they have, and returns what could not be delivered. Waiting ends
    /// early when `is_stopped` is true.
    pub fn finish(&mut self, is_stopped: &dyn Fn() -> bool, notice: &dyn Fn(&str)) -> Vec<String> {
        {
            let mut run = self.state.lock();
            run.total.merge(&self.pending);
        }
        self.state.reach(RunStage::Ended);
        let mut warnings = Vec::new();
        // Dropping its queue ends the thread that writes rows.
        for row in self.rows.drain(..).filter(|row| row.lost > 0) {
            warnings
                .push(format!("{}: {} rows were lost because it was not read in time", row.option, row.lost));
        }
        self.linger(is_stopped, notice);
        self.state.close();
        for thread in self.threads.drain(..) {
            match thread.ended.recv_timeout(PATIENCE) {
                Ok(words) => warnings.push(format!("{}: {words}", thread.name)),
                Err(RecvTimeoutError::Disconnected) => {}
                Err(RecvTimeoutError::Timeout) => {
                    warnings
                        .push(format!("{}: did not end in time; its last lines may be missing", thread.name));
                }
            }
        }
        warnings
    }

    /// Keeps the last totals available for a scrape.
    fn linger(&self, is_stopped: &dyn Fn() -> bool, notice: &dyn Fn(&str)) {
        let (Some(address), Some(linger)) = (self.plan.prometheus, self.plan.linger) else { return };
        if is_stopped() {
            return;
        }
        notice(&format!(
            "waiting up to {linger} for a last scrape of http://{address}/metrics; Ctrl-C ends it"
        ));
        let end = clock::now() + linger;
        while clock::now() < end && !is_stopped() && !self.state.is_over_within(STOP_EVERY) {}
    }
}

#[cfg(test)]
mod tests;
