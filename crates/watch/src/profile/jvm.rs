//! Asks a Java virtual machine for its perf map, in the way jcmd does.
//!
//! A file next to the JVM and SIGQUIT make it open a socket; the socket accepts the command `Compiler.perfmap`, which
//! JDK 17 and later know. A JVM that does not catch SIGQUIT would be killed by it, so none is sent to it.

//! The JVM's `/tmp` may belong to another user: it is opened through [`World`], and only a socket of the JVM's user is
//! used.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{Pid, Signal, kill_process};
use units::Nanos;

use super::world::World;

/// Deadline for the dialogues with all JVMs. A busy JVM with a hundred thousand methods takes two seconds.
const PATIENCE: Nanos = Nanos::from_secs(20);
/// JVMs that are asked, each in a thread of its own.
const JVMS_MOST: usize = 64;
const POLL: Nanos = Nanos::from_millis(20);
const REPLY_LONGEST: usize = 64 << 10;

/// A process with a JVM.
#[derive(Debug, Clone, Copy)]
pub struct Jvm {
    pub pid: u32,
    /// Its pid in its own namespace.
    pub inner_pid: u32,
    /// The user that it runs as.
    pub owner: u32,
}

/// Makes all of `jvms` write their perf maps, at the same time, because one that does not respond must not delay the
/// others. Returns for each the reason why it did not, in words for people, after 20 s at the latest.
pub fn write_perf_maps(jvms: &[Jvm]) -> Vec<Result<(), String>> {
    let deadline = clock::now() + PATIENCE;
    thread::scope(|scope| {
        let ask = |jvm: &Jvm| {
            let jvm = *jvm;
            thread::Builder::new().spawn_scoped(scope, move || write_perf_map(jvm, deadline))
        };
        // Collected, so that all are asked before the first is waited for.
        let asked: Vec<_> = jvms.iter().take(JVMS_MOST).map(ask).collect();
        let outcomes = asked.into_iter().map(|asked| match asked {
            Ok(thread) => {
                thread.join().unwrap_or_else(|_| Err("the thread that asks the JVM panicked".to_owned()))
            }
            Err(error) => Err(format!("cannot ask the JVM: {error}")),
        });
        let others = jvms.iter().skip(JVMS_MOST);
        outcomes
            .chain(others.map(|_| Err(format!("only the first {JVMS_MOST} JVMs are asked for their names"))))
            .collect()
    })
}

fn write_perf_map(jvm: Jvm, deadline: Nanos) -> Result<(), String> {
    let Jvm { pid, inner_pid, owner } = jvm;
    let failed = |error: io::Error| format!("the JVM's attach socket: {error}");
    let tmp = World::of(pid).and_then(|world| world.directory("tmp")).map_err(failed)?;
    let socket = match socket(&tmp, inner_pid, owner) {
        Ok(socket) => socket,
        Err(_) => wake(pid, inner_pid, owner, &tmp, deadline)?,
    };
    let reply = ask(&socket, deadline).map_err(failed)?;
    match reply.split_once('\n') {
        Some(("0", _)) => Ok(()),
        _ => Err(format!(
            "the JVM refused `Compiler.perfmap` ({}); it needs JDK 17 or later",
            record::stacks::clean_frame(reply.lines().nth(1).unwrap_or(&reply))
        )),
    }
}

/// Makes the JVM listen, and returns its socket.
fn wake(pid: u32, inner_pid: u32, owner: u32, tmp: &OwnedFd, deadline: Nanos) -> Result<File, String> {
    if !catches_quit(pid) {
        return Err("the JVM does not handle SIGQUIT, so it cannot be asked for its names (-Xrs?)".to_owned());
    }
    let name = format!(".attach_pid{inner_pid}");
    let new = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let request = rustix::fs::openat(tmp, &name, new, Mode::RUSR | Mode::WUSR)
        .map_err(|error| format!("/tmp/{name}: {error}"))?;
    // The JVM checks that the file belongs to its own user.
    let _ = std::os::unix::fs::fchown(&request, Some(owner), None);
    let woken = send_quit(pid).and_then(|()| wait_for(tmp, inner_pid, owner, deadline));
    let _ = rustix::fs::unlinkat(tmp, &name, AtFlags::empty());
    woken
}

fn send_quit(pid: u32) -> Result<(), String> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or("there is no such process")?;
    kill_process(pid, Signal::QUIT).map_err(|error| format!("cannot signal the JVM: {error}"))
}

fn wait_for(tmp: &OwnedFd, inner_pid: u32, owner: u32, deadline: Nanos) -> Result<File, String> {
    while clock::now() < deadline {
        if let Ok(socket) = socket(tmp, inner_pid, owner) {
            return Ok(socket);
        }
        clock::sleep_until(clock::now() + POLL);
    }
    Err(format!(
        "the JVM did not open its attach socket within {} (-XX:+DisableAttachMechanism?)",
        PATIENCE.written()
    ))
}

/// The attach socket, not connected yet, but held open: a file that replaces it would not be it.
fn socket(tmp: &OwnedFd, inner_pid: u32, owner: u32) -> io::Result<File> {
    let place = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let socket = File::from(rustix::fs::openat(tmp, format!(".java_pid{inner_pid}"), place, Mode::empty())?);
    let facts = socket.metadata()?;
    if !facts.file_type().is_socket() || facts.uid() != owner {
        return Err(io::Error::other("it is not a socket of the JVM's user"));
    }
    Ok(socket)
}

