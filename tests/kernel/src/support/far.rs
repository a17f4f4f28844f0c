//! Another host, as far as one kernel can provide one: a separate network, boot and monotonic clock, and Debian's sshd
//! with a separate key and configuration.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use units::Nanos;

use super::{binary, leash, port, wait};
use testkit::leash::Leash;

/// Its clock is ahead by this many seconds.
pub const AHEAD_S: u64 = 100_000;

const PATIENCE: Nanos = Nanos::from_secs(30);

/// The user that ssh logs in as, by the alias in its configuration: one key each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Login {
    /// As root, with parallax in the PATH.
    Root,
    /// As root, without.
    Bare,
    /// As a user without any privileges.
    Nobody,
    /// With a key that the host does not know.
    Stranger,
    /// On a port without a listener.
    Nowhere,
}

impl Login {
    pub const fn alias(self) -> &'static str {
        match self {
            Login::Root => "far-root",
            Login::Bare => "far-bare",
            Login::Nobody => "far-nobody",
            Login::Stranger => "far-stranger",
            Login::Nowhere => "far-nowhere",
        }
    }
}

/// The host, until it is dropped.
pub struct FarHost {
    _leash: Leash,
    folder: TempDir,
    ip: Ipv4Addr,
}

/// Its directory, from its own view: independent of the directories above it on this host, and of who can read them.
const FAR: &str = "/run/far";

/// Creates the host: runs in new mount, network and time namespaces, and ends as sshd.
const MAKE: &str = r#"
set -e
cd "$1"
mount --bind boot_id /proc/sys/kernel/random/boot_id
mount -t tmpfs tmpfs /run
mkdir /run/sshd /run/far
mount --bind . /run/far
mount --bind tmp /tmp
ip link set lo up
echo $$ >pid.new
mv pid.new pid
while ! ip addr show dev far 2>/dev/null | grep -q "inet "; do sleep 0.01; done
exec "$2" -D -e -f /run/far/sshd_config
"#;

impl FarHost {
    pub fn start() -> FarHost {
        let folder = tempfile::tempdir_in(binary::target()).unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let number = port::free();
        let ip = Ipv4Addr::new(10, 213, (number >> 6) as u8, (number as u8 & 0x3f) * 4 + 2);
        write_files(folder.path(), ip, number);
        let sshd = which("sshd");
        let at = folder.path().to_str().unwrap();
        let clock = AHEAD_S.to_string();
        let new = ["unshare", "--mount", "--net", "--time", "--monotonic", &clock, "--fork", "--kill-child"];
        let command = [&new[..], &["sh", "-c", MAKE, "sh", at, &sshd]].concat();
        let leash = leash::start(&command, &folder.path().join("sshd.log"));
        let far = FarHost { _leash: leash, folder, ip };
        far.connect();
        far
    }

    /// A pair of linked interfaces, one end here, the other there; the kernel removes both with the host's network.
    fn connect(&self) {
        let made = wait::until(PATIENCE, || self.folder.path().join("pid").exists());
        assert!(made, "the far host is not made: {}", self.log());
        let [.., third, fourth] = self.ip.octets();
        let near = format!("near{third}-{fourth}");
        let pid = self.pid();
        let ours = format!("{}/30", Ipv4Addr::from(u32::from(self.ip) - 1));
        let theirs = format!("{}/30", self.ip);
        let link = ["ip", "link", "add", &near, "type", "veth", "peer", "name", "far", "netns", &pid];
        run(&mut command(&link));
        run(&mut command(&["ip", "addr", "add", &ours, "dev", &near]));
        run(&mut command(&["ip", "link", "set", &near, "up"]));
        run(self.within().args(["ip", "link", "set", "far", "up"]));
        run(self.within().args(["ip", "addr", "add", &theirs, "dev", "far"]));
        // Without its link the address would be routed out of this machine.
        let is_linked = || Path::new("/sys/class/net").join(&near).exists();
        let answers = || is_linked() && self.ssh(Login::Root).arg("true").output().unwrap().status.success();
        assert!(wait::until(PATIENCE, answers), "sshd does not answer: {}", self.log());
    }

