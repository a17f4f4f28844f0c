//! A minimal client that hides nothing: raw bytes out, raw bytes in.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use target::{Options, Server};

pub fn start() -> Server {
    Server::start(Options::default()).unwrap()
}

pub struct Client {
    pub stream: TcpStream,
    /// Read and not yet consumed.
    kept: Vec<u8>,
}

#[derive(Debug, PartialEq)]
pub struct Response {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

/// How the peer ended the connection.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    Fin,
    Reset,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        Client { stream, kept: Vec::new() }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    pub fn get(&mut self, target: &str) -> Response {
        self.send(get(target));
        self.response()
    }

    /// The next response, with a body unless its status has none.
    pub fn response(&mut self) -> Response {
        let head = self.head();
        let body = if head.status < 200 || matches!(head.status, 204 | 304) {
            Vec::new()
        } else if head.head.contains("Transfer-Encoding: chunked") {
            self.chunks()
        } else {
            let length = head.head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
            self.take(length.parse().unwrap())
        };
        Response { body, ..head }
    }

    /// The head of the next response.
    pub fn head(&mut self) -> Response {
        let head = self.until(b"\r\n\r\n");
        let status = head.strip_prefix("HTTP/1.1 ").unwrap()[..3].parse().unwrap();
        Response { status, head, body: Vec::new() }
    }

    /// Everything up to the end of the connection, and how it ended.
    pub fn rest(&mut self) -> (Vec<u8>, End) {
        let mut bytes = std::mem::take(&mut self.kept);
        let end = match self.stream.read_to_end(&mut bytes) {
            Ok(_) => End::Fin,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => End::Reset,
            Err(error) => panic!("{error}"),
        };
        (bytes, end)
    }

    pub fn take(&mut self, count: usize) -> Vec<u8> {
        while self.kept.len() < count {
            self.more();
        }
        self.kept.drain(..count).collect()
    }

    fn chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let line = self.until(b"\r\n");
            let size = usize::from_str_radix(line.trim(), 16).unwrap();
            body.extend(self.take(size));
            assert_eq!(self.take(2), b"\r\n");
            if size == 0 {
                return body;
            }
        }
    }

    fn until(&mut self, end: &[u8]) -> String {
        loop {
            if let Some(at) = self.kept.windows(end.len()).position(|window| window == end) {
                return String::from_utf8(self.take(at + end.len())).unwrap();
            }
            self.more();
        }
    }

    fn more(&mut self) {
        let mut buffer = [0; 64 << 10];
        let count = self.stream.read(&mut buffer).unwrap();
        assert!(count > 0, "closed after {:?}", String::from_utf8_lossy(&self.kept));
        self.kept.extend_from_slice(&buffer[..count]);
    }
}

pub fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n")
}
