//! The login: what proves to the server who this is, round by round.
//!
//! `mysql_common` computes the proofs. The password leaves this client readable only over TLS or a Unix domain socket,
//! and encrypted for a key that cannot be verified only if the user said so.

use mysql_common::auth::plugins::caching_sha2_password::scramble_sha256;
use mysql_common::auth::plugins::client_ed25519::ClientEd25519;
use mysql_common::auth::plugins::mysql_native_password::scramble_native;
use mysql_common::auth::plugins::{ChallengeResponsePlugin, Context};

use super::public_key;
use crate::{Login, ServerPlan, printable};
use codec::DecodeError;

/// A login method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Native,
    CachingSha2,
    Ed25519,
    /// The password itself; only over TLS or a Unix domain socket.
    Clear,
}

impl Method {
    fn named(name: &[u8]) -> Option<Method> {
        METHODS.iter().find(|(known, _)| known.as_bytes() == name).map(|(_, method)| *method)
    }

    pub(super) fn name(self) -> &'static str {
        METHODS.iter().find(|(_, method)| *method == self).map_or("", |(name, _)| *name)
    }
}

const METHODS: [(&str, Method); 4] = [
    ("mysql_native_password", Method::Native),
    ("caching_sha2_password", Method::CachingSha2),
    ("client_ed25519", Method::Ed25519),
    ("mysql_clear_password", Method::Clear),
];

/// A login in progress.
#[derive(Debug)]
pub(super) struct LoginProgress {
    method: Method,
    nonce: Vec<u8>,
    /// Whether nobody else can read what is sent.
    is_private: bool,
    /// Whether the server was asked for its public key.
    awaits_key: bool,
}

/// What the server said in a round of the login.
#[derive(Debug, Clone, Copy)]
pub(super) enum Round<'a> {
    /// Use another method, with these random bytes.
    Switch { method: &'a [u8], nonce: &'a [u8] },
    /// More of the current method.
    More(&'a [u8]),
}

/// What follows: a message to send, or waiting for the server.
pub(super) enum Reply {
    Send(Vec<u8>),
    Wait,
}

/// Why a login cannot go on, and the server's word about it.
pub(super) struct Refusal {
    pub error: DecodeError,
    pub words: String,
}

fn refusal(what: &'static str, words: &[u8]) -> Refusal {
    Refusal { error: DecodeError::Login { what }, words: printable(words) }
}

impl LoginProgress {
    /// Begins with the method of the greeting; one that this client does not know is expected to be switched.
    pub(super) fn new(method: &[u8], nonce: &[u8], is_private: bool) -> LoginProgress {
        let method = Method::named(method).filter(|method| *method != Method::Clear);
        LoginProgress {
            method: method.unwrap_or(Method::Native),
            nonce: nonce.to_vec(),
            is_private,
            awaits_key: false,
        }
    }

    pub(super) fn method(&self) -> Method {
        self.method
    }

    /// The first proof of the current method; empty for an empty password.
    pub(super) fn proof(&self, login: &Login) -> Result<Vec<u8>, Refusal> {
        let password = login.password.as_bytes();
        let bad_nonce = || refusal("the server's random bytes have the wrong length", b"");
        match self.method {
            Method::Native => {
                let nonce = self.nonce.get(..20).ok_or_else(bad_nonce)?;
                Ok(scramble_native(nonce, password).map(Vec::from).unwrap_or_default())
            }
            Method::CachingSha2 => {
                let nonce = self.nonce.get(..20).and_then(|nonce| nonce.try_into().ok());
                let nonce = nonce.ok_or_else(bad_nonce)?;
                Ok(scramble_sha256(nonce, password).map(Vec::from).unwrap_or_default())
            }
            Method::Ed25519 => {
                let nonce = self.nonce.get(..32).ok_or_else(bad_nonce)?;
                let signed = ClientEd25519::default().run(Password(password), nonce);
                let signed = signed.map_err(|_| bad_nonce())?;
                Ok(signed.data().unwrap_or_default().to_vec())
            }
            Method::Clear if self.is_private => Ok([password, &[0]].concat()),
            Method::Clear => Err(refusal(
                "the server asks for the password itself, which is sent only over TLS or a Unix domain socket",
                b"",
            )),
        }
    }

    /// Takes a round of the login.
    pub(super) fn handle(&mut self, round: Round<'_>, plan: &ServerPlan) -> Result<Reply, Refusal> {
        match round {
            Round::Switch { method, nonce } => {
                let known = Method::named(method);
                self.method = known
                    .ok_or_else(|| refusal("the server asks for a login method that is not known", method))?;
                // Each method takes as many bytes as it needs: a zero at the end may be one of them.
                self.nonce = nonce.to_vec();
                self.awaits_key = false;
                self.proof(&plan.login).map(Reply::Send)
            }
            Round::More(data) if self.method == Method::CachingSha2 => self.continue_sha2(data, plan),
            Round::More(_) => Err(refusal("the server goes on with a login that has no more rounds", b"")),
        }
    }

    /// The server knows the password from before, or needs it in full.
    fn continue_sha2(&mut self, data: &[u8], plan: &ServerPlan) -> Result<Reply, Refusal> {
        const KNOWN: u8 = 3;
        const FULL: u8 = 4;
        const KEY_REQUEST: u8 = 2;
        if self.awaits_key {
            self.awaits_key = false;
            return self.encrypted(data, &plan.login).map(Reply::Send);
        }
        match data {
            [KNOWN] => Ok(Reply::Wait),
            [FULL] if self.is_private => Ok(Reply::Send([plan.login.password.as_bytes(), &[0]].concat())),
            // MySQL's own clients refuse this too, unless an option says to trust the key.
            [FULL] if !plan.trusts_public_key => Err(refusal(
                "the server needs the whole password, and its key cannot be verified: use sslmode=require, or get-server-public-key=1",
                b"",
            )),
            [FULL] => {
                self.awaits_key = true;
                Ok(Reply::Send(vec![KEY_REQUEST]))
            }
            _ => Err(refusal("the server's login goes on in an unknown way", b"")),
        }
    }

    /// The password, readable with the server's private key alone.
    fn encrypted(&self, key: &[u8], login: &Login) -> Result<Vec<u8>, Refusal> {
        let mut secret = [login.password.as_bytes(), &[0]].concat();
        let nonce = self.nonce.get(..20).unwrap_or(&self.nonce);
        for (byte, with) in secret.iter_mut().zip(nonce.iter().cycle()) {
            *byte ^= with;
        }
        public_key::encrypt(&secret, key)
            .ok_or_else(|| refusal("the server's public key cannot be used: use TLS", b""))
    }
}

/// What a method of `mysql_common` needs to know.
struct Password<'a>(&'a [u8]);

impl Context for Password<'_> {
    fn pass(&self) -> &[u8] {
        self.0
    }

    fn is_ipc_transport(&self) -> bool {
        false
    }

    fn is_tls_transport(&self) -> bool {
        false
    }

    fn scramble(&self) -> &[u8] {
        &[]
    }

    fn server_key_pem(&self) -> Option<&[u8]> {
        None
    }
}
