//! `--watch` and `--profile`: the server's side of a run, seen by this program on the server's host.
//!
//! The observer is a process of its own, here or over ssh, so that it can be where the server is and its CPU time is
//! not the client's. It writes a record of its own into the run's folder. One that is here is in a process group of
//! its own, so that a Ctrl-C is for the run alone; it ends when the run ends it, or with whoever started it.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::thread;

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use units::Nanos;

/// The records of the observers, within that of the run.
const SERVER: &str = "server";
const PROFILE: &str = "profile";

/// Longer than any host needs to attach.
const PATIENCE: Nanos = Nanos::from_secs(30);

/// Whom to watch, as it is said: `4711`, or `ssh:HOST:4711`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchArg {
    /// As ssh takes it; `None` for this host.
    host: Option<String>,
    pid: u32,
}

impl FromStr for WatchArg {
    type Err = String;

    fn from_str(text: &str) -> Result<WatchArg, String> {
        let form = "is a process id, or ssh:HOST:PID";
        let (host, pid) = match text.strip_prefix("ssh:") {
            None => (None, text),
            Some(rest) => {
                let (host, pid) = rest.rsplit_once(':').ok_or(form)?;
                // What begins with a dash would be an option of ssh.
                if host.is_empty() || host.starts_with('-') {
                    return Err(form.to_owned());
                }
                (Some(host.to_owned()), pid)
            }
        };
        match pid.parse() {
            Ok(pid @ 1..) => Ok(WatchArg { host, pid }),
            _ => Err(form.to_owned()),
        }
    }
}

/// An observer that has begun.
pub struct Beside {
    child: Child,
    folder: PathBuf,
    remote: Option<Remote>,
    /// Reads what it says, so that it never waits for us; its last lines are told where it fails.
    said: Option<thread::JoinHandle<String>>,
}

struct Remote {
    host: String,
    /// Of the record on that host.
    folder: String,
}

impl Beside {
    /// Starts the observer of a run that will be kept in `run`, and waits until it sees requests.
    ///
    /// # Errors
    ///
    /// What the observer says, in one line.
    pub fn start(subject: &WatchArg, run: &Path) -> anyhow::Result<Beside> {
        let folder = run.join(SERVER);
        let (command, remote) = match &subject.host {
            None => (here(&["watch", "--requests", "all"], &[subject.pid], &folder)?, None),
            Some(host) => {
                let remote = Remote { host: host.clone(), folder: remote_folder() };
                (there(&remote, subject.pid), Some(remote))
            }
        };
        Beside::begin(command, remote, folder)
    }

    /// Starts a profile of processes here, and waits until it samples.
    ///
    /// # Errors
    ///
    /// As [`Beside::start`].
    pub fn profile(pids: &[u32], run: &Path) -> anyhow::Result<Beside> {
        let folder = run.join(PROFILE);
        Beside::begin(here(&["profile"], pids, &folder)?, None, folder)
    }

    fn begin(mut command: Command, remote: Option<Remote>, folder: PathBuf) -> anyhow::Result<Beside> {
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().context("cannot start the observer of the server")?;
        let stderr = child.stderr.take().context("the observer's standard error is a pipe")?;
        let (begun, has_begun) = std::sync::mpsc::sync_channel(1);
        let said = thread::spawn(move || listen(stderr, &begun));
        let mut beside = Beside { child, folder, remote, said: Some(said) };
        if !beside.waits_for_begin(&has_begun) {
            let _ = beside.child.kill();
            let said = beside.said();
            bail!(
                "{}",
                if said.is_empty() { "the observer of the server does not begin".to_owned() } else { said }
            );
        }
        Ok(beside)
    }

    /// False when it ended, or says nothing for too long. Here its record tells; from elsewhere, what it says.
    fn waits_for_begin(&mut self, told: &std::sync::mpsc::Receiver<()>) -> bool {
        let (deadline, run) = (clock::now() + PATIENCE, self.folder.join("run.json"));
        while clock::now() < deadline {
            if told.try_recv().is_ok() || self.remote.is_none() && run.exists() {
                return true;
            }
            if !matches!(self.child.try_wait(), Ok(None)) {
                return false;
            }
            clock::sleep_until(clock::now() + Nanos::from_millis(10));
        }
        false
    }

