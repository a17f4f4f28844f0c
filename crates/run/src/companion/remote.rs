//! An observer on another host: how it is started over ssh and controlled, and how its record is fetched.
//!
//! All of it uses one connection. The observer first sends the directory of its record; then it replies to each line
//! with its clock ([`super::wire`]); when its input ends it closes the record and sends it as an archive
//! ([`super::archive`]). What it sends is bounded in size and in time, because the host is not trusted.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{ChildStdin, ChildStdout, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, ensure};
use record::{ClockReading, TwoClocks};
use units::Nanos;

use super::patience::Patient;
use super::{archive, wire};

/// Clock exchanges before and after the run. The quickest one is used.
const FIRST: usize = 16;

/// Clock exchanges per second during the run, when they cost the client CPU time.
const BETWEEN: usize = 3;
const EVERY: Duration = Duration::from_secs(1);

/// How long to wait in all for the dialogue before the run, for the readings of a second, and for the dialogue after the
/// run, in which the observer closes its record; longer than it takes for a large one.
const PATIENCE: Nanos = Nanos::from_secs(60);

/// The lowest rate of the archive's transfer in bytes per second, after that time: a slow mobile connection. The
/// largest archive takes at most 5 hours, and Ctrl-C ends it.
const ARCHIVE_RATE: u64 = 256 << 10;

/// The ssh command for an observer of `pid` on `host`. Nobody could reply to a prompt, so ssh runs in batch mode; a
/// dead connection is given up after 15 s.
pub fn command(host: &str, pid: u32) -> Command {
    let mut command = Command::new("ssh");
    let options = [
        "BatchMode=yes",
        "ConnectTimeout=10",
        "ServerAliveInterval=5",
        "ServerAliveCountMax=3",
        // A connection that is already shared is used, but none is left running, because it would keep our pipes open.
        "ControlMaster=no",
        "RemoteCommand=none",
    ];
    command.arg("-T").args(options.iter().flat_map(|option| ["-o", option]));
    // Run by sh, whatever the user's login shell is.
    let script = format!(
        "d=$(mktemp -d /tmp/parallax-XXXXXXXXXX) && echo \"$d\" || exit 1; \
         parallax watch --controlled --requests all -p {pid} -o \"$d/server\"; s=$?; \
         if [ ! -e \"$d/server/run.json\" ] || tar -C \"$d/server\" -cf - .; then rm -rf \"$d\"; fi; exit $s"
    );
    command.args(["--", host]).arg(format!("exec sh -c '{script}'"));
    command
}

/// Why the observer failed, from the exit code of ssh and the last message.
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

impl RemoteLink {
    /// Compares the clocks, and repeats that every second until [`RemoteLink::finish`]. Setting `stop` ends the
    /// dialogue before the run, and the fetching of the record after it.
    ///
    /// # Errors
    ///
    /// When the other host does not respond in time, or `stop` is set.
    pub fn start(
        host: &str,
        (input, output): (ChildStdin, ChildStdout),
        into: PathBuf,
        stop: &Arc<AtomicBool>,
    ) -> anyhow::Result<RemoteLink> {
        let mut output = BufReader::new(Patient::new(output, PATIENCE, Some(Arc::clone(stop))));
        let folder = wire::line(&mut output).with_context(|| format!("the observer on {host}"))?;
        let folder = folder.with_context(|| format!("{host} closed the connection before the run"))?;
        let place = format!("{host}:{}/server", record::escape_text(&folder));
        let mut comparison = Comparison::new(input, output, place.clone());
        ensure!(comparison.compare(FIRST)?, "{host} closed its record before the run");
        let (over, is_over) = sync_channel(1);
        let stop = Arc::clone(stop);
        let control = move || {
            let mut is_open = true;
            while is_open && is_over.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                // What ends the run must not lose the observer's record.
                comparison.output.get_mut().begin(None);
                is_open = comparison.compare(BETWEEN)?;
            }
            // A signal that has ended the run does not end this; the second one ends the process.
            let stop = (!stop.load(Ordering::Relaxed)).then_some(stop);
            comparison.output.get_mut().begin(stop.clone());
            if is_open {
                is_open = comparison.compare(FIRST)?;
            }
            let (readings, mut output) = comparison.close(is_open)?;
            output.get_mut().begin_transfer(ARCHIVE_RATE, stop);
            if let Err(error) = archive::unpack(output, &into) {
                // The incomplete directory could be mistaken for a record.
                let _ = archive::discard(&into);
                return Err(error
                    .context(format!("the observer's record could not be fetched; look for it at {place}")));
            }
            Ok(TwoClocks::new(host::Facts::read().boot_id, readings).write(&into)?)
        };
        let thread = thread::Builder::new().name("far".to_owned()).spawn(control)?;
        Ok(RemoteLink { over, thread })
    }

    /// Ends the observer and fetches its record.
    ///
    /// # Errors
    ///
    /// When the connection was lost, or the record cannot be kept.
    pub fn finish(self) -> anyhow::Result<()> {
        let _ = self.over.try_send(());
        self.thread.join().map_err(|_| anyhow::anyhow!("the thread that controls the observer panicked"))?
    }
}

/// Exchanges of timestamps with an observer on another host, until its record is closed.
pub struct Comparison<I, O> {
    /// Closing it ends the observer.
    input: I,
    output: O,
    /// `HOST:DIR`, where the record remains until it is fetched.
    place: String,
    readings: Vec<ClockReading>,
}

impl<I: Write, O: BufRead> Comparison<I, O> {
    /// For an observer that has sent its directory, `place`.
    pub fn new(input: I, output: O, place: String) -> Comparison<I, O> {
        Comparison { input, output, place, readings: Vec::new() }
    }

    /// Records the quickest of `times` exchanges. Returns false when the observer has closed its record.
    ///
    /// # Errors
    ///
    /// When the connection is lost, or the observer sends anything but a time.
    pub fn compare(&mut self, times: usize) -> anyhow::Result<bool> {
        let mut best: Option<ClockReading> = None;
        for _ in 0..times {
            let begun = clock::now();
            let asked = self.input.write_all(b"?\n").is_ok();
            let line = line(&mut self.output, &self.place)?;
            let ended = clock::now();
            if line == wire::CLOSED {
                return Ok(false);
            }
            let time = line.parse().ok().filter(|_| asked).map(Nanos);
            let time = time.with_context(|| format!("{} did not send its clock reading", self.place))?;
            let reading = ClockReading::of(begun, time, ended);
            best = [best, reading].into_iter().flatten().min_by_key(ClockReading::error);
        }
        let is_later = |best: &ClockReading| self.readings.last().is_none_or(|last| last.at_ns < best.at_ns);
        if self.readings.len() < TwoClocks::MOST {
            self.readings.extend(best.filter(is_later));
        }
        Ok(true)
    }

    /// Ends the observer. Returns the readings, and the output, whose remaining bytes are the record's archive.
    ///
    /// # Errors
    ///
    /// When the connection is lost, or the record is not closed.
    pub fn close(mut self, is_open: bool) -> anyhow::Result<(Vec<ClockReading>, O)> {
        drop(self.input);
        // Every line so far replied to one of ours, so the next one reports that the record is closed.
        let is_closed = !is_open || line(&mut self.output, &self.place)? == wire::CLOSED;
        ensure!(is_closed, "{} does not close its record", self.place);
        Ok((self.readings, self.output))
    }
}

fn line(output: &mut impl BufRead, place: &str) -> anyhow::Result<String> {
    let line = wire::line(output).with_context(|| format!("the observer at {place}"))?;
    line.with_context(|| format!("the connection was lost; the record is on the other host, at {place}"))
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
