//! The planted server in each of the models that servers use: which threads read, work, and write.
//!
//! All models share the connection, the steps and the account; none shares code with what is tested.

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
    /// Directory for accounts and private files.
    pub folder: PathBuf,
    /// Address to listen on; loopback if `None`. The server chooses the port.
    pub ip: Option<Ipv4Addr>,
    /// Listens on this path instead of a port.
    pub unix: Option<PathBuf>,
    /// Threads of a pool.
    pub workers: usize,
    /// How long a thread waits before it reads what has arrived: time in the socket's queue.
    pub late_read: Nanos,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Model {
    /// One thread per connection.
    #[default]
    Threads,
    /// Connections move between the threads of a pool; one thread reads, works and writes.
    Pool,
    /// One thread reads, another works and writes.
    Handoff,
    /// One thread, which reads and works on everything that is ready and then writes all responses.
    Loop,
    /// One process per connection.
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

/// State shared by all threads of a server.
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

    /// Waits until every request with a response has its account: its client may see the response earlier.
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
/// The address, a thread or a file is not available.
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

    /// The next connection and its peer's port, or 0 if peers have none.
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

/// Starts a thread of the server; a failure panics, which is reported on standard error.
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
