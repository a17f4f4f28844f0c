//! The planted server in each of the forms that servers have: which threads read, work, and write.
//!
//! All forms share the connection, the steps and the account; none shares code with what is tested.

mod connection;
mod event_loop;
mod pool;
mod processes;
mod ring;
mod threads;
mod ways;
mod work;

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use units::Nanos;

pub use processes::serve_inherited;

use crate::account::Book;

/// What a server is started with.
#[derive(Debug, Clone, Default)]
pub struct Options {
    pub model: Model,
    /// Where accounts and private files go.
    pub folder: PathBuf,
    /// Of the port of its own choice; the loopback's unless said.
    pub ip: Option<Ipv4Addr>,
    /// Listens here and not on a port.
    pub unix: Option<PathBuf>,
    /// Threads of a pool.
    pub workers: usize,
    /// How long a thread waits before it reads what has arrived: time in the socket's queue.
    pub late_read: Nanos,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Model {
    /// A thread a connection.
    #[default]
    Threads,
    /// Connections hop between the threads of a pool; one thread reads, works and writes.
    Pool,
    /// One thread reads, another works and writes.
    Handoff,
    /// One thread, which reads and works all that is ready and then writes all responses.
    Loop,
    /// A process a connection.
    Processes,
    /// One thread; the kernel reads and writes for it.
    Ring,
}

impl FromStr for Model {
    type Err = String;

    fn from_str(name: &str) -> Result<Model, String> {
        Ok(match name {
            "threads" => Model::Threads,
            "pool" => Model::Pool,
            "handoff" => Model::Handoff,
            "loop" => Model::Loop,
            "processes" => Model::Processes,
            "ring" => Model::Ring,
            _ => return Err(format!("no model `{name}`")),
        })
    }
}

/// What all threads of a server share.
#[derive(Default)]
pub struct Shop {
    pub options: Options,
    pub book: Book,
    /// Requests that were picked up and have no account yet, and processes of connections.
    under_way: Mutex<usize>,
    ended: Condvar,
}

impl Shop {
    pub fn new(options: Options) -> Shop {
        Shop { options, ..Shop::default() }
    }

    /// Waits until every request with a response has its account: its client may know the response before.
    pub fn wait_for_accounts(&self) {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        while *under_way > 0 {
            under_way = self.ended.wait(under_way).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn one_began(&self) {
        *self.under_way.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    }

    fn one_ended(&self) {
        *self.under_way.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.ended.notify_all();
    }
}

/// Starts to listen and to serve in its own threads; returns where it listens.
///
/// # Errors
///
/// The address, a thread or a file cannot be had.
pub fn start(shop: &Arc<Shop>) -> io::Result<String> {
    let (listener, address) = Listener::bind(&shop.options)?;
    let shop = Arc::clone(shop);
    let serve: fn(&Arc<Shop>, &Listener) -> io::Result<()> = match shop.options.model {
        Model::Threads => threads::run,
        Model::Pool => pool::run_hopping,
        Model::Handoff => pool::run_handing_over,
        Model::Loop => event_loop::run,
        Model::Processes => processes::run,
        Model::Ring => ring::run,
    };
    thread::Builder::new().name("serve".to_owned()).spawn(move || {
        if let Err(error) = serve(&shop, &listener) {
            panic!("the planted server cannot serve: {error}");
        }
    })?;
    Ok(address)
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    fn bind(options: &Options) -> io::Result<(Listener, String)> {
        match &options.unix {
            Some(path) => Ok((Listener::Unix(UnixListener::bind(path)?), path.display().to_string())),
            None => {
                let listener = TcpListener::bind((options.ip.unwrap_or(Ipv4Addr::LOCALHOST), 0))?;
                let address = listener.local_addr()?.to_string();
                Ok((Listener::Tcp(listener), address))
            }
        }
    }

    /// The next connection and its peer's port, 0 where peers have none.
    fn accept(&self) -> io::Result<(OwnedFd, u16)> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, peer) = listener.accept()?;
                stream.set_nodelay(true)?;
                Ok((stream.into(), peer.port()))
            }
            Listener::Unix(listener) => Ok((listener.accept()?.0.into(), 0)),
        }
    }
}

/// A thread of the server; its panic reports failures on standard error.
fn spawn(name: &str, body: impl FnOnce() -> io::Result<()> + Send + 'static) -> io::Result<()> {
    let body = move || {
        if let Err(error) = body()
            && !is_of_the_peer(&error)
        {
            panic!("the planted server cannot go on: {error}");
        }
    };
    thread::Builder::new().name(name.to_owned()).spawn(body).map(drop)
}

/// A client that disconnects is not an error of the server.
fn is_of_the_peer(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
}
