//! Finds the processes of a server and their ports in /proc.
//!
//! Sources: proc(5); the tables of sockets as in the kernel's Documentation/networking/proc_net_tcp.rst.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

/// How the server was specified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// By process ids.
    Pids(Vec<u32>),
    /// By the port that it listens on.
    Port(u16),
    /// By name: every process whose name, as the kernel stores it (15 bytes), is this one.
    Comm(String),
}

/// A server that was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
    /// The processes that were named, or that listen: the others are their children.
    pub roots: Vec<u32>,
    /// All processes: the roots and their descendants.
    pub processes: Vec<u32>,
    /// The TCP ports that they listen on.
    pub ports: Vec<u16>,
    /// The name of the first root.
    pub comm: Option<String>,
}

/// Why there is nothing to watch.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    #[error("there is no process {0}")]
    NoProcess(u32),
    #[error("no process listens on port {0}")]
    NoListener(u16),
    #[error("a process listens on port {0}, but it is not visible to this user; run this as root")]
    Hidden(u16),
    #[error(
        "not allowed to look at process {0} (/proc/{0}/fd): its ports and connections cannot be found; run this as \
         root, or with {caps}",
        caps = host::CAPABILITIES
    )]
    NotAllowed(u32),
    #[error("there is no process named `{0}`; names are those of `ps -o comm`, 15 bytes")]
    NoName(String),
    #[error("cannot read {what}: {source}")]
    Read { what: String, source: io::Error },
}

/// Finds the processes, descendants included, and the ports that they listen on.
///
/// # Errors
///
/// [`FindError`]: no such process, port or name, or an unreadable table.
pub fn find(named: &Named) -> Result<Found, FindError> {
    let roots = match named {
        Named::Pids(pids) => {
            let gone = pids.iter().find(|pid| !Path::new(&format!("/proc/{pid}")).exists());
            gone.map_or(Ok(()), |&pid| Err(FindError::NoProcess(pid)))?;
            pids.clone()
        }
        Named::Port(port) => listeners(*port)?,
        Named::Comm(name) => {
            let pids: Vec<u32> =
                pids()?.into_iter().filter(|&pid| comm(pid).as_ref() == Some(name)).collect();
            if pids.is_empty() {
                return Err(FindError::NoName(name.clone()));
            }
            pids
        }
    };
    if let Some(&root) = roots.iter().find(|&&root| is_denied(root)) {
        return Err(FindError::NotAllowed(root));
    }
    let processes = with_children(&roots)?;
    let ports = match named {
        Named::Port(port) => vec![*port],
        _ => ports_of(&processes)?,
    };
    let comm = roots.first().copied().and_then(comm);
    Ok(Found { roots, processes, ports, comm })
}

/// The ports that any of these processes listens on.
///
/// # Errors
///
/// When the kernel's tables cannot be read. A process that has ended has no ports.
pub fn ports_of(processes: &[u32]) -> Result<Vec<u16>, FindError> {
    let mut sockets = BTreeSet::new();
    for &process in processes {
        sockets.extend(sockets_of(process));
    }
    // A server in its own network namespace has separate tables, which all its processes show, until they end.
    for process in processes {
        let Some(listeners) = listening(&process.to_string())? else { continue };
        let own = listeners.into_iter().filter(|listener| sockets.contains(&listener.socket));
        return Ok(own.map(|listener| listener.port).collect::<BTreeSet<u16>>().into_iter().collect());
    }
    Ok(Vec::new())
}

/// These processes and all their descendants.
pub(crate) fn with_children(roots: &[u32]) -> Result<Vec<u32>, FindError> {
    let parents: Vec<(u32, u32)> = pids()?.into_iter().filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut all = roots.to_vec();
    let mut next = 0;
    while let Some(&root) = all.get(next) {
        for &(pid, parent) in &parents {
            if parent == root && !all.contains(&pid) {
                all.push(pid);
            }
        }
        next += 1;
    }
    Ok(all)
}

