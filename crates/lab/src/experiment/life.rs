//! The life of one run: start the server, ready, version, check, proof, observers, load, check again, stop.
//!
//! Whatever happens to the server or the load makes a failed run with its cause; nothing of it survives the run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use units::Nanos;

use super::documents::{CpuSets, Failure, LoadUsage, Step};
use super::load::{LoadCommand, load_commands};
use super::order::PlannedRun;
use super::probe::{authority, get, listens, misfit, of_tree};
use super::spec::{Experiment, LoadSpec, ProbeSpec, ReadySpec, ServerSpec};
use super::template::{Template, with_name};
use crate::command::TrialCommand;
use crate::keep::{CpuSplit, Keeper, Role, Running, Wait};
use crate::supervise::Ended;
use crate::tree::{TreeMemory, below, memory};

/// What all runs of an experiment share.
pub(super) struct Bench<'a> {
    pub experiment: &'a Experiment,
    /// Where commands run.
    pub directory: &'a Path,
    /// The directory of the experiment, as text.
    pub results: &'a str,
    /// The program that runs for a line that begins with `parallax`.
    pub program: &'a Path,
    pub stop: &'a AtomicBool,
    pub cpus: Option<&'a CpuSplit>,
}

/// Why a run did not come to its end.
pub(super) enum Broken {
    /// The server or the load did something wrong: the run is part of the experiment, without figures.
    Failed(Failure),
    /// The user ended the experiment.
    Interrupted,
    /// This program could not do its part.
    Lab(anyhow::Error),
}

impl From<anyhow::Error> for Broken {
    fn from(error: anyhow::Error) -> Broken {
        Broken::Lab(error)
    }
}

fn failed(step: &str, cause: impl Into<String>) -> Broken {
    Broken::Failed(Failure { step: step.to_owned(), cause: cause.into() })
}

/// What is known of a run at its end.
#[derive(Default)]
pub(super) struct Life {
    pub steps: Vec<Step>,
    pub version: Option<String>,
    pub commands: BTreeMap<String, String>,
    pub load: Option<LoadUsage>,
    pub server_cpu: Option<Nanos>,
    /// In bytes.
    pub server_memory: Option<u64>,
}

/// A run that is under way.
pub(super) struct LiveRun<'a> {
    bench: &'a Bench<'a>,
    keeper: &'a Keeper,
    folder: PathBuf,
    values: Vec<(String, String)>,
    block: usize,
    pub life: Life,
}

