//! A blocking client: it sends what it is given and reads the replies.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

pub struct Client {
    stream: BufReader<Box<dyn Stream>>,
    /// Its own port; 0 if it has none.
    pub port: u16,
    pub sent: u64,
}

impl Client {
    /// Connects to `127.0.0.1:PORT` or a path.
    pub fn connect(address: &str) -> Client {
        let (stream, port): (Box<dyn Stream>, u16) = if address.starts_with('/') {
            (Box::new(UnixStream::connect(address).unwrap()), 0)
        } else {
            let stream = TcpStream::connect(address).unwrap();
            stream.set_nodelay(true).unwrap();
            let port = stream.local_addr().unwrap().port();
            (Box::new(stream), port)
        };
        Client { stream: BufReader::new(stream), port, sent: 0 }
    }

    /// Sends a GET, and returns the body of the response.
    pub fn http(&mut self, path: &str) -> Vec<u8> {
        self.http_pipelined(&[path]).remove(0)
    }

    /// Sends all requests in one write, then reads all responses.
    pub fn http_pipelined(&mut self, paths: &[&str]) -> Vec<Vec<u8>> {
        self.send_http(paths);
        paths.iter().map(|_| self.http_answer()).collect()
    }

    pub fn send_http(&mut self, paths: &[&str]) {
        let text: String =
            paths.iter().map(|path| format!("GET {path} HTTP/1.1\r\nHost: planted\r\n\r\n")).collect();
        self.send(text.as_bytes(), paths.len());
    }

    /// Sends one request in this many writes, like an application that flushes too often.
    pub fn send_http_in_pieces(&mut self, path: &str, pieces: usize) {
        let text = format!("GET {path} HTTP/1.1\r\nHost: planted\r\n\r\n");
        let each = text.len().div_ceil(pieces);
        text.as_bytes().chunks(each).for_each(|piece| self.send(piece, 0));
        self.sent += 1;
    }

    pub fn http_answer(&mut self) -> Vec<u8> {
        let (mut length, mut line) = (None, String::new());
        loop {
            line.clear();
            assert!(self.stream.read_line(&mut line).unwrap() > 0, "closed before the answer's end");
            if line.starts_with("HTTP/1.1") {
                assert!(line.contains(" 200 "), "{line}");
            }
            match line.trim_end().split_once(": ") {
                Some(("Content-Length", text)) => length = text.parse().ok(),
                _ if line == "\r\n" => break,
                _ => {}
            }
        }
        let mut body = vec![0; length.unwrap()];
        self.stream.read_exact(&mut body).unwrap();
        body
    }

    /// Sends a line of text, and returns the line that comes back.
    pub fn line(&mut self, recipe: &str) -> String {
        self.send(format!("{recipe}\n").as_bytes(), 1);
        let mut answer = String::new();
        assert!(self.stream.read_line(&mut answer).unwrap() > 0, "closed before the answer's end");
        answer
    }

    fn send(&mut self, bytes: &[u8], requests: usize) {
        self.stream.get_mut().write_all(bytes).unwrap();
        self.sent += requests as u64;
    }
}
