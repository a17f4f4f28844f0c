//! `--watch` and `--profile`: observes the server during a run, with this program on the server's host.
//!
//! The observer is a separate process, local or over ssh, so that it runs where the server runs and its CPU time does
//! not count as the client's. It writes its own record into the run's directory.

pub mod archive;
mod patience;
pub mod remote;
pub mod wire;

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use anyhow::{Context, anyhow, ensure};
use record::RecordDir;
use units::Nanos;

use self::remote::RemoteLink;
use self::wire::Ready;
use crate::spec::Observers;
use crate::values::WatchSubject;

/// Subdirectory of the run's record that contains the observers' records.
const SERVER: &str = "server";
const PROFILE: &str = "profile";

/// How long to wait for an observer to attach; longer than any host needs.
const PATIENCE: Nanos = Nanos::from_secs(30);

/// How long to wait for an observer to exit after its record has arrived.
const END_PATIENCE: Nanos = Nanos::from_secs(15);

/// Maximum bytes kept of each line that an observer prints.
const LONGEST_MESSAGE: u64 = 500;

/// A running observer.
pub struct CompanionObserver {
    child: Child,
    folder: PathBuf,
    control: ObserverControl,
    /// Drains the observer's standard error, so that it never blocks on us; returns its last line, for error messages.
    stderr_text: Option<thread::JoinHandle<String>>,
}

/// How the observer is ended.
enum ObserverControl {
    /// Closing its standard input.
    Local(Option<ChildStdin>),
    Remote {
        host: String,
        /// Present once the observer has begun.
        link: Option<RemoteLink>,
    },
}

impl CompanionObserver {
    /// Starts the observer of a run whose record will be in `run`, and waits until the observer sees requests. Setting
    /// `stop` ends the wait.
    ///
    /// # Errors
    ///
    /// The observer's error message, in one line.
    pub fn start(
        subject: &WatchSubject,
        run: &Path,
        program: Option<&Path>,
        stop: &Arc<AtomicBool>,
    ) -> anyhow::Result<CompanionObserver> {
        let folder = run.join(SERVER);
        match &subject.host {
            None => {
                let (command, _run) =
                    here(program, &["watch", "--requests", "all"], &[subject.pid], &folder)?;
                CompanionObserver::begin(command, None, folder, stop)
            }
            Some(host) => {
                let command = remote::command(host, subject.pid);
                CompanionObserver::begin(command, Some(host.clone()), folder, stop)
            }
        }
    }

    /// Starts a profile of local processes, and waits until it takes samples.
    ///
    /// # Errors
    ///
    /// As [`CompanionObserver::start`].
    pub fn profile(
        pids: &[u32],
        run: &Path,
        program: Option<&Path>,
        stop: &Arc<AtomicBool>,
    ) -> anyhow::Result<CompanionObserver> {
        let folder = run.join(PROFILE);
        let (command, _run) = here(program, &["profile"], pids, &folder)?;
        CompanionObserver::begin(command, None, folder, stop)
    }

