//! The planted server as a child process, and its accounts.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

use kernel::account::{self, Account};
use tempfile::TempDir;
use units::Nanos;

use super::client::Client;
use super::cores::{self, Core};
use super::far::FarHost;
use super::group::Group;

/// How to start it.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub model: &'static str,
    pub core: Core,
    pub niceness: i32,
    pub is_unix: bool,
    pub late_read: Nanos,
}

impl Plan {
    pub const fn of(model: &'static str) -> Plan {
        Plan { model, core: Core::Last, niceness: 0, is_unix: false, late_read: Nanos::ZERO }
    }

    pub fn start(self) -> Planted {
        self.start_by(Command::new(env!("CARGO_BIN_EXE_planted")))
    }

    /// Starts it in the network of another host.
    pub fn start_on(self, far: &FarHost) -> Planted {
        let mut command = far.within();
        command.arg(env!("CARGO_BIN_EXE_planted")).args(["--ip", &far.address().to_string()]);
        self.start_by(command)
    }

    fn start_by(self, mut command: Command) -> Planted {
        let folder = tempfile::tempdir().unwrap();
        command.args(["--model", self.model, "--folder"]).arg(folder.path());
        command.args(["--late-read", &format!("{}ns", self.late_read.0)]);
        if self.is_unix {
            command.arg("--unix").arg(folder.path().join("socket"));
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = cores::start(&mut command, self.core, self.niceness);
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let address = line.split(' ').nth(1).unwrap_or_else(|| panic!("no address: {line}")).to_owned();
        let group = Group::ahead();
        group.take_in(child.id());
        Planted { child, _out: out, folder, address, _group: group }
    }
}

pub struct Planted {
    child: Child,
    _out: BufReader<ChildStdout>,
    folder: TempDir,
    /// `127.0.0.1:PORT`, or a path.
    pub address: String,
    /// Dropped after the child: a group is removed when its members have ended.
    _group: Arc<Group>,
}

impl Planted {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The address that it listens on.
    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn new_client(&self) -> Client {
        Client::connect(&self.address)
    }

    /// A connection to it, with one request already served, so that the server has all it needs for a connection.
    pub fn client(&self) -> Client {
        let mut client = Client::connect(&self.address);
        client.http("/");
        client
    }

    pub fn join(&self, group: &Group) {
        group.take_in(self.pid());
    }

    /// Stops it and reads all its accounts. If each client has its own process, the clients must have disconnected.
    pub fn accounts(mut self) -> Vec<Account> {
        drop(self.child.stdin.take());
        let status = self.child.wait().unwrap();
        assert!(status.success(), "the planted server ended with {status}");
        account::read(self.folder.path()).unwrap()
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
