//! `--watch` and `--profile`: the server's side of a run, seen by this program on the server's host.
//!
//! The observer is a process of its own, here or over ssh, so that it can be where the server is and its CPU time is
//! not the client's. It writes a record of its own into the run's folder.

pub mod archive;
mod patience;
pub mod remote;
pub mod wire;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use anyhow::{Context, anyhow, ensure};
use units::Nanos;

use self::remote::RemoteLink;
use self::wire::Ready;
use crate::spec::Observers;
use crate::values::WatchSubject;

/// The records of the observers, within that of the run.
const SERVER: &str = "server";
const PROFILE: &str = "profile";

/// Longer than any host needs to attach.
const PATIENCE: Nanos = Nanos::from_secs(30);

/// After its record has come.
const END_PATIENCE: Nanos = Nanos::from_secs(15);

/// Of what an observer prints, the beginning of each line.
const LONGEST_MESSAGE: u64 = 500;

/// An observer that has begun.
pub struct CompanionObserver {
    child: Child,
    folder: PathBuf,
    control: ObserverControl,
    /// Reads what it says, so that it never waits for us; its last line is reported where it fails.
    stderr_text: Option<thread::JoinHandle<String>>,
}

/// By what it is ended.
enum ObserverControl {
    /// The end of its input.
    Local(Option<ChildStdin>),
    Remote {
        host: String,
        /// From its begin on.
        link: Option<RemoteLink>,
    },
}

impl CompanionObserver {
    /// Starts the observer of a run that will be kept in `run`, and waits until it sees requests.
    ///
    /// # Errors
    ///
    /// What the observer says, in one line.
    pub fn start(
        subject: &WatchSubject,
        run: &Path,
        program: Option<&Path>,
    ) -> anyhow::Result<CompanionObserver> {
        let folder = run.join(SERVER);
        match &subject.host {
            None => CompanionObserver::begin(
                here(program, &["watch", "--requests", "all"], &[subject.pid], &folder)?,
                None,
                folder,
            ),
            Some(host) => {
                CompanionObserver::begin(remote::command(host, subject.pid), Some(host.clone()), folder)
            }
        }
    }

    /// Starts a profile of processes here, and waits until it samples.
    ///
    /// # Errors
    ///
    /// As [`CompanionObserver::start`].
    pub fn profile(pids: &[u32], run: &Path, program: Option<&Path>) -> anyhow::Result<CompanionObserver> {
        let folder = run.join(PROFILE);
        CompanionObserver::begin(here(program, &["profile"], pids, &folder)?, None, folder)
    }

    fn begin(
        mut command: Command,
        host: Option<String>,
        folder: PathBuf,
    ) -> anyhow::Result<CompanionObserver> {
        command.stdin(Stdio::piped()).stderr(Stdio::piped());
        command.stdout(if host.is_some() { Stdio::piped() } else { Stdio::null() });
        // A group of its own: a Ctrl-C is meant for the run, which ends its observers when it has its last answers.
        command.process_group(0);
        let program = command.get_program().to_string_lossy().into_owned();
        let mut child = command.spawn().with_context(|| format!("cannot start {program}"))?;
        let stderr = child.stderr.take().context("the observer's standard error is a pipe")?;
        let stdin = child.stdin.take().context("the observer's standard input is a pipe")?;
        let (begun, has_begun) = sync_channel(1);
        let stderr_text = Some(thread::spawn(move || listen(stderr, &begun)));
        let stdout = child.stdout.take();
        let Some((host, stdout)) = host.zip(stdout) else {
            let mut observer = CompanionObserver {
                child,
                folder,
                control: ObserverControl::Local(Some(stdin)),
                stderr_text,
            };
            observer.wait_for_begin(&has_begun)?;
            return Ok(observer);
        };
        let control = ObserverControl::Remote { host: host.clone(), link: None };
        let mut observer = CompanionObserver { child, folder, control, stderr_text };
        observer.wait_for_begin(&has_begun)?;
        match RemoteLink::start(&host, stdin, stdout, observer.folder.clone()) {
            Ok(link) => observer.control = ObserverControl::Remote { host, link: Some(link) },
            Err(error) => return Err(error),
        }
        Ok(observer)
    }

    /// Waits until the observer is ready.
    fn wait_for_begin(&mut self, begun: &Receiver<Ready>) -> anyhow::Result<()> {
        let deadline = clock::now() + PATIENCE;
        while clock::now() < deadline {
            if let Ok(ready) = begun.try_recv() {
                return self.check_version(&ready);
            }
            if !matches!(self.child.try_wait(), Ok(None)) {
                break;
            }
            clock::sleep_until(clock::now() + Nanos::from_millis(10));
        }
        Err(self.failed())
    }

    fn check_version(&self, ready: &Ready) -> anyhow::Result<()> {
        let ours = env!("CARGO_PKG_VERSION");
        let host = match &self.control {
            ObserverControl::Local(_) => "this host",
            ObserverControl::Remote { host, .. } => host,
        };
        ensure!(
            ready.version == ours,
            "{host} has version {} of parallax, and this is {ours}; install this one there",
            ready.version.escape_default()
        );
        Ok(())
    }

