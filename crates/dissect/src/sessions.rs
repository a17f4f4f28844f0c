//! Users and schemas of connections, as far as the login was seen.

use std::collections::HashMap;

/// The number of a user and schema in the table of [`Digests`](crate::Digests).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct SessionId(pub u32);

impl SessionId {
    /// The login was not seen, was encrypted, or the protocol has none.
    pub const UNKNOWN: SessionId = SessionId(0);
    /// All that had no room in the table.
    pub const OTHER: SessionId = SessionId(1);
}

/// Who sends the requests of a connection, and which schema (PostgreSQL: database) they use.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Session {
    /// `None` if the login was not seen.
    pub user: Option<Box<str>>,
    /// `None` if it is not known, or none is selected.
    pub schema: Option<Box<str>>,
}

/// The distinct sessions of a server: at most [`SESSIONS_MOST`].
#[derive(Debug)]
pub(crate) struct Sessions {
    ids: HashMap<Session, SessionId>,
    rows: Vec<Session>,
}

impl Default for Sessions {
    fn default() -> Sessions {
        let other = Session { user: Some("other".into()), schema: None };
        Sessions { ids: HashMap::new(), rows: vec![Session::default(), other] }
    }
}

impl Sessions {
    pub(crate) fn id(&mut self, session: Session) -> SessionId {
        if session == Session::default() {
            return SessionId::UNKNOWN;
        }
        if let Some(id) = self.ids.get(&session) {
            return *id;
        }
        if self.rows.len() >= SESSIONS_MOST {
            return SessionId::OTHER;
        }
        let id = SessionId(u32::try_from(self.rows.len()).unwrap_or(SessionId::OTHER.0));
        self.rows.push(session.clone());
        self.ids.insert(session, id);
        id
    }

    pub(crate) fn row(&self, id: SessionId) -> &Session {
        self.rows.get(id.0 as usize).unwrap_or(&self.rows[0])
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }
}

/// A name of a user or schema, cut to 64 bytes; MySQL and PostgreSQL allow at most 80 and 63.
pub(crate) fn name(bytes: &[u8]) -> Option<Box<str>> {
    let bytes = &bytes[..bytes.len().min(64)];
    (!bytes.is_empty()).then(|| String::from_utf8_lossy(bytes).into())
}

/// Users times schemas of a server with many tenants.
const SESSIONS_MOST: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_folds_what_is_new_into_the_other_row() {
        let mut sessions = Sessions::default();
        let of = |n: usize| Session { user: name(format!("user{n}").as_bytes()), schema: None };
        for n in 0..2_000 {
            let id = sessions.id(of(n));
            assert_eq!(id == SessionId::OTHER, n >= SESSIONS_MOST - 2, "{n}");
        }
        assert_eq!((sessions.len(), sessions.id(of(3))), (SESSIONS_MOST, SessionId(5)));
        assert_eq!(sessions.id(Session::default()), SessionId::UNKNOWN);
        assert_eq!(name(b""), None);
    }
}
