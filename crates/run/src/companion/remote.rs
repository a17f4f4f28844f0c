//! An observer on another host: how it is started over ssh and controlled, and how its record comes here.
//!
//! One connection does it all. The far side first says where it keeps its record; then it answers each line with its
//! clock ([`super::wire`]); when its input ends it closes the record and sends it as an archive.

use std::fs;
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, ensure};
use record::{ClockReading, TwoClocks};
use units::Nanos;

use super::wire;

/// Exchanges of stamps before the run and after it. The quickest of them counts.
const FIRST: usize = 16;

/// And each second in between, when they cost the client.
const BETWEEN: usize = 3;
const EVERY: Duration = Duration::from_secs(1);

/// The observer of `pid` on `host`. What ssh asks a person would never be answered, so it asks nothing; a connection
/// that is dead is given up after 15 s.
pub fn command(host: &str, pid: u32) -> Command {
    let mut command = Command::new("ssh");
    let options = [
        "BatchMode=yes",
        "ConnectTimeout=10",
        "ServerAliveInterval=5",
        "ServerAliveCountMax=3",
        // A connection that others share is used, but none is left behind that would hold our pipes open.
        "ControlMaster=no",
        "RemoteCommand=none",
    ];
    command.arg("-T").args(options.iter().flat_map(|option| ["-o", option]));
    // Within sh, whatever shell the user has there.
    let script = format!(
        "d=$(mktemp -d /tmp/parallax-XXXXXXXXXX) && echo \"$d\" || exit 1; \
         parallax watch --controlled --requests all -p {pid} -o \"$d/server\"; s=$?; \
         if [ ! -e \"$d/server/run.json\" ] || tar -C \"$d/server\" -cf - .; then rm -rf \"$d\"; fi; exit $s"
    );
    command.args(["--", host]).arg(format!("exec sh -c '{script}'"));
    command
}

/// What ended the far side, by how ssh ended and what was stated last.
pub fn failure(host: &str, code: Option<i32>, message: &str) -> String {
    let message = message.trim_start_matches("ssh: ");
    match code {
        Some(255) => format!("ssh {host}: {message}; `ssh {host} true` must work without a prompt"),
        Some(127) => {
            format!(
                "{host} has no `parallax` in the PATH of ssh; install it there, for example in /usr/local/bin"
            )
        }
        _ => format!("on {host}: {message}"),
    }
}

/// The connection to an observer that has begun.
pub struct RemoteLink {
    over: SyncSender<()>,
    thread: thread::JoinHandle<anyhow::Result<()>>,
}

/// What the thread of a link has.
struct Leading {
    /// The end of it ends the observer.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// `HOST:DIR`, where the record lies as long as it is not here.
    there: String,
    readings: Vec<ClockReading>,
}

impl RemoteLink {
    /// Compares the clocks, and goes on to do so until [`RemoteLink::finish`].
    ///
    /// # Errors
    ///
    /// When the far side does not answer.
    pub fn start(
        host: &str,
        input: ChildStdin,
        output: ChildStdout,
        into: PathBuf,
    ) -> anyhow::Result<RemoteLink> {
        let mut output = BufReader::new(output);
        let folder = wire::line(&mut output)?.with_context(|| format!("{host} does not respond"))?;
        let there = format!("{host}:{folder}/server");
        let mut leading = Leading { input: Some(input), output, there, readings: Vec::new() };
        ensure!(leading.compare(FIRST)?, "{host} closed its record before the run");
        let (over, is_over) = sync_channel(1);
        let lead = move || {
            let mut is_open = true;
            while is_open && is_over.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                is_open = leading.compare(BETWEEN)?;
            }
            if is_open {
                is_open = leading.compare(FIRST)?;
            }
            leading.close(is_open)?;
            leading.fetch(&into)
        };
        let thread = thread::Builder::new().name("far".to_owned()).spawn(lead)?;
        Ok(RemoteLink { over, thread })
    }

    /// Ends the observer and brings its record here.
    ///
    /// # Errors
    ///
    /// When the connection was lost, or the record cannot be kept.
    pub fn finish(self) -> anyhow::Result<()> {
        let _ = self.over.try_send(());
        self.thread.join().map_err(|_| anyhow::anyhow!("the thread that leads the observer panicked"))?
    }
}

impl Leading {
    /// Notes the quickest of `times` exchanges. False when the far side has closed its record.
    fn compare(&mut self, times: usize) -> anyhow::Result<bool> {
        let mut best: Option<ClockReading> = None;
        for _ in 0..times {
            let begun = clock::now();
            let asked = self.input.as_mut().is_some_and(|input| input.write_all(b"?\n").is_ok());
            let reported = wire::line(&mut self.output)?;
            let ended = clock::now();
            let reported = reported.with_context(|| {
                format!("the connection was lost; the record is on the other host, at {}", self.there)
            })?;
            if reported == wire::CLOSED {
                return Ok(false);
            }
            let reported = reported.parse().ok().filter(|_| asked).map(Nanos);
            let reported =
                reported.with_context(|| format!("{} did not send its clock reading", self.there))?;
            let reading = ClockReading::of(begun, reported, ended);
            best = [best, reading].into_iter().flatten().min_by_key(ClockReading::error);
        }
        let is_later = |best: &ClockReading| self.readings.last().is_none_or(|last| last.at_ns < best.at_ns);
        self.readings.extend(best.filter(is_later));
        Ok(true)
    }

    fn close(&mut self, is_open: bool) -> anyhow::Result<()> {
        drop(self.input.take());
        let mut is_open = is_open;
        while is_open {
            let reported = wire::line(&mut self.output)?;
            let reported = reported.with_context(|| {
                format!("the connection was lost; the record is on the other host, at {}", self.there)
            })?;
            is_open = reported != wire::CLOSED;
        }
        Ok(())
    }

    /// What is left of the output is the record.
    fn fetch(&mut self, into: &Path) -> anyhow::Result<()> {
        fs::create_dir_all(into).with_context(|| format!("cannot create {}", into.display()))?;
        let mut tar = Command::new("tar")
            .args(["--no-same-owner", "-xf", "-", "-C"])
            .arg(into)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start tar")?;
        if let Some(mut pipe) = tar.stdin.take() {
            // It may end at the archive's end, before the padding: what it says of itself counts.
            let _ = io::copy(&mut self.output, &mut pipe);
        }
        // Read to its end even where nobody takes it: the far side waits for that.
        let drained = io::copy(&mut self.output, &mut io::sink());
        let unpacked = tar.wait().context("cannot wait for tar")?.success();
        let is_here = unpacked && drained.is_ok();
        ensure!(
            is_here,
            "the observer's record was not transferred completely; it is on the other host, at {}",
            self.there
        );
        let clocks = TwoClocks::new(host::Facts::read().boot_id, std::mem::take(&mut self.readings));
        Ok(clocks.write(into)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_over_there_is_told_with_what_to_do() {
        let refused = failure("db1", Some(255), "ssh: connect to host db1 port 22: Connection refused");
        assert_eq!(
            refused,
            "ssh db1: connect to host db1 port 22: Connection refused; `ssh db1 true` must work without a prompt"
        );
        assert!(failure("db1", Some(127), "sh: 1: parallax: not found").contains("/usr/local/bin"));
        assert_eq!(failure("db1", Some(1), "there is no process 7"), "on db1: there is no process 7");
    }
}