    fn begin(
        mut command: Command,
        host: Option<String>,
        folder: PathBuf,
        stop: &Arc<AtomicBool>,
    ) -> anyhow::Result<CompanionObserver> {
        command.stdin(Stdio::piped()).stderr(Stdio::piped());
        command.stdout(if host.is_some() { Stdio::piped() } else { Stdio::null() });
        // A separate process group: Ctrl-C is meant for the run, which ends its observers after its last responses.
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
            observer.wait_for_begin(&has_begun, stop)?;
            return Ok(observer);
        };
        let control = ObserverControl::Remote { host: host.clone(), link: None };
        let mut observer = CompanionObserver { child, folder, control, stderr_text };
        observer.wait_for_begin(&has_begun, stop)?;
        match RemoteLink::start(&host, (stdin, stdout), observer.folder.clone(), stop) {
            Ok(link) => observer.control = ObserverControl::Remote { host, link: Some(link) },
            Err(error) => return Err(error),
        }
        Ok(observer)
    }

    /// Waits until the observer is ready.
    fn wait_for_begin(&mut self, begun: &Receiver<Ready>, stop: &AtomicBool) -> anyhow::Result<()> {
        let deadline = clock::now() + PATIENCE;
        while clock::now() < deadline {
            ensure!(!stop.load(Ordering::Relaxed), "interrupted before the observer was ready");
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

    /// Why the observer did not begin, or did not end well.
    fn failed(&mut self) -> anyhow::Error {
        let ended = self.child.try_wait().ok().flatten();
        let _ = self.child.kill();
        let _ = self.child.wait();
        let message = self.stderr_text.take().and_then(|message| message.join().ok()).unwrap_or_default();
        let message = match ended {
            _ if !message.is_empty() => message,
            Some(ended) => format!("the observer ended without a message ({ended})"),
            None => "the observer does not respond".to_owned(),
        };
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

    /// Ends the observer, and returns the directory of its record.
    ///
    /// # Errors
    ///
    /// When the observer did not end well, or its record cannot be fetched.
    pub fn finish(mut self) -> anyhow::Result<PathBuf> {
        let fetched = match &mut self.control {
            ObserverControl::Local(input) => {
                drop(input.take());
                Ok(())
            }
            ObserverControl::Remote { link, .. } => link.take().map_or(Ok(()), RemoteLink::finish),
        };
        // On an error, dropping the connection closes it: a remote host whose record was not fetched is not waited for.
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

    /// Ends the observer of a run that did not happen, and deletes its record.
    pub fn abandon(self) {
        let folder = self.folder.clone();
        // Ended in the usual way, so that nothing is left on its host.
        let _ = self.finish();
        let _ = archive::discard(&folder);
    }
}

impl Drop for CompanionObserver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The command of an observer on this host, and the directory in which it starts.
fn here(
    program: Option<&Path>,
    verb: &[&str],
    pids: &[u32],
    folder: &Path,
) -> anyhow::Result<(Command, RecordDir)> {
    let mut command =
        Command::new(program.context("cannot find the parallax binary, which is needed to start observers")?);
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    // The directory that this process made, even if another one is at its path by now.
    let (run, name) = archive::place(folder)?;
    command.args(verb).args(["--controlled", "-p", &pids.join(","), "-o"]).arg(name);
    command.current_dir(run.lasting_path());
    Ok((command, run))
}

/// Reads messages to the end, signals when the observer is ready, and returns the last message, without terminal
/// control sequences and cut to [`LONGEST_MESSAGE`] bytes: a remote host may send anything.
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
    /// Starts the observers that `observers` requests, and waits until they see something, or `stop` is set.
    ///
    /// # Errors
    ///
    /// Why one of them cannot be started; in that case none is left running.
    pub fn start(
        observers: &Observers,
        run: &Path,
        program: Option<&Path>,
        stop: &Arc<AtomicBool>,
    ) -> anyhow::Result<Companions> {
        let mut companions = Companions::default();
        if let Some(subject) = &observers.watch {
            companions.server = Some(CompanionObserver::start(&subject.value, run, program, stop)?);
        }
        if let Some(pid) = &observers.profile {
            match CompanionObserver::profile(&[pid.value.0], run, program, stop) {
                Ok(profile) => companions.profile = Some(profile),
                Err(error) => {
                    companions.abandon();
                    return Err(error);
                }
            }
        }
        Ok(companions)
    }

    /// Ends the observers. Returns the record of the server's observer, and that of the profile.
    pub fn finish(self) -> (Option<anyhow::Result<PathBuf>>, Option<anyhow::Result<PathBuf>>) {
        let profile = self.profile.map(CompanionObserver::finish);
        (self.server.map(CompanionObserver::finish), profile)
    }

    /// Ends the observers of a run that did not happen, and deletes their records.
    pub fn abandon(self) {
        self.server.into_iter().chain(self.profile).for_each(CompanionObserver::abandon);
    }
}

#[cfg(test)]
mod tests;
