//! The commands of MySQL and MariaDB by number, and which of them the server counts as questions.

/// A command: the first byte of the packet that begins a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MySqlCommand(pub u8);

impl MySqlCommand {
    pub const QUIT: MySqlCommand = MySqlCommand(0x01);
    pub const INIT_DB: MySqlCommand = MySqlCommand(0x02);
    pub const QUERY: MySqlCommand = MySqlCommand(0x03);
    pub const FIELD_LIST: MySqlCommand = MySqlCommand(0x04);
    pub const STATISTICS: MySqlCommand = MySqlCommand(0x09);
    pub const PING: MySqlCommand = MySqlCommand(0x0e);
    pub const CHANGE_USER: MySqlCommand = MySqlCommand(0x11);
    pub const BINLOG_DUMP: MySqlCommand = MySqlCommand(0x12);
    pub const TABLE_DUMP: MySqlCommand = MySqlCommand(0x13);
    pub const STMT_PREPARE: MySqlCommand = MySqlCommand(0x16);
    pub const STMT_EXECUTE: MySqlCommand = MySqlCommand(0x17);
    pub const STMT_SEND_LONG_DATA: MySqlCommand = MySqlCommand(0x18);
    pub const STMT_CLOSE: MySqlCommand = MySqlCommand(0x19);
    pub const STMT_RESET: MySqlCommand = MySqlCommand(0x1a);
    pub const STMT_FETCH: MySqlCommand = MySqlCommand(0x1c);
    pub const BINLOG_DUMP_GTID: MySqlCommand = MySqlCommand(0x1e);
    pub const STMT_BULK_EXECUTE: MySqlCommand = MySqlCommand(0xfa);

    /// The name in the protocol's documents, without `COM_`.
    pub fn name(self) -> &'static str {
        match self.0 {
            0xfa => "STMT_BULK_EXECUTE",
            code => NAMES.get(usize::from(code)).copied().unwrap_or("(unknown command)"),
        }
    }

    pub(super) fn is_known(self) -> bool {
        usize::from(self.0) < NAMES.len() && self.0 != 0 || self == MySqlCommand::STMT_BULK_EXECUTE
    }

    pub(super) fn has_response(self) -> bool {
        !matches!(self, MySqlCommand::QUIT | MySqlCommand::STMT_CLOSE | MySqlCommand::STMT_SEND_LONG_DATA)
            && !self.is_stream()
    }

    /// It executes a statement, or fetches rows of one: its response says how many rows.
    pub(super) fn is_statement(self) -> bool {
        matches!(
            self,
            MySqlCommand::QUERY
                | MySqlCommand::STMT_EXECUTE
                | MySqlCommand::STMT_FETCH
                | MySqlCommand::STMT_BULK_EXECUTE
        )
    }

    /// An endless stream follows: the binary log.
    pub(super) fn is_stream(self) -> bool {
        matches!(self, MySqlCommand::BINLOG_DUMP | MySqlCommand::TABLE_DUMP | MySqlCommand::BINLOG_DUMP_GTID)
    }
}

const NAMES: [&str; 0x20] = [
    "SLEEP",
    "QUIT",
    "INIT_DB",
    "QUERY",
    "FIELD_LIST",
    "CREATE_DB",
    "DROP_DB",
    "REFRESH",
    "SHUTDOWN",
    "STATISTICS",
    "PROCESS_INFO",
    "CONNECT",
    "PROCESS_KILL",
    "DEBUG",
    "PING",
    "TIME",
    "DELAYED_INSERT",
    "CHANGE_USER",
    "BINLOG_DUMP",
    "TABLE_DUMP",
    "CONNECT_OUT",
    "REGISTER_SLAVE",
    "STMT_PREPARE",
    "STMT_EXECUTE",
    "STMT_SEND_LONG_DATA",
    "STMT_CLOSE",
    "STMT_RESET",
    "SET_OPTION",
    "STMT_FETCH",
    "DAEMON",
    "BINLOG_DUMP_GTID",
    "RESET_CONNECTION",
];
