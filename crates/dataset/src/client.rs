//! One blocking connection: a statement, then its response. No time is measured here.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use codec::{Ended, Event, Judgement, Key, Next, Opening, Origin, Protocol, Session, StatementIndex};
use engine::Place;
use rustix::net::sockopt::set_socket_keepalive;
use units::Nanos;

use crate::script::{Row, Task};

/// How long a server may take to accept a connection, and for each message of a login.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection that is logged in.
pub struct Client<P: Protocol> {
    protocol: Arc<P>,
    session: P::Session,
    socket: Box<dyn Socket>,
    /// Read, and not yet taken by the session.
    unread: Vec<u8>,
    /// Whether the session has more to report without new bytes.
    more: bool,
    out: Vec<u8>,
    key: u64,
    /// When a login is given up.
    deadline: Option<Nanos>,
    /// A statement was sent and its response was not read to its end: the next bytes belong to it.
    awaits_response: bool,
}

trait Socket: Read + Write + Send {
    fn set_patience(&self, patience: Option<Duration>) -> io::Result<()>;
}

impl Socket for TcpStream {
    fn set_patience(&self, patience: Option<Duration>) -> io::Result<()> {
        self.set_read_timeout(patience)
    }
}

impl Socket for UnixStream {
    fn set_patience(&self, patience: Option<Duration>) -> io::Result<()> {
        self.set_read_timeout(patience)
    }
}

impl<P: Protocol<Journey = Task>> Client<P> {
    /// Connects to the server of `protocol` at `place` and logs in.
    ///
    /// # Errors
    ///
    /// One line with the server's words, if there were any.
    pub fn connect(protocol: &Arc<P>, place: &Place) -> anyhow::Result<Client<P>> {
        let socket = connected(place)?;
        socket.set_patience(Some(PATIENCE))?;
        let session = protocol.session(Origin(0));
        let protocol = Arc::clone(protocol);
        let (unread, out) = (Vec::new(), Vec::new());
        let mut client = Client {
            protocol,
            session,
            socket,
            unread,
            more: false,
            out,
            key: 0,
            deadline: None,
            awaits_response: false,
        };
        if client.session.open(&mut client.out) != Opening::Ready {
            client.flush()?;
            client.deadline = Some(clock::now() + Nanos(PATIENCE.as_nanos() as u64));
            while client.next_event().context("cannot log in")? != Event::Opened {}
            client.deadline = None;
        }
        // A statement, such as one that makes an index, takes as long as it takes.
        client.socket.set_patience(None)?;
        Ok(client)
    }

    /// Ends waits for a response after so long: for statements that take no time.
    pub(crate) fn limit_waits(&self, patience: Duration) -> io::Result<()> {
        self.socket.set_patience(Some(patience))
    }

    /// Executes one statement, and returns the first row of its result; empty if it has none.
    ///
    /// # Errors
    ///
    /// When the server refuses it, in the server's words. When the connection ends or the server does not respond in
    /// time: then [`Client::is_usable`] is false, and every later statement is refused.
    pub(crate) fn run(&mut self, task: Task) -> anyhow::Result<Row> {
        if self.awaits_response {
            bail!("the server did not respond to an earlier statement");
        }
        self.awaits_response = true;
        self.key += 1;
        let _ = self.session.request(&task, Key(self.key), &mut self.out);
        self.flush()?;
        let reply = loop {
            match self.next_event()? {
                Event::Finished(_, reply) => break reply,
                Event::Failed(..) => bail!("the server ended a statement without a response"),
                _ => {}
            }
        };
        self.awaits_response = false;
        if reply.judgement != Judgement::Good {
            bail!("the server refused a statement: {}", self.words().unwrap_or("it gave no reason"));
        }
        if !self.session.is_reusable() {
            bail!("the server leaves a transaction open after a statement; set autocommit = 1 for this user");
        }
        let ended = Ended::Answered { session: &mut self.session, judgement: reply.judgement };
        match self.protocol.advance(task, ended) {
            Next::Then { journey: Task::Answer(row), .. } => Ok(row),
            _ => Ok(Row::new()),
        }
    }

    /// The one value of a query whose result has one row; `None` if it is NULL.
    ///
    /// # Errors
    ///
    /// As for [`Client::run`], and for a row that is longer than a session keeps.
    pub(crate) fn value(&mut self, statement: StatementIndex) -> anyhow::Result<Option<String>> {
        let row = self.run(Task::Plain(statement))?;
        row.into_iter().next().context("the row is longer than what is kept of a result (256 KiB)")
    }

    /// Whether the connection can execute another statement.
    pub(crate) fn is_usable(&self) -> bool {
        !self.awaits_response
    }

