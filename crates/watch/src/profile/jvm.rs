//! Asks a Java virtual machine for its perf map, in the way jcmd does.
//!
//! A file next to the JVM and SIGQUIT make it open a socket; the socket accepts the command `Compiler.perfmap`, which
//! JDK 17 and later know. A JVM that does not catch SIGQUIT would be killed by it, so none is sent to it.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use units::Nanos;

/// A busy JVM replies within a tenth of that.
const PATIENCE: Nanos = Nanos::from_secs(5);
const POLL: Nanos = Nanos::from_millis(20);
const REPLY_LONGEST: u64 = 64 << 10;

/// Makes the JVM `pid`, whose pid in its own namespace is `inner_pid` and which runs as user `owner`, write its perf
/// map.
///
/// # Errors
///
/// The reason, in words for people.
pub fn write_perf_map(pid: u32, inner_pid: u32, owner: u32) -> Result<(), String> {
    let socket = format!("/proc/{pid}/root/tmp/.java_pid{inner_pid}");
    let socket = Path::new(&socket);
    if !is_socket_of(socket, owner) {
        wake(pid, inner_pid, owner, socket)?;
    }
    let reply = ask(socket).map_err(|error| format!("the JVM's attach socket: {error}"))?;
    match reply.split_once('\n') {
        Some(("0", _)) => Ok(()),
        _ => Err(format!(
            "the JVM refused `Compiler.perfmap` ({}); it needs JDK 17 or later",
            record::stacks::clean_frame(reply.lines().nth(1).unwrap_or(&reply))
        )),
    }
}

/// Makes the JVM listen.
fn wake(pid: u32, inner_pid: u32, owner: u32, socket: &Path) -> Result<(), String> {
    if !catches_quit(pid) {
        return Err("the JVM does not handle SIGQUIT, so it cannot be asked for its names (-Xrs?)".to_owned());
    }
    let request =
        Path::new("/proc").join(pid.to_string()).join("root/tmp").join(format!(".attach_pid{inner_pid}"));
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&request);
    if let Err(error) = made {
        return Err(format!("{}: {error}", request.display()));
    }
    // The JVM checks that the file belongs to its own user.
    let _ = std::os::unix::fs::lchown(&request, Some(owner), None);
    let woken = send_quit(pid).and_then(|()| wait_for(socket, owner));
    let _ = fs::remove_file(&request);
    woken
}

fn send_quit(pid: u32) -> Result<(), String> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or("there is no such process")?;
    kill_process(pid, Signal::QUIT).map_err(|error| format!("cannot signal the JVM: {error}"))
}

fn wait_for(socket: &Path, owner: u32) -> Result<(), String> {
    let until = clock::now() + PATIENCE;
    while clock::now() < until {
        if is_socket_of(socket, owner) {
            return Ok(());
        }
        clock::sleep_until(clock::now() + POLL);
    }
    Err(format!(
        "the JVM did not open its attach socket within {} (-XX:+DisableAttachMechanism?)",
        PATIENCE.written()
    ))
}

fn is_socket_of(path: &Path, owner: u32) -> bool {
    fs::symlink_metadata(path).is_ok_and(|facts| facts.file_type().is_socket() && facts.uid() == owner)
}

fn ask(socket: &Path) -> io::Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    // Version of the protocol, the command, its three arguments.
    stream.write_all(b"1\0jcmd\0Compiler.perfmap\0\0\0")?;
    let mut reply = Vec::new();
    stream.take(REPLY_LONGEST).read_to_end(&mut reply)?;
    Ok(String::from_utf8_lossy(&reply).into_owned())
}

/// Whether the process handles SIGQUIT (`SigCgt` in proc_pid_status(5): one bit per signal).
fn catches_quit(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (libc::SIGQUIT - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, a process that is not a JVM, or one started with -Xrs, is killed by being profiled.
    #[test]
    fn a_process_that_does_not_catch_the_signal_gets_none() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let refused = write_perf_map(child.id(), child.id(), 0).unwrap_err();
        assert!(refused.contains("does not handle SIGQUIT"), "{refused}");
        assert!(child.try_wait().unwrap().is_none(), "it is still running");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