    fn pid(&self) -> String {
        fs::read_to_string(self.folder.path().join("pid")).unwrap().trim().to_owned()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("sshd.log")).unwrap_or_default()
    }

    pub fn address(&self) -> Ipv4Addr {
        self.ip
    }

    /// A command that runs its arguments in the host's network.
    pub fn within(&self) -> Command {
        command(&["nsenter", "--target", &self.pid(), "--net", "--"])
    }

    pub fn ssh(&self, login: Login) -> Command {
        let mut ssh = Command::new(self.folder.path().join("near/ssh"));
        ssh.args(["-o", "BatchMode=yes", login.alias()]).stdin(Stdio::null());
        ssh
    }

    /// Our own PATH, in which `ssh` reads the configuration for this host, like a user's own.
    pub fn path(&self) -> String {
        format!("{}:{}", self.folder.path().join("near").display(), std::env::var("PATH").unwrap())
    }

    /// Files left in the host's directory for temporary files.
    pub fn leftovers(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.folder.path().join("tmp")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// Ends every connection to it at once.
    pub fn cut_off(&self) {
        let sessions = format!("/proc/{0}/task/{0}/children", self.pid());
        for session in fs::read_to_string(sessions).unwrap().split_whitespace() {
            // It may have ended since.
            let _ = kill_process(Pid::from_raw(session.parse().unwrap()).unwrap(), Signal::KILL);
        }
    }
}

fn write_files(folder: &Path, ip: Ipv4Addr, port: u16) {
    let at = folder.display();
    for name in ["near", "bin", "tmp"] {
        fs::create_dir(folder.join(name)).unwrap();
    }
    fs::set_permissions(folder.join("tmp"), fs::Permissions::from_mode(0o1777)).unwrap();
    binary::copy_to(&folder.join("bin/parallax"));
    fs::write(folder.join("boot_id"), "3d0dd0a8-0000-4000-8000-000000000001\n").unwrap();
    let mut keys = String::new();
    for (name, command) in [
        ("root", None),
        // The user's command, with a restricted PATH.
        ("bare", Some(r#"PATH=/usr/bin:/bin exec sh -c \"$SSH_ORIGINAL_COMMAND\""#)),
        (
            "nobody",
            Some(
                r#"exec setpriv --reuid 65534 --regid 65534 --clear-groups sh -c \"$SSH_ORIGINAL_COMMAND\""#,
            ),
        ),
        ("stranger", None),
        ("host", None),
    ] {
        let key = folder.join(name);
        run(command_of("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key));
        let public = fs::read_to_string(key.with_extension("pub")).unwrap();
        if !matches!(name, "stranger" | "host") {
            let forced = command.map_or_else(String::new, |command| format!("command=\"{command}\" "));
            keys.push_str(&format!("{forced}{public}"));
        }
    }
    fs::write(folder.join("authorized_keys"), keys).unwrap();
    fs::write(
        folder.join("sshd_config"),
        format!(
            "ListenAddress {ip}:{port}\nHostKey {FAR}/host\nAuthorizedKeysFile {FAR}/authorized_keys\nStrictModes no\n\
             PasswordAuthentication no\nKbdInteractiveAuthentication no\nUsePAM no\nPermitRootLogin prohibit-password\n\
             PidFile none\nSetEnv PATH={FAR}/bin:/usr/local/bin:/usr/bin:/bin HOME={FAR}\n"
        ),
    )
    .unwrap();
    let host = fs::read_to_string(folder.join("host.pub")).unwrap();
    fs::write(folder.join("known_hosts"), format!("far {host}")).unwrap();
    let mut config = format!(
        "Host far-*\n  HostName {ip}\n  ConnectTimeout 5\n  User root\n  HostKeyAlias far\n  UserKnownHostsFile {at}/known_hosts\n  \
         GlobalKnownHostsFile /dev/null\n  IdentitiesOnly yes\n  IdentityAgent none\n"
    );
    for (login, key, port) in [
        (Login::Root, "root", port),
        (Login::Bare, "bare", port),
        (Login::Nobody, "nobody", port),
        (Login::Stranger, "stranger", port),
        (Login::Nowhere, "root", 1),
    ] {
        config.push_str(&format!("Host {}\n  Port {port}\n  IdentityFile {at}/{key}\n", login.alias()));
    }
    fs::write(folder.join("ssh_config"), config).unwrap();
    let ssh = folder.join("near/ssh");
    fs::write(&ssh, format!("#!/bin/sh\nexec {} -F {at}/ssh_config \"$@\"\n", which("ssh"))).unwrap();
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
}

/// sshd must be called by its absolute path.
fn which(program: &str) -> String {
    let mut found = command(&["sh", "-c", r#"PATH=$PATH:/usr/sbin; command -v "$1""#, "sh", program]);
    let found = found.output().unwrap();
    assert!(found.status.success(), "{program} is not here: run scripts/setup test");
    String::from_utf8(found.stdout).unwrap().trim().to_owned()
}

fn command(words: &[&str]) -> Command {
    let mut command = command_of(words[0]);
    command.args(&words[1..]);
    command
}

fn command_of(program: &str) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    command
}

#[track_caller]
fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