fn ask(socket: &File, deadline: Nanos) -> io::Result<String> {
    let late = || io::Error::new(io::ErrorKind::TimedOut, format!("no reply within {}", PATIENCE.written()));
    // A length of 0 would mean no limit.
    let left = || match deadline.saturating_sub(clock::now()) {
        Nanos::ZERO => Err(late()),
        left => Ok(Duration::from_nanos(left.0)),
    };
    let is_late = |error: io::Error| {
        if error.kind() == io::ErrorKind::WouldBlock { late() } else { error }
    };
    let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
    let stream = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    // It also limits how long a full backlog may hold up the connection.
    set_socket_timeout(&stream, Timeout::Send, Some(left()?))?;
    let address = SocketAddrUnix::new(format!("/proc/self/fd/{}", socket.as_raw_fd()))?;
    rustix::net::connect(&stream, &address).map_err(|error| is_late(error.into()))?;
    let mut stream = UnixStream::from(stream);
    // Version of the protocol, the command, its three arguments.
    stream.write_all(b"1\0jcmd\0Compiler.perfmap\0\0\0").map_err(is_late)?;
    let (mut reply, mut part) = (Vec::new(), [0; 4_096]);
    while reply.len() < REPLY_LONGEST {
        stream.set_read_timeout(Some(left()?))?;
        match stream.read(&mut part).map_err(is_late)? {
            0 => break,
            length => reply.extend(&part[..length]),
        }
    }
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
    use std::os::unix::net::UnixListener;

    use super::*;

    /// If this fails, a process that is not a JVM, or one started with -Xrs, is killed by being profiled.
    #[test]
    fn a_process_that_does_not_catch_the_signal_gets_none() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let jvm = Jvm { pid: child.id(), inner_pid: child.id(), owner: 0 };
        let refused = write_perf_map(jvm, clock::now() + PATIENCE).unwrap_err();
        assert!(refused.contains("does not handle SIGQUIT"), "{refused}");
        assert!(child.try_wait().unwrap().is_none(), "it is still running");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    fn place() -> (tempfile::TempDir, OwnedFd) {
        let folder = tempfile::tempdir().unwrap();
        let tmp = rustix::fs::open(folder.path(), OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
        (folder, tmp)
    }

    /// If this fails, another user's process makes a profiler that runs as root connect to any socket of the host.
    #[test]
    fn only_a_socket_of_the_jvms_user_is_spoken_to() {
        let (folder, tmp) = place();
        let own = fs::metadata(folder.path()).unwrap().uid();
        let listener = UnixListener::bind(folder.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink("elsewhere", folder.path().join(".java_pid7")).unwrap();
        assert!(socket(&tmp, 7, own).is_err(), "a link");
        fs::write(folder.path().join(".java_pid8"), "").unwrap();
        assert!(socket(&tmp, 8, own).is_err(), "a file");
        fs::rename(folder.path().join("elsewhere"), folder.path().join(".java_pid9")).unwrap();
        assert!(socket(&tmp, 9, own + 1).is_err(), "another user's");
        let place = socket(&tmp, 9, own).unwrap();
        let replies = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            // Closing with unread data would send a reset.
            let _ = stream.read(&mut [0; 64]).unwrap();
            stream.write_all(b"0\ndone\n").unwrap();
        });
        // The socket that was checked, even if its name is now another file.
        fs::rename(folder.path().join(".java_pid9"), folder.path().join("moved")).unwrap();
        assert_eq!(ask(&place, clock::now() + Nanos::from_secs(20)).unwrap(), "0\ndone\n");
        replies.join().unwrap();
    }

    /// If this fails, a byte from time to time keeps a profile from ending.
    #[test]
    fn a_slow_reply_has_one_deadline() {
        let (folder, tmp) = place();
        let listener = UnixListener::bind(folder.path().join(".java_pid7")).unwrap();
        let place = socket(&tmp, 7, fs::metadata(folder.path()).unwrap().uid()).unwrap();
        let drips = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            while stream.write_all(b".").is_ok() {
                clock::sleep_until(clock::now() + POLL);
            }
        });
        let begin = clock::now();
        let late = ask(&place, begin + Nanos::from_millis(300)).unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut, "{late}");
        assert!(clock::now() - begin < Nanos::from_secs(10));
        drips.join().unwrap();
    }

    /// If this fails, each process of a tree that maps a file named libjvm.so and does not respond adds 20 s. Here none
    /// responds before all are asked.
    #[test]
    fn all_jvms_are_asked_at_the_same_time() {
        let folder = tempfile::tempdir().unwrap();
        let owner = fs::metadata(folder.path()).unwrap().uid();
        let together = std::sync::Barrier::new(4);
        // Above any real pid.
        let jvms: Vec<_> =
            (0..4).map(|n| Jvm { pid: std::process::id(), inner_pid: u32::MAX - n, owner }).collect();
        let path = |jvm: &Jvm| format!("/tmp/.java_pid{}", jvm.inner_pid);
        let outcomes = thread::scope(|scope| {
            for jvm in &jvms {
                let _ = fs::remove_file(path(jvm));
                let listener = UnixListener::bind(path(jvm)).unwrap();
                let together = &together;
                scope.spawn(move || {
                    let (mut stream, _) = listener.accept().unwrap();
                    together.wait();
                    let _ = stream.read(&mut [0; 64]).unwrap();
                    stream.write_all(b"0\ndone\n").unwrap();
                });
            }
            let outcomes = write_perf_maps(&jvms);
            // Releases the threads of a failed test.
            for jvm in jvms.iter().zip(&outcomes).filter(|(_, outcome)| outcome.is_err()).map(|(jvm, _)| jvm)
            {
                drop(UnixStream::connect(path(jvm)));
            }
            outcomes
        });
        jvms.iter().for_each(|jvm| fs::remove_file(path(jvm)).unwrap());
        assert_eq!(outcomes, [Ok(()), Ok(()), Ok(()), Ok(())]);
    }
}