fn listeners(port: u16) -> Result<Vec<u32>, FindError> {
    let listeners = listening("self")?.unwrap_or_default();
    let sockets: Vec<u64> =
        listeners.into_iter().filter(|listener| listener.port == port).map(|l| l.socket).collect();
    if sockets.is_empty() {
        return Err(FindError::NoListener(port));
    }
    let owns = |pid: &u32| sockets_of(*pid).iter().any(|socket| sockets.contains(socket));
    let mut pids: Vec<u32> = pids()?.into_iter().filter(owns).collect();
    // Of related processes that share the socket, only the oldest: the others are its descendants.
    let all = pids.clone();
    pids.retain(|&pid| parent(pid).is_none_or(|parent| !all.contains(&parent)));
    if pids.is_empty() { Err(FindError::Hidden(port)) } else { Ok(pids) }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Listener {
    port: u16,
    socket: u64,
}

/// All listening sockets in the network namespace of a process; `None` if it has ended.
fn listening(process: &str) -> Result<Option<Vec<Listener>>, FindError> {
    let mut listeners = Vec::new();
    let path = |table: &str| format!("/proc/{process}/net/{table}");
    for table in ["tcp", "tcp6"] {
        let what = path(table);
        match fs::read_to_string(&what) {
            Ok(text) => listeners.extend(text.lines().filter_map(listener)),
            // A host without IPv6 has one of the two tables, and a process that has ended none.
            Err(error) if is_gone(&error) && Path::new(&path("tcp")).exists() => {}
            Err(error) if is_gone(&error) => return Ok(None),
            Err(source) => return Err(FindError::Read { what, source }),
        }
    }
    Ok(Some(listeners))
}

/// A process that ends while its table is read is no longer there in the middle of it.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

/// `  0: 0100007F:0CEA 00000000:0000 0A … uid timeout inode …`: a listening socket.
fn listener(line: &str) -> Option<Listener> {
    let mut words = line.split_ascii_whitespace();
    let local = words.nth(1)?;
    let state = words.nth(1)?;
    let socket = words.nth(5)?.parse().ok()?;
    let (_, port) = local.rsplit_once(':')?;
    (state == "0A").then_some(Listener { port: u16::from_str_radix(port, 16).ok()?, socket })
}

/// The inodes of all sockets that these processes have.
pub fn sockets_of_all(processes: &[u32]) -> Vec<u64> {
    processes.iter().flat_map(|&process| sockets_of(process)).collect()
}

fn sockets_of(process: u32) -> Vec<u64> {
    let Ok(entries) = fs::read_dir(format!("/proc/{process}/fd")) else { return Vec::new() };
    let inode = |entry: fs::DirEntry| {
        let target = fs::read_link(entry.path()).ok()?;
        target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    };
    entries.flatten().filter_map(inode).collect()
}

/// Whether this user may not see which files, and so which sockets, the process `pid` has open.
fn is_denied(pid: u32) -> bool {
    let denied = |error: io::Error| error.kind() == io::ErrorKind::PermissionDenied;
    fs::read_dir(format!("/proc/{pid}/fd")).is_err_and(denied)
}

fn pids() -> Result<Vec<u32>, FindError> {
    let read = |source| FindError::Read { what: "/proc".to_owned(), source };
    let names = fs::read_dir("/proc").map_err(read)?.flatten();
    Ok(names.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

/// The name of a process; `None` when it has ended.
pub fn comm(pid: u32) -> Option<String> {
    Some(fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim_end_matches('\n').to_owned())
}

/// The path of a process in the hierarchy of control groups; `None` when it has ended.
pub fn cgroup(pid: u32) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let of = |controller: &str| {
        text.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            controllers.split(',').any(|one| one == controller).then(|| path.to_owned())
        })
    };
    of("cpu").or_else(|| of(""))
}

fn parent(pid: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // A name may contain anything, spaces and parentheses included.
    let (_, rest) = text.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_line_of_the_table_is_read() {
        let line = "   0: 0100007F:0CEA 00000000:0000 0A 00000000:00000000 00:00000000 00000000   107        0 21543 1 0 100 0 0 10 0";
        assert_eq!(listener(line), Some(Listener { port: 3306, socket: 21543 }));
        assert_eq!(listener(&line.replace(" 0A ", " 01 ")), None);
        assert_eq!(listener("  sl  local_address rem_address   st tx_queue"), None);
    }

    #[test]
    fn this_process_is_found_by_its_port() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let found = find(&Named::Port(port)).unwrap();
        assert!(found.processes.contains(&std::process::id()));
        let found = find(&Named::Pids(vec![std::process::id()])).unwrap();
        assert!(found.ports.contains(&port));
    }

    /// If this fails, the requests of a server that forks are not seen for an interval when a child has just ended.
    #[test]
    fn a_process_that_has_ended_hides_no_port_of_the_others() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(ports_of(&[child.id(), std::process::id()]).unwrap().contains(&port));
        assert_eq!(ports_of(&[child.id()]).unwrap(), [0_u16; 0]);
    }

    /// If this fails, a server that this user may not inspect is reported to listen on no port.
    #[test]
    fn a_process_that_may_not_be_looked_at_is_named() {
        let look = || find(&Named::Pids(vec![1])).map_err(|error| error.to_string());
        let looked = std::thread::spawn(move || {
            if rustix::process::geteuid().is_root() {
                // Only of this thread; it gives up root's rights.
                let nobody = rustix::process::Uid::from_raw(65_534);
                rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
            }
            look()
        });
        let error = looked.join().unwrap().unwrap_err();
        assert!(error.starts_with("not allowed to look at process 1 "), "{error}");
    }

    #[test]
    fn a_missing_server_is_reported() {
        let error = find(&Named::Pids(vec![u32::MAX])).unwrap_err();
        assert_eq!(error.to_string(), "there is no process 4294967295");
        let error = find(&Named::Port(1)).unwrap_err();
        assert_eq!(error.to_string(), "no process listens on port 1");
        assert!(matches!(find(&Named::Comm("no such name".to_owned())), Err(FindError::NoName(_))));
    }
}