    /// Ends the observer, and says where its record is.
    ///
    /// # Errors
    ///
    /// When it did not end well, or its record cannot be fetched.
    pub fn finish(mut self) -> anyhow::Result<PathBuf> {
        match &self.remote {
            // Over ssh the end of our output is its Ctrl-C.
            Some(_) => drop(self.child.stdin.take()),
            None => {
                kill_process(Pid::from_child(&self.child), Signal::INT).context("cannot end the observer")?
            }
        }
        let status = self.child.wait().context("cannot wait for the observer")?;
        // Some call an end by Ctrl-C an interruption.
        let is_well = status.success() || status.code() == Some(130);
        ensure!(is_well, "the observer of the server failed: {}", self.said());
        if let Some(remote) = &self.remote {
            fetch(remote, &self.folder)?;
        }
        Ok(self.folder.clone())
    }

    /// There was no run: takes the observer's record away, too.
    pub fn abandon(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }

    fn said(&mut self) -> String {
        let _ = self.child.wait();
        self.said.take().and_then(|said| said.join().ok()).unwrap_or_default()
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn here(verb: &[&str], pids: &[u32], folder: &Path) -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    command.args(verb).args(["--beside", &std::process::id().to_string()]);
    command.args(["-p", &pids.join(","), "-o"]).arg(folder).process_group(0);
    Ok(command)
}

/// For the observer, which runs beside the work of `parent`: stops it, in order, when that is gone.
///
/// # Errors
///
/// When the kernel refuses.
#[cfg(feature = "ebpf")]
pub fn stop_with(parent: u32, stop: &std::sync::Arc<std::sync::atomic::AtomicBool>) -> anyhow::Result<()> {
    use rustix::process::{getppid, set_parent_process_death_signal};
    use signal_hook::consts::SIGUSR1;

    // The kernel sends it for each thread of the parent that ends: one that is taken for good the second time, as a
    // Ctrl-C is, would not do.
    let context = "cannot be told of the end of --beside";
    signal_hook::flag::register(SIGUSR1, std::sync::Arc::clone(stop)).context(context)?;
    set_parent_process_death_signal(Some(Signal::USR1)).context(context)?;
    let is_there = getppid().is_some_and(|pid| pid.as_raw_nonzero().get().cast_unsigned() == parent);
    if !is_there {
        // It was gone before this could be asked for.
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    }
    Ok(())
}

/// Runs until its standard input ends: a shell that waits for that, and then interrupts the observer.
fn there(remote: &Remote, pid: u32) -> Command {
    let script = format!(
        "parallax watch --requests all -p {pid} -o {} >/dev/null & child=$!; cat >/dev/null; \
         kill -TERM $child; wait $child",
        remote.folder
    );
    let mut command = Command::new("ssh");
    command.args(["-o", "BatchMode=yes", "--", &remote.host]).arg(script);
    command
}

fn remote_folder() -> String {
    format!("/tmp/parallax-watch-{}-{}", clock::wall().0, std::process::id())
}

/// Brings the record here, and takes it away there.
fn fetch(remote: &Remote, folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let script = format!("tar -C {0} -cf - . && rm -r {0}", remote.folder);
    let mut from = Command::new("ssh")
        .args(["-o", "BatchMode=yes", "--", &remote.host])
        .arg(script)
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start ssh")?;
    let pipe = from.stdout.take().context("the output of ssh is a pipe")?;
    let into = Command::new("tar")
        .args(["--no-same-owner", "-xf", "-", "-C"])
        .arg(folder)
        .stdin(pipe)
        .status()
        .context("cannot start tar")?;
    let sent = from.wait().context("cannot wait for ssh")?;
    ensure!(
        sent.success() && into.success(),
        "the observer's record could not be fetched; it lies at {}:{}",
        remote.host,
        remote.folder
    );
    Ok(())
}

/// Reads to the end; says so when it has begun. What it keeps is the last line.
fn listen(stderr: impl Read, begun: &std::sync::mpsc::SyncSender<()>) -> String {
    let mut last = String::new();
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        let line = line.strip_prefix("parallax: ").unwrap_or(&line);
        if line.starts_with("watching ") {
            let _ = begun.try_send(());
        }
        last = line.chars().take(500).collect();
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whom_to_watch_is_read_or_refused() {
        assert_eq!("4711".parse(), Ok(WatchArg { host: None, pid: 4711 }));
        let there = WatchArg { host: Some("me@db1".to_owned()), pid: 9 };
        assert_eq!("ssh:me@db1:9".parse(), Ok(there));
        for nonsense in
            ["", "0", "-1", "ssh:", "ssh:db1", "ssh::9", "ssh:-oProxyCommand=x:9", "ssh:db1:x", "nginx"]
        {
            assert!(nonsense.parse::<WatchArg>().is_err(), "{nonsense}");
        }
    }
}
