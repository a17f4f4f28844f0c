//! A server on a leash: however the test ends, its whole process group is killed.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use units::Nanos;

use crate::wait;

/// A process group that is killed when this value is dropped. It also ends with the test program, even if that is
/// killed: its shell then reads the end of its input.
pub struct Leash {
    shell: Child,
    log: PathBuf,
}

/// Runs the command in the background, and kills the group when the command ends or the shell's input is closed.
const SHELL: &str = r#"( "$@"; kill -KILL 0 ) & read -r _; kill -KILL 0"#;

/// Servers start within a second; a busy machine may need longer.
const START: Nanos = Nanos::from_secs(30);

impl Leash {
    /// Starts `command`, with its output in the file `log`.
    ///
    /// # Panics
    ///
    /// Here and below: if the test cannot continue.
    pub fn start(command: &[&str], log: &Path) -> Leash {
        Leash::start_by(command, log, |shell| shell.spawn().expect("sh starts everywhere"))
    }

    /// The same with another way to start the shell, for example on a given CPU.
    pub fn start_by(command: &[&str], log: &Path, spawn: impl FnOnce(&mut Command) -> Child) -> Leash {
        let output = File::create(log).expect("the log lies in a folder of the test");
        let errors = output.try_clone().expect("there are descriptors left");
        let mut shell = Command::new("sh");
        shell.args(["-c", SHELL, "sh"]).args(command).process_group(0);
        shell.stdin(Stdio::piped()).stdout(output).stderr(errors);
        Leash { shell: spawn(&mut shell), log: log.to_owned() }
    }

    /// Waits until somebody listens on `port` of the loopback address.
    pub fn wait_for(&mut self, port: u16) {
        self.wait_until(|| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok());
    }

    /// Waits until `is_ready`.
    pub fn wait_until(&mut self, is_ready: impl Fn() -> bool) {
        let ready = wait::until(START, || self.has_ended() || is_ready());
        assert!(ready && !self.has_ended(), "the server does not start; {}", self.output());
    }

    /// Waits until the command has ended by itself.
    pub fn wait_for_end(&mut self) {
        assert!(wait::until(START, || self.has_ended()), "the server does not stop; {}", self.output());
    }

    /// Kills the whole process group at once.
    pub fn kill(&mut self) {
        // The process is not reaped before `wait`, so its id is still valid.
        let _ = kill_process_group(Pid::from_child(&self.shell), Signal::KILL);
        let _ = self.shell.wait();
    }

    fn has_ended(&mut self) -> bool {
        self.shell.try_wait().expect("a child of ours can be waited for").is_some()
    }

    fn output(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        // Once the process is reaped, its id may belong to another one.
        if !self.has_ended() {
            self.kill();
        }
    }
}
