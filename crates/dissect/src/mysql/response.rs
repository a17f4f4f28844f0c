//! Finds the end of the response to a command.

use super::{MySqlCommand, PACKET_MOST, Packet};
use crate::event::{RequestKind, Rows, Status};
use crate::names::Names;
use crate::protocols::Context;
use crate::tap::Step;

#[derive(Debug, Default)]
pub(super) struct Response {
    stage: Stage,
    /// The last packet had the maximum length: the next one continues it.
    continued: bool,
    /// A response has ended with this packet, and whether without an error.
    ended: Option<bool>,
    /// EOF packets follow definitions. `None` until that is known.
    eof_packets: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Stage {
    /// The first packet of a response, or of another result set.
    #[default]
    First,
    /// Definitions of columns to come.
    Columns {
        left: u64,
    },
    /// An EOF packet, or the first row.
    Columned,
    Rows,
    /// The client sends a file; then the response begins again.
    File,
    /// Definitions of a prepared statement, and the EOF packets after its one or two groups of them.
    Prepared {
        left: u32,
        eofs_left: u8,
        groups: u8,
    },
}

impl Response {
    /// EOF packets follow definitions unless the login agrees on something else.
    pub(super) fn with_eof_packets(eof_packets: bool) -> Response {
        Response { eof_packets: Some(eof_packets), ..Response::default() }
    }

    pub(super) fn restart(&mut self) {
        self.stage = Stage::First;
        self.continued = false;
    }

    /// Whether the client sends the file of `LOAD DATA LOCAL INFILE`.
    pub(super) fn takes_file(&self) -> bool {
        self.stage == Stage::File
    }

    /// Whether a response has ended since the last call, and if so, whether without an error.
    pub(super) fn take_ended(&mut self) -> Option<bool> {
        self.ended.take()
    }

    /// Takes the next packet of the server.
    pub(super) fn packet(
        &mut self,
        packet: &Packet<'_>,
        statements: &mut Names,
        context: &mut Context<'_>,
    ) -> Step {
        let taken = Step::Taken(packet.total());
        if std::mem::replace(&mut self.continued, packet.length == PACKET_MOST) {
            return taken;
        }
        let Some(oldest) = context.exchanges.begin_response(packet.at, context.events) else {
            // The server reports why it closes an idle connection.
            context.exchanges.counts.unsolicited += 1;
            return taken;
        };
        let RequestKind::MySql(command) = oldest.kind else { return Step::Bad };
        let command = MySqlCommand(command);
        if self.stage == Stage::First && packet.sequence == 0 {
            return Step::Bad;
        }
        if command.is_statement() {
            oldest.rows.get_or_insert_default();
        }
        if is_error(packet) {
            if error_number(packet.payload) == PROGRESS {
                return taken;
            }
            oldest.status = Status::MySqlError(error_number(packet.payload));
            return self.ends(packet, context);
        }
        if oldest.status == Status::Unknown {
            oldest.status = Status::Ok;
        }
        let digest = oldest.digest;
        if self.stage == Stage::File {
            self.stage = Stage::First;
        }
        match self.stage {
            Stage::First if command == MySqlCommand::STMT_PREPARE => {
                if let Some(number) = packet.payload.get(1..5).and_then(|bytes| bytes.first_chunk()) {
                    statements.set_number(u64::from(u32::from_le_bytes(*number)), digest);
                }
                self.prepared(packet, context)
            }
            Stage::First => self.first(command, packet, context),
            Stage::Columns { left } => {
                self.stage = if left > 1 { Stage::Columns { left: left - 1 } } else { Stage::Columned };
                taken
            }
            Stage::Columned if is_eof(packet) => {
                self.eof_packets = Some(true);
                self.stage = Stage::Rows;
                let cursor = flags(packet).is_some_and(|flags| flags & CURSOR_EXISTS != 0);
                if cursor { self.ends(packet, context) } else { taken }
            }
            Stage::Columned | Stage::Rows | Stage::File => self.row(command, packet, context),
            Stage::Prepared { left, eofs_left, groups } => {
                self.definition(packet, (left, eofs_left, groups), context)
            }
        }
    }

    fn first(&mut self, command: MySqlCommand, packet: &Packet<'_>, context: &mut Context<'_>) -> Step {
        let taken = Step::Taken(packet.total());
        match (command, packet.payload.first()) {
            (MySqlCommand::STATISTICS, _) => self.ends(packet, context),
            // Another authentication method is requested.
            (MySqlCommand::CHANGE_USER, Some(0xfe | 0x01)) => taken,
            (_, Some(0x00)) => {
                let affected = packet.payload.get(1..).and_then(length_encoded).map_or(0, |(rows, _)| rows);
                count(context, |rows| rows.affected = rows.affected.saturating_add(affected));
                if !has_more(packet) {
                    return self.ends(packet, context);
                }
                add_statement(context);
                taken
            }
            (MySqlCommand::FIELD_LIST | MySqlCommand::STMT_FETCH, Some(_)) => {
                self.row(command, packet, context)
            }
            (_, Some(0xfe)) if packet.length < 9 => self.ends(packet, context),
            (_, Some(0xfb)) => {
                self.stage = Stage::File;
                taken
            }
            (_, Some(_)) => {
                let Some((columns, length)) = length_encoded(packet.payload) else { return Step::Bad };
                if columns == 0 || columns > COLUMNS_MOST {
                    return Step::Bad;
                }
                // MariaDB adds after the count whether definitions that the client already knows follow.
                let known = packet.payload.get(length) == Some(&0);
                self.stage = if known { Stage::Columned } else { Stage::Columns { left: columns } };
                taken
            }
            (_, None) => Step::Bad,
        }
    }