    /// Why it does not begin, or did not end well.
    fn failed(&mut self) -> anyhow::Error {
        let ended = self.child.try_wait().ok().flatten();
        let _ = self.child.kill();
        let _ = self.child.wait();
        let message = self.stderr_text.take().and_then(|message| message.join().ok()).unwrap_or_default();
        let message = if message.is_empty() { "the observer does not respond".to_owned() } else { message };
        match (&self.control, ended) {
            (ObserverControl::Local(_), _) => anyhow!("{message}"),
            (ObserverControl::Remote { host, .. }, Some(ended)) => {
                anyhow!("{}", remote::failure(host, ended.code(), &message))
            }
            (ObserverControl::Remote { host, .. }, None) => {
                anyhow!("on {host}: the observer did not start: {message}")
            }
        }
    }

    /// Ends the observer, and says where its record is.
    ///
    /// # Errors
    ///
    /// When it did not end well, or its record cannot be fetched.
    pub fn finish(mut self) -> anyhow::Result<PathBuf> {
        let fetched = match &mut self.control {
            ObserverControl::Local(input) => {
                drop(input.take());
                Ok(())
            }
            ObserverControl::Remote { link, .. } => link.take().map_or(Ok(()), RemoteLink::finish),
        };
        // Its connection is closed when it is dropped: a far side whose record was not taken is not waited for.
        fetched?;
        let is_here = matches!(self.control, ObserverControl::Local(_));
        let status = if is_here { self.child.wait().map(Some) } else { self.ends_soon() };
        match status.context("cannot wait for the observer")? {
            Some(status) if status.success() => Ok(self.folder.clone()),
            _ => Err(self.failed()),
        }
    }

    fn ends_soon(&mut self) -> std::io::Result<Option<ExitStatus>> {
        let deadline = clock::now() + END_PATIENCE;
        loop {
            let ended = self.child.try_wait()?;
            if ended.is_some() || clock::now() >= deadline {
                return Ok(ended);
            }
            clock::sleep_until(clock::now() + Nanos::from_millis(10));
        }
    }

    /// There was no run: takes the observer's record away, too.
    pub fn abandon(self) {
        let folder = self.folder.clone();
        // Ended as ever, so that nothing is left on its host.
        let _ = self.finish();
        let _ = fs::remove_dir_all(folder);
    }
}

impl Drop for CompanionObserver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn here(program: Option<&Path>, verb: &[&str], pids: &[u32], folder: &Path) -> anyhow::Result<Command> {
    let mut command =
        Command::new(program.context("cannot find the parallax binary, which is needed to start observers")?);
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    command.args(verb).args(["--controlled", "-p", &pids.join(","), "-o"]).arg(folder);
    Ok(command)
}

/// Reads messages to the end, passes on that the observer is ready, and returns the last message: without what a
/// terminal would obey, and no more than [`LONGEST_MESSAGE`] of it, for a far side may send anything.
fn listen(stderr: impl Read, begun: &SyncSender<Ready>) -> String {
    let (mut stderr, mut last) = (BufReader::new(stderr), String::new());
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = stderr.by_ref().take(LONGEST_MESSAGE).read_until(b'\n', &mut line);
        if !read.is_ok_and(|bytes| bytes > 0) {
            return last;
        }
        let is_whole = line.ends_with(b"\n");
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end();
        match Ready::read(text) {
            Some(ready) => drop(begun.try_send(ready)),
            None => last = record::escape_text(text.strip_prefix("parallax: ").unwrap_or(text)),
        }
        if !is_whole && stderr.skip_until(b'\n').is_err() {
            return last;
        }
    }
}

/// The observers of one run.
#[derive(Default)]
pub struct Companions {
    server: Option<CompanionObserver>,
    profile: Option<CompanionObserver>,
}

impl Companions {
    /// Starts those that `observers` ask for, and waits until they see something.
    ///
    /// # Errors
    ///
    /// Why one of them cannot be started; then none is left running.
    pub fn start(observers: &Observers, run: &Path, program: Option<&Path>) -> anyhow::Result<Companions> {
        let mut companions = Companions::default();
        if let Some(subject) = &observers.watch {
            companions.server = Some(CompanionObserver::start(&subject.value, run, program)?);
        }
        if let Some(pid) = &observers.profile {
            match CompanionObserver::profile(&[pid.value.0], run, program) {
                Ok(profile) => companions.profile = Some(profile),
                Err(error) => {
                    companions.abandon();
                    return Err(error);
                }
            }
        }
        Ok(companions)
    }

    /// Ends them: the record of the server's observer, and that of the profile.
    pub fn finish(self) -> (Option<anyhow::Result<PathBuf>>, Option<anyhow::Result<PathBuf>>) {
        let profile = self.profile.map(CompanionObserver::finish);
        (self.server.map(CompanionObserver::finish), profile)
    }

    /// There was no run: takes their records away.
    pub fn abandon(self) {
        self.server.into_iter().chain(self.profile).for_each(CompanionObserver::abandon);
    }
}

#[cfg(test)]
mod tests;
