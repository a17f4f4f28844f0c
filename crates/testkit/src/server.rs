//! A server on real sockets that follows a list of actions for each connection. For end-to-end tests.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use units::Nanos;

/// One step of a connection.
#[derive(Debug, Clone)]
pub enum Action {
    /// Reads up to and including these bytes.
    ReadUntil(Vec<u8>),
    Write(Vec<u8>),
    Sleep(Nanos),
    /// Closes the server's side; the client's side stays open.
    ShutdownWrite,
    /// Closes at once with a reset.
    Reset,
    /// Begins the list again.
    Again,
}

/// Listens on its own port; stops, with everything it started, when dropped.
#[derive(Debug)]
pub struct ScriptedServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    stop: AtomicBool,
    streams: Mutex<Vec<TcpStream>>,
}

impl ScriptedServer {
    /// Starts a server whose *k*-th connection follows `scripts[k]`, and later ones the last script. A connection is
    /// closed at the end of its list.
    ///
    /// # Panics
    ///
    /// If there is no script, or no socket or thread is available.
    pub fn start(scripts: Vec<Vec<Action>>) -> ScriptedServer {
        assert!(!scripts.is_empty(), "a server needs at least one script");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port on the loopback device");
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(Shared { stop: AtomicBool::new(false), streams: Mutex::default() });
        let of_acceptor = Arc::clone(&shared);
        let acceptor = std::thread::spawn(move || accept(&listener, &scripts, &of_acceptor));
        ScriptedServer { address, shared, acceptor: Some(acceptor) }
    }

    /// The address to connect to, on loopback.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
        for stream in self.shared.streams.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

fn accept(listener: &TcpListener, scripts: &[Vec<Action>], shared: &Arc<Shared>) {
    std::thread::scope(|scope| {
        for (index, stream) in listener.incoming().enumerate() {
            let Ok(stream) = stream else { continue };
            if let Ok(clone) = stream.try_clone() {
                shared.streams.lock().unwrap_or_else(PoisonError::into_inner).push(clone);
            }
            if shared.stop.load(Ordering::SeqCst) {
                let _ = stream.shutdown(Shutdown::Both);
                return;
            }
            let script = &scripts[index.min(scripts.len() - 1)];
            scope.spawn(move || {
                // Errors are ignored: the client may do anything to the connection.
                let _ = play(&stream, script, &shared.stop);
                let _ = stream.shutdown(Shutdown::Both);
            });
        }
    });
}

fn play(mut stream: &TcpStream, script: &[Action], stop: &AtomicBool) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut unread = Vec::new();
    let mut step = 0;
    while let Some(action) = script.get(step).filter(|_| !stop.load(Ordering::SeqCst)) {
        step += 1;
        match action {
            Action::ReadUntil(end) => read_until(stream, end, &mut unread)?,
            Action::Write(bytes) => stream.write_all(bytes)?,
            Action::Sleep(length) => sleep(*length, stop),
            Action::ShutdownWrite => stream.shutdown(Shutdown::Write)?,
            Action::Reset => {
                // Closing a connection without lingering resets it; see socket(7).
                rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO))?;
                return rustix::net::connect_unspec(stream).map_err(Into::into);
            }
            Action::Again => step = 0,
        }
    }
    Ok(())
}

fn read_until(mut stream: &TcpStream, end: &[u8], unread: &mut Vec<u8>) -> std::io::Result<()> {
    let mut buffer = [0; 16 * 1024];
    loop {
        if let Some(at) = unread.windows(end.len()).position(|window| window == end) {
            unread.drain(..at + end.len());
            return Ok(());
        }
        match stream.read(&mut buffer)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            count => unread.extend_from_slice(&buffer[..count]),
        }
    }
}

/// Sleeps in short parts, so that a test that has ended does not wait for its server.
fn sleep(length: Nanos, stop: &AtomicBool) {
    let due = clock::now() + length;
    while clock::now() < due && !stop.load(Ordering::SeqCst) {
        clock::sleep_until(due.min(clock::now() + SLEEP_PART));
    }
}

/// Short compared with the duration of a test.
const SLEEP_PART: Nanos = Nanos::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(server: &ScriptedServer) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(server.address())?;
        stream.write_all(b"hello\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn it_plays_one_script_a_connection() {
        let read = Action::ReadUntil(b"\n".to_vec());
        let server = ScriptedServer::start(vec![
            vec![read.clone(), Action::Write(b"first".to_vec())],
            vec![read, Action::Reset],
        ]);
        assert_eq!(ask(&server).unwrap(), "first");
        assert_eq!(ask(&server).unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    }

    #[test]
    fn dropping_it_ends_its_sleep() {
        let before = clock::now();
        let server = ScriptedServer::start(vec![vec![Action::Sleep(Nanos::from_secs(60))]]);
        let stream = TcpStream::connect(server.address()).unwrap();
        drop(server);
        drop(stream);
        // A failure would be a hang: anything below the scripted minute shows that the sleep was cut short.
        assert!(clock::now() - before < Nanos::from_secs(30));
    }
}
