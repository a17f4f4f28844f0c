//! A server that treats each of its connections exactly as its script defines, with or without TLS, and counts what it
//! did. One thread per connection; not meant to be fast.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use rustix::net::sockopt::set_socket_linger;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use units::Nanos;

/// Two orders of magnitude more than a running client takes to read.
const TO_BE_READ: Nanos = Nanos::from_millis(20);

/// What a server does with one connection. It ends early when the client disconnects, which does not fail the test.
pub type Script = fn(&mut Peer) -> io::Result<()>;

/// The server; stopped when dropped.
pub struct Scripted {
    address: SocketAddr,
    tally: Arc<Tally>,
    ended: Arc<AtomicBool>,
}

/// What the server did.
#[derive(Debug, Default)]
pub struct Tally {
    connections: AtomicU64,
    handshakes: AtomicU64,
    /// Requests read to their end.
    requests: AtomicU64,
    /// Requests with a whole response.
    answered: AtomicU64,
    /// Requests ended otherwise, by the script.
    faults: AtomicU64,
}

impl Scripted {
    /// Starts it on a free port.
    pub fn start(tls: Option<Arc<ServerConfig>>, script: Script) -> Scripted {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let tally = Arc::new(Tally::default());
        let ended = Arc::new(AtomicBool::new(false));
        let (counts, over) = (Arc::clone(&tally), Arc::clone(&ended));
        thread::spawn(move || {
            while let Ok((socket, _)) = listener.accept() {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                counts.connections.fetch_add(1, Ordering::SeqCst);
                let (tls, tally) = (tls.clone(), Arc::clone(&counts));
                thread::spawn(move || {
                    let mut peer = Peer::new(socket, tls, tally);
                    // An error means that the client disconnected, which its record shows.
                    let _ = peer.shake_hands().and_then(|()| script(&mut peer));
                });
            }
        });
        Scripted { address, tally, ended }
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    pub fn connections(&self) -> u64 {
        self.tally.connections.load(Ordering::SeqCst)
    }

    pub fn handshakes(&self) -> u64 {
        self.tally.handshakes.load(Ordering::SeqCst)
    }

    pub fn requests(&self) -> u64 {
        self.tally.requests.load(Ordering::SeqCst)
    }

    pub fn answered(&self) -> u64 {
        self.tally.answered.load(Ordering::SeqCst)
    }

    pub fn faults(&self) -> u64 {
        self.tally.faults.load(Ordering::SeqCst)
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
    }
}

/// The server's side of one connection.
pub struct Peer {
    transport: Transport,
    tally: Arc<Tally>,
    /// Read and not consumed yet.
    pub inbox: Vec<u8>,
}

#[expect(clippy::large_enum_variant, reason = "there are few of them")]
enum Transport {
    Clear(TcpStream),
    Tls(StreamOwned<ServerConnection, TcpStream>),
}

impl Peer {
    fn new(socket: TcpStream, tls: Option<Arc<ServerConfig>>, tally: Arc<Tally>) -> Peer {
        socket.set_nodelay(true).unwrap();
        let transport = match tls {
            None => Transport::Clear(socket),
            Some(config) => Transport::Tls(StreamOwned::new(ServerConnection::new(config).unwrap(), socket)),
        };
        Peer { transport, tally, inbox: Vec::new() }
    }

    fn shake_hands(&mut self) -> io::Result<()> {
        let Transport::Tls(stream) = &mut self.transport else { return Ok(()) };
        while stream.conn.is_handshaking() {
            if let Err(error) = stream.conn.complete_io(&mut stream.sock) {
                // The alert is on its way. What the client sent in the meantime is read, so that the connection does not
                // end with a reset that overtakes it.
                let _ = self.cut();
                return Err(error);
            }
        }
        self.tally.handshakes.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn socket(&mut self) -> &mut TcpStream {
        match &mut self.transport {
            Transport::Clear(socket) => socket,
            Transport::Tls(stream) => &mut stream.sock,
        }
    }

    /// Reads more into the inbox; an error when the client has closed.
    pub fn fill(&mut self) -> io::Result<()> {
        let mut buffer = [0; 16_384];
        let count = match &mut self.transport {
            Transport::Clear(socket) => socket.read(&mut buffer)?,
            Transport::Tls(stream) => stream.read(&mut buffer)?,
        };
        self.inbox.extend_from_slice(&buffer[..count]);
        if count == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    /// From now on a read gives up after `time`.
    pub fn give_up_reading_after(&mut self, time: Option<Nanos>) {
        let time = time.map(|time| std::time::Duration::from_nanos(time.0));
        self.socket().set_read_timeout(time).unwrap();
    }

    /// Reads one request without a body, in HTTP/1.1.
    pub fn request(&mut self) -> io::Result<()> {
        loop {
            if let Some(at) = self.inbox.windows(4).position(|four| four == b"\r\n\r\n") {
                self.inbox.drain(..at + 4);
                self.note_request();
                return Ok(());
            }
            self.fill()?;
        }
    }

    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.transport {
            Transport::Clear(socket) => socket.write_all(bytes),
            Transport::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
    }

    /// Bypasses TLS, which the client does not expect.
    pub fn write_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.socket().write_all(bytes)
    }

    /// Closes according to the rules: over TLS the client is notified first.
    pub fn close(&mut self) -> io::Result<()> {
        if let Transport::Tls(stream) = &mut self.transport {
            stream.conn.send_close_notify();
            stream.conn.write_tls(&mut stream.sock)?;
        }
        self.cut()
    }

    /// Ends the connection with a FIN and without notice. Everything that still arrives is read: with unread data, the
    /// kernel would send a reset instead (RFC 9293, 3.6.1).
    pub fn cut(&mut self) -> io::Result<()> {
        self.socket().shutdown(std::net::Shutdown::Write)?;
        let mut rest = Vec::new();
        self.socket().read_to_end(&mut rest).map(|_| ())
    }

    /// Waits until the client's program, and not just its kernel, has had time to read what was sent: a reset discards
    /// unread data.
    pub fn let_it_be_read(&mut self) {
        clock::sleep_until(clock::now() + TO_BE_READ);
    }

    /// Ends the connection with a reset.
    pub fn reset(&mut self) -> io::Result<()> {
        set_socket_linger(self.socket(), Some(std::time::Duration::ZERO))?;
        // Dropping it closes it.
        Ok(())
    }

    /// Holds the connection until the client has closed it, and sends nothing.
    pub fn hold(&mut self) -> io::Result<()> {
        self.socket().read_to_end(&mut Vec::new()).map(|_| ())
    }

    pub fn note_request(&self) {
        self.tally.requests.fetch_add(1, Ordering::SeqCst);
    }

    pub fn note_answered(&self) {
        self.tally.answered.fetch_add(1, Ordering::SeqCst);
    }

    pub fn note_faults(&self, count: u64) {
        self.tally.faults.fetch_add(count, Ordering::SeqCst);
    }
}
