//! The login: what proves to the server who this is, round by round.
//!
//! The password leaves this client readable only over TLS or a Unix domain socket.

use md5::{Digest, Md5};

use super::commands::{push_proof, push_sasl_choice};
use super::messages::Reader;
use super::scram::{MECHANISM, Scram};
use crate::{Context, Login};
use codec::DecodeError;

/// The requests of a server, by number.
mod request {
    pub const OK: u32 = 0;
    pub const PASSWORD: u32 = 3;
    pub const MD5: u32 = 5;
    pub const SASL: u32 = 10;
    pub const SASL_CONTINUE: u32 = 11;
    pub const SASL_FINAL: u32 = 12;
}

/// A login in progress.
#[derive(Debug, Default)]
pub(super) struct LoginProgress {
    scram: Option<Scram>,
    /// The server has shown that it knows the password.
    is_proven: bool,
}

impl LoginProgress {
    /// Takes a request for authentication, and appends the reply. `is_private`: nobody else can read what is sent.
    pub(super) fn handle(
        &mut self,
        context: Context<'_>,
        is_private: bool,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), DecodeError> {
        let login = &context.plan().login;
        let mut reader = Reader::new(payload, "request for authentication");
        let request = reader.u32_be()?;
        if !matches!(request, request::OK | request::SASL_FINAL) && login.password.is_empty() {
            return refused("the server asks for a password; give one with --password-file or PGPASSWORD");
        }
        match request {
            request::OK if self.scram.is_some() && !self.is_proven => {
                refused("the server did not prove that it knows the password")
            }
            request::OK => Ok(()),
            request::PASSWORD if !is_private => refused(
                "the server asks for the password itself, which is sent only over TLS with sslmode=require (or verify-full) or a Unix domain socket",
            ),
            request::PASSWORD => {
                push_proof(&[login.password.as_bytes(), &[0]].concat(), out);
                Ok(())
            }
            request::MD5 => {
                push_proof(&md5(login, reader.take(4)?), out);
                Ok(())
            }
            request::SASL => self.begin_scram(reader, out),
            request::SASL_CONTINUE => {
                let scram = self.scram.as_mut().ok_or_else(|| reader.malformed())?;
                match scram.last(reader.rest(), &login.password, &context.server.scram) {
                    Some(last) => {
                        push_proof(last.as_bytes(), out);
                        Ok(())
                    }
                    None => refused("the server's part of SCRAM cannot be used"),
                }
            }
            request::SASL_FINAL => {
                let scram = self.scram.as_ref().ok_or_else(|| reader.malformed())?;
                self.is_proven = scram.is_proven_by(reader.rest());
                if self.is_proven { Ok(()) } else { refused("the server does not know the password itself") }
            }
            // Kerberos, GSSAPI, SSPI.
            _ => refused("the server asks for a login method that is not known, such as GSSAPI"),
        }
    }

    fn begin_scram(&mut self, mut reader: Reader<'_>, out: &mut Vec<u8>) -> Result<(), DecodeError> {
        if self.scram.is_some() {
            return Err(reader.malformed());
        }
        loop {
            match reader.until_zero()? {
                b"" => return refused("the server offers no login method that is known; SCRAM-SHA-256 is"),
                name if name == MECHANISM.as_bytes() => break,
                _ => {}
            }
        }
        let scram = self.scram.insert(Scram::new());
        push_sasl_choice(MECHANISM, &scram.first(), out);
        Ok(())
    }
}

fn refused<T>(what: &'static str) -> Result<T, DecodeError> {
    Err(DecodeError::Login { what })
}

/// The proof of PostgreSQL's older method, with the zero at its end.
fn md5(login: &Login, salt: &[u8]) -> Vec<u8> {
    let hex = |parts: &[&[u8]]| -> String {
        let mut digest = Md5::new();
        parts.iter().for_each(|part| digest.update(part));
        digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    };
    let stored = hex(&[login.password.as_bytes(), login.user.as_bytes()]);
    format!("md5{}\0", hex(&[stored.as_bytes(), salt])).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stored form is that of `SELECT 'md5' || md5('secret' || 'app')` of PostgreSQL.
    #[test]
    fn md5_is_over_the_stored_form_and_the_salt() {
        let login = Login { user: "app".into(), password: "secret".into(), database: None };
        let stored = Md5::digest(b"secretapp").iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let proof = Md5::digest([stored.as_bytes(), &[1, 2, 3, 4]].concat());
        let proof = proof.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(md5(&login, &[1, 2, 3, 4]), format!("md5{proof}\0").into_bytes());
    }
}
