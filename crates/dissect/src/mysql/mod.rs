//! The protocol of MySQL and MariaDB: commands, and where their responses end.
//!
//! The login is not a request. Of a response only the headers of its packets and the first bytes of some are needed;
//! a result set whose packets were not all captured ends with the last write before the next command. Whether the
//! server marks ends by EOF packets is seen from the responses themselves, so a joined connection is read like any
//! other. A compressed connection is not read. The file of `LOAD DATA LOCAL INFILE` is counted, not read.

mod command;
mod login;
mod response;

use crate::digest::{Dialect, DigestId};
use crate::event::{Protocol, RequestKind};
use crate::exchanges::Until;
use crate::names::Names;
use crate::protocols::Context;
use crate::sessions::SessionId;
use crate::tap::{Step, View};
pub use command::MySqlCommand;
use login::Login;
use response::Response;

#[derive(Debug)]
pub(crate) struct MySql {
    /// The login is not over.
    login: bool,
    /// The capabilities in the server's greeting, once it was seen.
    offered: u32,
    /// Both sides compress once the login is over.
    compressed: bool,
    /// The client's last packet had the maximum length: the next one continues it.
    client_continued: bool,
    /// The client's bytes may be out of step: only a whole command is accepted as one.
    strict: bool,
    statements: Names,
    last_prepared: Option<DigestId>,
    /// A statement that is not known was prepared before the connection was seen.
    prepared_before: bool,
    response: Response,
    session: Login,
}

impl MySql {
    pub(crate) fn fresh() -> MySql {
        let response = Response::with_eof_packets(true);
        MySql { login: true, prepared_before: false, response, ..MySql::joined() }
    }

    pub(crate) fn joined() -> MySql {
        MySql {
            login: false,
            offered: u32::MAX,
            compressed: false,
            client_continued: false,
            strict: false,
            statements: Names::default(),
            last_prepared: None,
            prepared_before: true,
            response: Response::default(),
            session: Login::default(),
        }
    }

    pub(crate) fn session(&self) -> SessionId {
        self.session.id()
    }

    pub(crate) fn restart_client(&mut self) {
        self.client_continued = false;
        self.strict = true;
    }

    pub(crate) fn restart_server(&mut self) {
        self.response.restart();
    }

    pub(crate) fn takes_data(&self) -> bool {
        self.response.takes_file()
    }

    pub(crate) fn lose(&mut self) {
        self.prepared_before = false;
        if self.login {
            // What the login agrees on may be among what is lost.
            self.response = Response::default();
        }
    }

    pub(crate) fn client_frame(&mut self, view: View<'_>, context: &mut Context<'_>) -> Step {
        let packet = match Packet::read(view, TEXT_BYTES) {
            Ok(packet) => packet,
            Err(step) => return step,
        };
        let continues = std::mem::replace(&mut self.client_continued, packet.length == PACKET_MOST);
        if continues {
            context.exchanges.complete(packet.end);
            return Step::Taken(packet.total());
        }
        if self.login {
            self.login_packet(&packet, context);
            return Step::Taken(packet.total());
        }
        // Packets that continue an exchange (LOCAL INFILE, a change of user) have other sequence numbers.
        if packet.sequence != 0 {
            return if self.strict { Step::Bad } else { Step::Taken(packet.total()) };
        }
        let Some((&code, arguments)) = packet.payload.split_first() else {
            return if packet.length == 0 { Step::Bad } else { Step::Need };
        };
        let command = MySqlCommand(code);
        if !command.is_known() {
            return Step::Bad;
        }
        self.strict = false;
        self.session.handle_command(command, arguments);
        let digest = self.digest(command, arguments, &packet, context);
        let kind = RequestKind::MySql(code);
        if !command.has_response() {
            context.exchanges.add_without_response((packet.at, packet.end), kind, digest, context.events);
            return Step::Taken(packet.total());
        }
        if !context.exchanges.begin(packet.at, kind, digest, Until::Response) {
            return Step::Bad;
        }
        if let Some(newest) = context.exchanges.newest().filter(|_| command == MySqlCommand::QUERY) {
            newest.statements_most = context.digests.statements(digest);
        }
        if self.client_continued {
            context.exchanges.extend(packet.end);
        } else {
            context.exchanges.complete(packet.end);
        }
        Step::Taken(packet.total())
    }

    /// The client's reply to the greeting, or its request to encrypt, or more of the login.
    fn login_packet(&mut self, packet: &Packet<'_>, context: &mut Context<'_>) {
        let &[a, b, c, d, ..] = packet.payload else { return };
        let agreed = u32::from_le_bytes([a, b, c, d]) & self.offered;
        // The first packet of the client; after a request to encrypt, the second.
        if !matches!(packet.sequence, 1 | 2) {
            return;
        }
        if packet.sequence == 1 && packet.length == ENCRYPT_BYTES && agreed & CLIENT_SSL != 0 {
            *context.switch = Some(Protocol::Tls);
            return;
        }
        self.session.handle_login(packet.payload, agreed, context.digests);
        self.compressed = agreed & (CLIENT_COMPRESS | CLIENT_ZSTD) != 0;
        self.response = Response::with_eof_packets(agreed & CLIENT_DEPRECATE_EOF == 0);
    }

