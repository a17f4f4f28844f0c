//! Who is logged in on a connection, and which schema is selected.
//!
//! Known from the login, and from the commands that change it once the server has accepted them. A `USE` within a
//! packet of several statements, or in a stored procedure, is not seen.

use super::MySqlCommand;
use crate::digest::Digests;
use crate::sessions::{Session, SessionId, name};

#[derive(Debug, Default)]
pub(super) struct Login {
    now: Session,
    id: SessionId,
    /// What the command in progress asks for. Clients of MySQL send one command at a time.
    asked: Option<Session>,
}

impl Login {
    pub(super) fn id(&self) -> SessionId {
        self.id
    }

    /// The client's reply to the greeting, as far as it was captured.
    pub(super) fn handle_login(&mut self, payload: &[u8], agreed: u32, digests: &mut Digests) {
        let Some((user, rest)) = payload.get(LOGIN_HEAD..).and_then(terminated) else { return };
        let schema = (agreed & CLIENT_CONNECT_WITH_DB != 0).then(|| rest_of_login(rest, agreed)).flatten();
        self.set(Session { user: name(user), schema: schema.and_then(name) }, digests);
    }

    /// A command begins.
    pub(super) fn handle_command(&mut self, command: MySqlCommand, arguments: &[u8]) {
        self.asked = match command {
            MySqlCommand::INIT_DB => Some(self.with_schema(arguments)),
            MySqlCommand::QUERY => used_schema(arguments).map(|schema| self.with_schema(schema)),
            MySqlCommand::CHANGE_USER => change_of_user(arguments),
            _ => None,
        };
    }

    /// The response to the command has ended.
    pub(super) fn handle_response(&mut self, is_ok: bool, digests: &mut Digests) {
        if let Some(asked) = self.asked.take().filter(|_| is_ok) {
            self.set(asked, digests);
        }
    }

    fn with_schema(&self, schema: &[u8]) -> Session {
        Session { user: self.now.user.clone(), schema: name(schema) }
    }

    fn set(&mut self, session: Session, digests: &mut Digests) {
        self.id = digests.session_id(session.clone());
        self.now = session;
    }
}

/// The schema after the user's name: the response to the server's challenge comes first.
fn rest_of_login(rest: &[u8], agreed: u32) -> Option<&[u8]> {
    let schema = if agreed & (CLIENT_PLUGIN_AUTH_LENENC | CLIENT_SECURE_CONNECTION) != 0 {
        // A longer challenge would have a longer length; no method has one.
        let (&length, rest) = rest.split_first().filter(|(length, _)| **length < 251)?;
        rest.get(usize::from(length)..)?
    } else {
        terminated(rest)?.1
    };
    Some(terminated(schema)?.0)
}

/// User, response to the challenge, and schema of a change of user.
fn change_of_user(arguments: &[u8]) -> Option<Session> {
    let (user, rest) = terminated(arguments)?;
    let (&length, rest) = rest.split_first()?;
    let schema = rest.get(usize::from(length)..).and_then(terminated).map(|(schema, _)| schema);
    Some(Session { user: name(user), schema: schema.and_then(name) })
}

/// The schema of `USE name`.
fn used_schema(statement: &[u8]) -> Option<&[u8]> {
    let (verb, rest) = statement.split_at_checked(4)?;
    if !verb.eq_ignore_ascii_case(b"use ") {
        return None;
    }
    let is_edge = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'`' | b';');
    let begin = rest.iter().position(|byte| !is_edge(byte))?;
    let end = rest.iter().rposition(|byte| !is_edge(byte))?;
    Some(&rest[begin..=end])
}

/// The bytes up to a zero byte, and those after it.
fn terminated(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr(0, bytes)?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

/// Capabilities, longest packet, character set, and a filler.
const LOGIN_HEAD: usize = 32;
const CLIENT_CONNECT_WITH_DB: u32 = 1 << 3;
const CLIENT_SECURE_CONNECTION: u32 = 1 << 15;
const CLIENT_PLUGIN_AUTH_LENENC: u32 = 1 << 21;

#[cfg(test)]
mod tests {
    use super::*;

    fn session(login: &Login, digests: &Digests) -> (Option<String>, Option<String>) {
        let Session { user, schema } = digests.session(login.id()).clone();
        (user.map(String::from), schema.map(String::from))
    }

    fn named(user: &str, schema: Option<&str>) -> (Option<String>, Option<String>) {
        (Some(user.to_owned()), schema.map(str::to_owned))
    }

    #[test]
    fn a_login_names_user_and_schema_in_each_of_its_forms() {
        let head = [0; LOGIN_HEAD];
        let with_db = CLIENT_CONNECT_WITH_DB;
        for (rest, agreed, schema) in [
            (&b"app\0\x03xyzshop\0plugin\0"[..], with_db | CLIENT_SECURE_CONNECTION, Some("shop")),
            (b"app\0\x00shop\0", with_db | CLIENT_PLUGIN_AUTH_LENENC, Some("shop")),
            (b"app\0old\0shop\0", with_db, Some("shop")),
            (b"app\0\x03xyzplugin\0", CLIENT_SECURE_CONNECTION, None),
            (b"app\0\x30xyz", with_db | CLIENT_SECURE_CONNECTION, None),
            (b"app\0", with_db | CLIENT_SECURE_CONNECTION, None),
        ] {
            let (mut login, mut digests) = (Login::default(), Digests::default());
            login.handle_login(&[&head, rest].concat(), agreed, &mut digests);
            assert_eq!(session(&login, &digests), named("app", schema), "{rest:?}");
        }
        let (mut login, mut digests) = (Login::default(), Digests::default());
        login.handle_login(&head, with_db, &mut digests);
        assert_eq!(login.id(), SessionId::UNKNOWN);
    }

    /// If this fails, requests are attributed to a schema that the server refused.
    #[test]
    fn a_schema_changes_when_the_server_has_accepted_it() {
        let (mut login, mut digests) = (Login::default(), Digests::default());
        login.handle_login(&[&[0; LOGIN_HEAD][..], b"app\0\0"].concat(), 0, &mut digests);
        let mut ask = |command, arguments: &[u8], is_ok| {
            login.handle_command(command, arguments);
            login.handle_response(is_ok, &mut digests);
            session(&login, &digests)
        };
        assert_eq!(ask(MySqlCommand::INIT_DB, b"shop", true), named("app", Some("shop")));
        assert_eq!(ask(MySqlCommand::INIT_DB, b"vault", false), named("app", Some("shop")));
        assert_eq!(ask(MySqlCommand::QUERY, b"Use `ware house` ;", true), named("app", Some("ware house")));
        assert_eq!(ask(MySqlCommand::QUERY, b"user_list()", true), named("app", Some("ware house")));
        assert_eq!(ask(MySqlCommand::CHANGE_USER, b"eve\0\x02abdb\0", true), named("eve", Some("db")));
        assert_eq!(ask(MySqlCommand::CHANGE_USER, b"eve\0\0", true), named("eve", None));
    }
}