impl<'a> LiveRun<'a> {
    pub(super) fn new(
        bench: &'a Bench<'a>,
        keeper: &'a Keeper,
        run: &PlannedRun,
        folder: &Path,
    ) -> anyhow::Result<LiveRun<'a>> {
        let values = bench.experiment.values(&run.levels);
        let text = folder.to_str().context("the directory of the experiment is not UTF-8")?;
        let (folder, life) = (folder.to_owned(), Life::default());
        let mut live = LiveRun { bench, keeper, folder, values, block: run.block, life };
        live.know("results", bench.results);
        live.know("port", &free_port()?.to_string());
        live.know("run", text);
        live.know("block", &run.block.to_string());
        Ok(live)
    }

    /// Fills in a name from now on, also in the values of factors.
    fn know(&mut self, name: &str, value: &str) {
        for (_, known) in &mut self.values {
            *known = with_name(known, name, value);
        }
        self.values.push((name.to_owned(), value.to_owned()));
    }

    /// Carries it out. What it started is left for the keeper to end.
    pub(super) fn carry_out(&mut self) -> Result<(), Broken> {
        let bench = self.bench;
        let Some(spec) = &bench.experiment.server else { return self.loaded(&bench.experiment.load, None) };
        let mut server = self.step("start", |run| run.start(spec))?;
        self.know("pid", &server.pid().to_string());
        self.step("ready", |run| run.ready(spec, &mut server))?;
        if let Some(version) = &spec.version {
            self.life.version = Some(self.step("version", |run| run.version(version))?);
        }
        for (name, probe) in [("check", &spec.check), ("proof", &spec.proof)] {
            if let Some(probe) = probe {
                self.step(name, |run| run.probe(name, probe, &server))?;
            }
        }
        let cpu = self.keeper.cpu(Role::Server);
        self.loaded(&bench.experiment.load, Some(&mut server))?;
        let used = cpu.zip(self.keeper.cpu(Role::Server));
        self.life.server_cpu = used.map(|(before, after)| after.saturating_sub(before));
        self.life.server_memory = Some(memory(&tree(server.pid())).resident).filter(|bytes| *bytes > 0);
        if let Some(probe) = &spec.check {
            self.step("check after", |run| run.probe("check after", probe, &server))?;
        }
        self.step("stop", |run| run.stop(spec, &mut server))
    }

    /// A part with its time; a stop of the user is looked at before it.
    fn step<T>(
        &mut self,
        name: &str,
        part: impl FnOnce(&mut Self) -> Result<T, Broken>,
    ) -> Result<T, Broken> {
        if self.bench.stop.load(Ordering::Relaxed) {
            return Err(Broken::Interrupted);
        }
        let began = clock::now();
        let result = part(self);
        self.life.steps.push(Step { name: name.to_owned(), ns: clock::now().saturating_sub(began).0 });
        result
    }

    fn filled(&self, template: &Template) -> String {
        template.filled(&self.values)
    }

    /// A URL; one that begins with a slash belongs to the address of the server.
    fn url(&self, template: &Template) -> String {
        let text = self.filled(template);
        let base = self.bench.experiment.server.as_ref().and_then(|server| server.url.as_ref());
        match base.filter(|_| text.starts_with('/')) {
            Some(base) => format!("{}{text}", self.filled(base).trim_end_matches('/')),
            None => text,
        }
    }

    fn log(&self, name: &str) -> anyhow::Result<File> {
        let path = self.folder.join(format!("{name}.log"));
        File::options()
            .create(true)
            .append(true)
            .open(&path)
            .with_context(|| format!("cannot write `{}`", path.display()))
    }

    fn start(&mut self, spec: &ServerSpec) -> Result<Running, Broken> {
        if let Some(place) = self.place(spec).filter(|place| listens(place)) {
            return Err(failed("start", format!("{place} is in use before the server was started")));
        }
        let command = TrialCommand::new(&self.filled(&spec.start)).map_err(|what| failed("start", what))?;
        self.life.commands.insert("server".to_owned(), command.text());
        let mut started = command.command(self.bench.program, &[]);
        started.current_dir(self.bench.directory);
        started.envs(spec.env.iter().map(|(name, value)| (name, self.filled(value))));
        let cpus = self.bench.cpus.map(|cpus| cpus.server.as_slice());
        let log = self.log("server")?;
        self.keeper
            .spawn(Role::Server, started, cpus, &log)
            .map_err(|error| failed("start", format!("{error:#}")))
    }

    /// Where the server will listen, as far as the experiment says.
    fn place(&self, spec: &ServerSpec) -> Option<String> {
        match &spec.ready.as_ref()?.0 {
            ReadySpec::Http(url) => authority(&self.url(url)).map(str::to_owned),
            ReadySpec::Tcp(place) => Some(self.filled(place)),
            ReadySpec::Log(_) | ReadySpec::Command(_) => None,
        }
    }

    fn ready(&mut self, spec: &ServerSpec, server: &mut Running) -> Result<(), Broken> {
        let Some((ready, within)) = &spec.ready else { return self.alive("ready", server) };
        let deadline = server.started + *within;
        loop {
            self.alive("ready", server)?;
            let why = self.not_ready(ready, deadline.saturating_sub(clock::now()));
            let Some(why) = why? else { return Ok(()) };
            if clock::now() >= deadline {
                return Err(failed("ready", format!("not ready after {within}: {why}")));
            }
            if self.bench.stop.load(Ordering::Relaxed) {
                return Err(Broken::Interrupted);
            }
            clock::sleep_until(clock::now() + READY_AGAIN);
        }
    }

    /// Why it is not ready; `None` if it is.
    fn not_ready(&mut self, ready: &ReadySpec, left: Nanos) -> Result<Option<String>, Broken> {
        let once = left.clamp(Nanos::from_millis(100), READY_ONCE);
        Ok(match ready {
            ReadySpec::Http(url) => match get(&self.url(url), once) {
                Ok(response) if response.status < 400 => None,
                Ok(response) => Some(format!("status {}", response.status)),
                Err(why) => Some(why),
            },
            ReadySpec::Tcp(place) => {
                let place = self.filled(place);
                (!listens(&place)).then(|| format!("nothing listens on {place}"))
            }
            ReadySpec::Log(text) => {
                let text = self.filled(text);
                let log = fs::read(self.folder.join("server.log")).unwrap_or_default();
                let has = String::from_utf8_lossy(&log).contains(&text);
                (!has).then(|| format!("server.log does not contain `{text}`"))
            }
            ReadySpec::Command(command) => self.aside("ready", command, once)?.err(),
        })
    }

    /// A failed run if the server has ended.
    fn alive(&self, step: &str, server: &mut Running) -> Result<(), Broken> {
        let ended = server.ended_within(Nanos::ZERO).context("cannot wait for the server")?;
        ended.map_or(Ok(()), |ended| Err(failed(step, self.server_ended(&ended))))
    }

    fn server_ended(&self, ended: &Ended) -> String {
        format!("the server {}", with_log(ended, &self.folder.join("server.log")))
    }

    /// Runs a command next to the server: its output if it succeeds, or why not.
    fn aside(
        &mut self,
        step: &str,
        command: &Template,
        within: Nanos,
    ) -> Result<Result<String, String>, Broken> {
        self.aside_while(step, (command, within), || {})
    }

    /// The same, with something to do again and again until it ends.
    fn aside_while(
        &mut self,
        step: &str,
        (command, within): (&Template, Nanos),
        mut look: impl FnMut(),
    ) -> Result<Result<String, String>, Broken> {
        let text = self.filled(command);
        let command = TrialCommand::new(&text).map_err(|what| failed(step, what))?;
        let name = step.replace(' ', "-");
        let path = self.folder.join(format!("{name}.log"));
        let _ = fs::remove_file(&path);
        let log = self.log(&name)?;
        let mut started = command.by_shell(self.bench.program, &[]);
        started.current_dir(self.bench.directory);
        let running = self.keeper.spawn(Role::Load, started, None, &log);
        let mut running = running.map_err(|error| failed(step, format!("{error:#}")))?;
        let waited = running.wait(within, self.bench.stop, None, |_| look());
        let waited = waited.context("cannot wait for a command")?;
        match waited {
            Wait::Ended(Ended::Exited(0)) => Ok(Ok(fs::read_to_string(&path).unwrap_or_default())),
            Wait::Ended(Ended::Interrupted) => Err(Broken::Interrupted),
            Wait::Ended(ended) | Wait::OtherEnded(ended) => {
                Ok(Err(format!("`{}` {}", command.text(), with_log(&ended, &path))))
            }
        }
    }

    /// The first line that the command prints.
    fn version(&mut self, command: &Template) -> Result<String, Broken> {
        let output = self.aside("version", command, PROBE_ASIDE)?.map_err(|why| failed("version", why))?;
        let line = output.lines().map(str::trim).find(|line| !line.is_empty());
        line.map(str::to_owned).ok_or_else(|| failed("version", "the command prints no version"))
    }

    fn probe(&mut self, step: &str, probe: &ProbeSpec, server: &Running) -> Result<(), Broken> {
        let text = |template: &Option<Template>| template.as_ref().map(|template| self.filled(template));
        let (contains, json) = (text(&probe.contains), text(&probe.json));
        if let Some(url) = probe.http.as_ref().map(|url| self.url(url)) {
            let response = get(&url, probe.within).map_err(|why| failed(step, why))?;
            if let Some(why) = misfit(&response, probe.status, contains.as_deref(), json.as_deref()) {
                return Err(failed(step, format!("GET {url}: {why}")));
            }
        }
        let tree = || tree(server.pid()).into_iter().collect::<Vec<_>>();
        for (needle, file, what) in [
            (text(&probe.maps_contains), "maps", "memory map"),
            (text(&probe.command_line_contains), "cmdline", "command line"),
        ] {
            if let Some(needle) = needle.filter(|needle| !of_tree(&tree(), file).contains(needle)) {
                return Err(failed(step, format!("the {what} of the server does not contain `{needle}`")));
            }
        }
        let Some(command) = &probe.command else { return Ok(()) };
        let output = self.aside(step, command, probe.within)?.map_err(|why| failed(step, why))?;
        match contains.filter(|text| probe.http.is_none() && !output.contains(text)) {
            Some(text) => Err(failed(step, format!("the command does not print `{text}`"))),
            None => Ok(()),
        }
    }

    /// The load with its observers.
    fn loaded(&mut self, spec: &LoadSpec, server: Option<&mut Running>) -> Result<(), Broken> {
        let mut observers = self.observers()?;
        let done = self.load(spec, server);
        for observer in &mut observers {
            observer.end(OBSERVER_GRACE).context("cannot end an observer")?;
        }
        done
    }

    fn observers(&mut self) -> Result<Vec<Running>, Broken> {
        let start = |(name, command): &(String, Template)| {
            let command = TrialCommand::new(&self.filled(command)).map_err(|what| failed("observe", what))?;
            let mut started = command.command(self.bench.program, &[]);
            started.current_dir(self.bench.directory);
            let log = self.log(&format!("observe-{name}"))?;
            let running = self.keeper.spawn(Role::Load, started, None, &log);
            running.map_err(|error| failed("observe", format!("{error:#}")))
        };
        self.bench.experiment.observers.iter().map(start).collect()
    }

    fn load(&mut self, spec: &LoadSpec, mut server: Option<&mut Running>) -> Result<(), Broken> {
        let pid = server.as_deref().filter(|_| self.bench.experiment.measures_server).map(Running::pid);
        for part in load_commands(spec, &self.values, self.block, &self.folder, pid) {
            let server = server.as_deref_mut();
            self.step(part.step, |run| run.part(spec, &part, server))?;
        }
        self.imported(spec)
    }

    fn part(
        &mut self,
        spec: &LoadSpec,
        part: &LoadCommand,
        server: Option<&mut Running>,
    ) -> Result<(), Broken> {
        let step = part.step;
        let command = TrialCommand::new(&part.text).map_err(|what| failed(step, what))?;
        if part.is_measured {
            self.life.commands.insert("load".to_owned(), command.text());
        }
        let mut started = command.command(self.bench.program, &part.words());
        started.current_dir(self.bench.directory);
        let log = self.log(step)?;
        let cpus = self.bench.cpus.map(|cpus| cpus.load.as_slice());
        let used = host::children_cpu();
        let running = self.keeper.spawn(Role::Load, started, cpus, &log);
        let mut running = running.map_err(|error| failed(step, format!("{error:#}")))?;
        let mut peak = TreeMemory::default();
        let look = |pid| peak = peak.or(memory(&tree(pid)));
        let waited = running.wait(spec.within, self.bench.stop, server, look);
        let wall = clock::now().saturating_sub(running.started);
        match waited.context("cannot wait for the load")? {
            Wait::Ended(Ended::Interrupted) => return Err(Broken::Interrupted),
            Wait::OtherEnded(ended) => return Err(failed(step, self.server_ended(&ended))),
            Wait::Ended(ended) if !is_end_of_load(spec, &ended) => {
                let log = self.folder.join(format!("{step}.log"));
                return Err(failed(step, format!("the load {}", with_log(&ended, &log))));
            }
            Wait::Ended(_) => {}
        }
        if part.is_measured {
            let cpu = used.zip(host::children_cpu()).map(|(before, after)| after.saturating_sub(before));
            let bytes = peak.resident.max(peak.highest);
            self.life.load = Some(LoadUsage {
                wall_ns: wall.0,
                cpu_ns: cpu.map(|cpu| cpu.0),
                peak_memory_bytes: (bytes > 0).then_some(bytes),
            });
        }
        Ok(())
    }

    /// Makes a record of what a foreign load printed.
    fn imported(&mut self, spec: &LoadSpec) -> Result<(), Broken> {
        let Some(tool) = spec.tool() else { return Ok(()) };
        let mut command = std::process::Command::new(self.bench.program);
        command.arg("import").arg(self.folder.join("load.log")).args(["--from", tool, "-o"]);
        command.arg(self.folder.join("record")).current_dir(self.bench.directory);
        let log = self.log("import")?;
        let running = self.keeper.spawn(Role::Load, command, None, &log);
        let mut running = running.map_err(|error| failed("import", format!("{error:#}")))?;
        let waited = running.wait(PROBE_ASIDE, self.bench.stop, None, |_| {}).context("cannot wait")?;
        match waited {
            Wait::Ended(Ended::Exited(0)) => Ok(()),
            Wait::Ended(Ended::Interrupted) => Err(Broken::Interrupted),
            Wait::Ended(ended) | Wait::OtherEnded(ended) => {
                let why = with_log(&ended, &self.folder.join("import.log"));
                Err(failed("import", format!("the output of the load is not that of {tool}: import {why}")))
            }
        }
    }

    fn stop(&mut self, spec: &ServerSpec, server: &mut Running) -> Result<(), Broken> {
        let within = spec.stop_within;
        match &spec.stop {
            Some(command) => {
                // What it does not end is killed. A command that waits for the process would wait for a zombie.
                let reap = || drop(server.ended_within(Nanos::ZERO));
                let _ = self.aside_while("stop", (command, within), reap)?;
                server.kill_after(within).context("cannot wait for the server")?;
            }
            None => server.end(within).context("cannot end the server")?,
        }
        Ok(())
    }
}