    fn next_event(&mut self) -> anyhow::Result<Event> {
        loop {
            if self.more || !self.unread.is_empty() {
                let step = match self.session.handle_input(&self.unread, &mut self.out) {
                    Ok(step) => step,
                    Err(error) => {
                        let words = self.words().map(str::to_owned);
                        return Err(words.map_or_else(|| error.into(), |words| anyhow!("{words}")));
                    }
                };
                self.unread.drain(..step.consumed);
                self.more = step.more;
                self.flush()?;
                if let Some(event) = step.event {
                    return Ok(event);
                }
            }
            self.read()?;
        }
    }

    fn read(&mut self) -> anyhow::Result<()> {
        if self.deadline.is_some_and(|deadline| clock::now() > deadline) {
            bail!("the server does not complete the login");
        }
        let mut bytes = [0; 64 << 10];
        let count = match self.socket.read(&mut bytes) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => bail!("the server does not respond"),
            Err(error) => return Err(error).context("the connection to the server broke"),
        };
        if count == 0 {
            self.session.handle_close();
            bail!("{}", self.words().unwrap_or("the server closed the connection"));
        }
        self.unread.extend_from_slice(&bytes[..count]);
        Ok(())
    }

    fn words(&self) -> Option<&str> {
        self.session.server_message().filter(|words| !words.is_empty())
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        if !self.out.is_empty() {
            self.socket.write_all(&self.out).context("the connection to the server broke")?;
            self.out.clear();
        }
        Ok(())
    }
}

fn connected(place: &Place) -> anyhow::Result<Box<dyn Socket>> {
    let tcp = |addresses: &mut dyn Iterator<Item = std::net::SocketAddr>, name: String| {
        let mut last = anyhow!("{name} has no address");
        for address in addresses {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    // A statement has no time limit; a server that is gone is noticed.
                    set_socket_keepalive(&stream, true)?;
                    return Ok(Box::new(stream) as Box<dyn Socket>);
                }
                Err(error) => last = anyhow!(error).context(format!("cannot connect to {name}")),
            }
        }
        Err(last)
    };
    match place {
        Place::Address(address) => tcp(&mut std::iter::once(*address), address.to_string()),
        Place::Name { host, port } => {
            let mut found = (host.as_str(), *port)
                .to_socket_addrs()
                .with_context(|| format!("cannot look up `{host}`"))?;
            tcp(&mut found, format!("{host}:{port}"))
        }
        Place::Unix(path) => {
            let stream = UnixStream::connect(path);
            let stream = stream.with_context(|| format!("cannot connect to `{}`", path.display()))?;
            Ok(Box::new(stream))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::mpsc;
    use std::thread;

    use database::sql::Statement;
    use database::{Database, DatabaseKind, DatabaseParts, Login, ServerPlan, TlsUse};

    use super::*;
    use crate::script::Tasks;

    fn redis() -> Arc<Database<Tasks>> {
        let login = Login { user: String::new(), password: String::new(), database: None };
        let plan = ServerPlan { login, tls: TlsUse::Never, is_local_socket: false, trusts_public_key: false };
        let parts = DatabaseParts {
            kind: DatabaseKind::Redis,
            statements: vec![Statement::text("INFO all")],
            servers: vec![plan],
            setup: Vec::new(),
            result_bytes: 1 << 20,
            pipeline: 1,
        };
        Arc::new(Database::new(Tasks { rows: 1 }, parts).unwrap())
    }

    /// If this fails, a response that comes late is taken for that of the next statement, and so are all later ones.
    #[test]
    fn a_late_response_is_not_that_of_the_next_statement() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = Place::Address(listener.local_addr().unwrap());
        let (release, released) = mpsc::sync_channel::<()>(1);
        let server = thread::spawn(move || {
            let mut socket = listener.accept().unwrap().0;
            let mut bytes = [0; 1_024];
            assert!(socket.read(&mut bytes).unwrap() > 0);
            socket.write_all(b"%2\r\n+server\r\n+redis\r\n+version\r\n+7.0.15\r\n").unwrap();
            released.recv().unwrap();
            socket.write_all(b"$4\r\nlate\r\n").unwrap();
            // Until the client closes.
            while socket.read(&mut bytes).is_ok_and(|count| count > 0) {}
        });
        let mut client = Client::connect(&redis(), &place).unwrap();
        client.limit_waits(Duration::from_millis(50)).unwrap();
        let error = client.run(Task::Plain(0)).unwrap_err();
        assert_eq!((error.to_string().as_str(), client.is_usable()), ("the server does not respond", false));
        release.send(()).unwrap();
        let error = client.run(Task::Plain(0)).unwrap_err();
        assert_eq!(error.to_string(), "the server did not respond to an earlier statement");
        drop(client);
        server.join().unwrap();
    }
}