    /// A row, or what ends the rows.
    fn row(&mut self, command: MySqlCommand, packet: &Packet<'_>, context: &mut Context<'_>) -> Step {
        self.stage = Stage::Rows;
        // A row begins like this only if its first column is longer than the longest packet.
        if packet.payload.first() != Some(&0xfe) || packet.length == PACKET_MOST {
            if command.is_statement() {
                count(context, |rows| rows.sent = rows.sent.saturating_add(1));
            }
            return Step::Taken(packet.total());
        }
        if has_more(packet) {
            self.stage = Stage::First;
            add_statement(context);
            return Step::Taken(packet.total());
        }
        self.ends(packet, context)
    }

    fn prepared(&mut self, packet: &Packet<'_>, context: &mut Context<'_>) -> Step {
        let Some(&[a, b, c, d]) = packet.payload.get(5..9).and_then(|bytes| bytes.first_chunk()) else {
            return Step::Bad;
        };
        let (columns, parameters) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
        let left = u32::from(columns) + u32::from(parameters);
        let groups = u8::from(columns > 0) + u8::from(parameters > 0);
        if left == 0 {
            return self.ends(packet, context);
        }
        self.stage = Stage::Prepared { left, eofs_left: groups, groups };
        Step::Taken(packet.total())
    }

    /// A definition of a prepared statement, or the EOF packet after its group.
    fn definition(
        &mut self,
        packet: &Packet<'_>,
        (mut left, mut eofs_left, groups): (u32, u8, u8),
        context: &mut Context<'_>,
    ) -> Step {
        if is_eof(packet) {
            self.eof_packets = Some(true);
            eofs_left = eofs_left.saturating_sub(1);
        } else {
            left = left.saturating_sub(1);
        }
        self.stage = Stage::Prepared { left, eofs_left, groups };
        let eof_follows = match self.eof_packets {
            Some(eof_packets) => eof_packets && eofs_left > 0,
            // The first group had none.
            None if groups == 2 && eofs_left == 2 => false,
            // The login was not seen: the server writes the response at once, so an EOF packet would be in view.
            None => packet.after.get(4) == Some(&0xfe),
        };
        if left == 0 && !eof_follows { self.ends(packet, context) } else { Step::Taken(packet.total()) }
    }

    fn ends(&mut self, packet: &Packet<'_>, context: &mut Context<'_>) -> Step {
        self.stage = Stage::First;
        self.ended = Some(!is_error(packet));
        add_statement(context);
        context.exchanges.end_at(packet.end);
        Step::Taken(packet.total())
    }
}

/// Adds to the rows of the statement whose response is being read.
fn count(context: &mut Context<'_>, add: impl FnOnce(&mut Rows)) {
    if let Some(rows) = context.exchanges.oldest().and_then(|oldest| oldest.rows.as_mut()) {
        add(rows);
    }
}

/// A statement of the oldest request has its result.
fn add_statement(context: &mut Context<'_>) {
    if let Some(oldest) = context.exchanges.oldest() {
        oldest.add_statement();
    }
}

fn is_error(packet: &Packet<'_>) -> bool {
    packet.payload.first() == Some(&0xff)
}

fn is_eof(packet: &Packet<'_>) -> bool {
    packet.length == 5 && packet.payload.first() == Some(&0xfe)
}

fn error_number(payload: &[u8]) -> u16 {
    payload.get(1..3).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u16::from_le_bytes(*bytes))
}

fn has_more(packet: &Packet<'_>) -> bool {
    flags(packet).is_some_and(|flags| flags & MORE_RESULTS != 0)
}

/// The server's status in an OK or EOF packet. `None` if it was not captured.
fn flags(packet: &Packet<'_>) -> Option<u16> {
    let payload = packet.payload;
    let at = if is_eof(packet) {
        3
    } else {
        let (_, rows) = length_encoded(payload.get(1..)?)?;
        let (_, id) = length_encoded(payload.get(1 + rows..)?)?;
        1 + rows + id
    };
    payload.get(at..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
}

/// A length-encoded number and its own length.
fn length_encoded(bytes: &[u8]) -> Option<(u64, usize)> {
    let (first, rest) = bytes.split_first()?;
    let length = match first {
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        0xfb | 0xff => return None,
        small => return Some((u64::from(*small), 1)),
    };
    let mut number = [0; 8];
    number[..length].copy_from_slice(rest.get(..length)?);
    Some((u64::from_le_bytes(number), 1 + length))
}

const MORE_RESULTS: u16 = 0x0008;
const CURSOR_EXISTS: u16 = 0x0040;
/// The server's own limit is 4,096.
const COLUMNS_MOST: u64 = 1 << 16;
/// MariaDB reports progress as an error of this number.
const PROGRESS: u16 = 0xffff;