/// A process and those below it.
fn tree(pid: u32) -> BTreeSet<u32> {
    below(pid).into_iter().chain([pid]).collect()
}

/// How often it is tried whether a server is ready.
const READY_AGAIN: Nanos = Nanos::from_millis(20);

/// The longest that one try may take.
const READY_ONCE: Nanos = Nanos::from_secs(2);

/// The longest time of a command that gives a version, or an import.
const PROBE_ASIDE: Nanos = Nanos::from_secs(60);

/// Observers write their last lines in this time.
const OBSERVER_GRACE: Nanos = Nanos::from_secs(2);

/// `drive` made its record if it exits as for: done, a condition missed, invalid. Other programs exit with 0.
fn is_end_of_load(spec: &LoadSpec, ended: &Ended) -> bool {
    match ended {
        Ended::Exited(0) => true,
        Ended::Exited(2 | 3) => spec.is_drive(),
        _ => false,
    }
}

/// `exited with status 1: its last line`
pub(super) fn with_log(ended: &Ended, log: &Path) -> String {
    let ended = match ended {
        Ended::Exited(code) => format!("exited with status {code}"),
        Ended::Signaled(signal) => format!("was ended by signal {signal}"),
        Ended::TimedOut(longest) => format!("took longer than {longest}"),
        Ended::Interrupted => "was interrupted".to_owned(),
    };
    let text = fs::read(log).unwrap_or_default();
    let tail = String::from_utf8_lossy(&text[text.len().saturating_sub(LOG_TAIL)..]).into_owned();
    match tail.lines().rev().map(str::trim).find(|line| !line.is_empty()) {
        Some(line) => format!("{ended}: {line}"),
        None => ended,
    }
}

/// The part of a log in which its last line is looked for.
const LOG_TAIL: usize = 4096;

/// A port that nobody has: the kernel gives one out, and it is free again at once.
fn free_port() -> anyhow::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("no port is free")?;
    Ok(listener.local_addr().context("no port is free")?.port())
}

impl From<&CpuSplit> for CpuSets {
    fn from(split: &CpuSplit) -> CpuSets {
        CpuSets { server: split.server.clone(), load: split.load.clone() }
    }
}