    fn digest(
        &mut self,
        command: MySqlCommand,
        arguments: &[u8],
        packet: &Packet<'_>,
        context: &mut Context<'_>,
    ) -> DigestId {
        let number = || arguments.first_chunk().map(|number| u32::from_le_bytes(*number));
        match command {
            MySqlCommand::QUERY | MySqlCommand::STMT_PREPARE => {
                // A client of MySQL 8 sends the count of its attributes and of their sets, 0 and 1, first.
                let text = arguments.strip_prefix(&[0, 1]).unwrap_or(arguments);
                let cut = (packet.payload.len() as u64) < packet.length;
                context.digests.statement(Dialect::MySql, text, cut)
            }
            MySqlCommand::STMT_EXECUTE | MySqlCommand::STMT_BULK_EXECUTE | MySqlCommand::STMT_FETCH => {
                let digest = match number() {
                    // MariaDB: the statement prepared last, whose number has not come yet.
                    Some(u32::MAX) => self.last_prepared,
                    Some(number) => self.statements.digest_of_number(u64::from(number)),
                    None => None,
                };
                digest.unwrap_or_else(|| {
                    let name = number().map_or_else(|| "?".to_owned(), |number| number.to_string());
                    let unseen = context.unseen_statement(Protocol::MySql, &name, self.prepared_before);
                    number()
                        .into_iter()
                        .for_each(|number| self.statements.set_number(u64::from(number), unseen));
                    unseen
                })
            }
            _ => {
                if command == MySqlCommand::STMT_CLOSE {
                    self.statements.remove_number(u64::from(number().unwrap_or(u32::MAX)));
                }
                context.digests.named(Protocol::MySql, command.name())
            }
        }
    }

    pub(crate) fn server_frame(&mut self, view: View<'_>, context: &mut Context<'_>) -> Step {
        let packet = match Packet::read(view, RESPONSE_BYTES) {
            Ok(packet) => packet,
            Err(step) => return step,
        };
        if self.login {
            return self.greeting(&packet, context);
        }
        let newest_prepared = context.exchanges.newest().filter(|newest| newest.kind == PREPARE);
        self.last_prepared = newest_prepared.map(|newest| newest.digest).or(self.last_prepared);
        let step = self.response.packet(&packet, &mut self.statements, context);
        if let Some(is_ok) = self.response.take_ended() {
            self.session.handle_response(is_ok, context.digests);
        }
        step
    }

    /// The server's packets until the login is over.
    fn greeting(&mut self, packet: &Packet<'_>, context: &mut Context<'_>) -> Step {
        match (packet.sequence, packet.payload.first()) {
            (0, Some(10)) => {
                if let Some(offered) = capabilities(packet.payload) {
                    self.offered = offered;
                }
            }
            (2.., Some(0)) => {
                self.login = false;
                if self.compressed {
                    *context.switch = Some(Protocol::Compressed);
                }
            }
            (0, Some(0xff)) | (1.., _) => {}
            _ => return Step::Bad,
        }
        Step::Taken(packet.total())
    }
}

/// One packet: 3 bytes of length, its sequence number, and the payload as far as it is wanted and captured.
pub(super) struct Packet<'a> {
    at: u64,
    end: u64,
    length: u64,
    sequence: u8,
    payload: &'a [u8],
    /// What follows the packet in the same view.
    after: &'a [u8],
}

impl<'a> Packet<'a> {
    #[inline]
    fn read(view: View<'a>, wanted: usize) -> Result<Packet<'a>, Step> {
        let &[a, b, c, sequence, ref rest @ ..] = view.bytes else { return Err(Step::Need) };
        let length = u64::from(u32::from_le_bytes([a, b, c, 0]));
        let whole = usize::try_from(length).unwrap_or(usize::MAX);
        let wanted = whole.min(wanted);
        if rest.len() < wanted && (!view.cut || rest.is_empty()) {
            return Err(Step::Need);
        }
        let payload = &rest[..rest.len().min(wanted)];
        let after = rest.get(whole..).unwrap_or_default();
        Ok(Packet { at: view.at, end: view.at + HEADER_BYTES + length, length, sequence, payload, after })
    }

    fn total(&self) -> u64 {
        HEADER_BYTES + self.length
    }
}

/// The capabilities in the greeting, after the text of the version.
fn capabilities(greeting: &[u8]) -> Option<u32> {
    let version = memchr::memchr(0, greeting)?;
    // Thread id, the first part of the salt, a filler; then low capabilities, charset, status, high capabilities.
    let fields = greeting.get(version + 1 + 13..)?;
    let &[a, b, _, _, _, c, d, ..] = fields else { return None };
    Some(u32::from_le_bytes([a, b, c, d]))
}

const HEADER_BYTES: u64 = 4;
const PACKET_MOST: u64 = 0xff_ffff;
/// How much of a statement is read for its digest.
const TEXT_BYTES: usize = 4_096;
/// The longest beginning that matters: a greeting's capabilities after a version of 60 characters.
const RESPONSE_BYTES: usize = 96;
/// A request to encrypt is a login that ends before the user's name.
const ENCRYPT_BYTES: u64 = 32;
const PREPARE: RequestKind = RequestKind::MySql(MySqlCommand::STMT_PREPARE.0);

const CLIENT_COMPRESS: u32 = 1 << 5;
const CLIENT_SSL: u32 = 1 << 11;
const CLIENT_DEPRECATE_EOF: u32 = 1 << 24;
const CLIENT_ZSTD: u32 = 1 << 26;
