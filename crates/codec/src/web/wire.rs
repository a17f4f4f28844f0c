//! The HTTP session of a connection, in plaintext or within TLS.

use std::sync::Arc;

use super::outgoing::Outgoing;
use super::response::{Expect, Facts, Kept};
use crate::http1::Http1Session;
use crate::http2::Http2Session;
use crate::used_protocols::UsedProtocol;
use crate::{CloseEvent, DecodeError, Encoded, Key, Step};

/// Which version of HTTP is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HttpVersion {
    #[default]
    Http1,
    /// HTTP/2 with prior knowledge; over TLS, the server must choose it by ALPN.
    Http2,
    /// The version that the TLS handshake agrees on; HTTP/1.1 if there is no agreement.
    ByAlpn,
}

/// The HTTP session of one connection.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "the large one is the common one, and on the hot path")]
pub(crate) enum Plain {
    Http1(Http1Session),
    Http2(Box<Http2Session>),
}

impl Plain {
    pub(crate) fn new(version: HttpVersion, facts: Arc<Facts>) -> Plain {
        match version {
            HttpVersion::Http1 | HttpVersion::ByAlpn => Plain::Http1(Http1Session::new(facts)),
            HttpVersion::Http2 => Plain::Http2(Box::new(Http2Session::new(facts))),
        }
    }

    pub(crate) fn open(&mut self, facts: &Facts, out: &mut Vec<u8>) {
        match self {
            Plain::Http1(_) => facts.used_protocols.note(UsedProtocol::Http1),
            Plain::Http2(http2) => {
                facts.used_protocols.note(UsedProtocol::Http2);
                http2.open(out);
            }
        }
    }

    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        match self {
            Plain::Http1(http1) => http1.capacity(),
            Plain::Http2(http2) => http2.capacity(),
        }
    }

    #[inline]
    pub(crate) fn request(
        &mut self,
        request: Outgoing<'_>,
        (key, expect): (Key, Expect),
        out: &mut Vec<u8>,
    ) -> Encoded {
        match self {
            Plain::Http1(http1) => {
                request.encode_http1(out);
                http1.expect(key, expect);
                Encoded::Whole
            }
            Plain::Http2(http2) => {
                let (head, body) = request.http2();
                http2.request(head, body, (key, expect), out)
            }
        }
    }

    #[inline]
    pub(crate) fn take_kept(&mut self) -> Option<Kept> {
        match self {
            Plain::Http1(http1) => http1.take_kept(),
            Plain::Http2(http2) => http2.take_kept(),
        }
    }

    #[inline]
    pub(crate) fn handle_input(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Step, DecodeError> {
        match self {
            Plain::Http1(http1) => http1.handle_input(input),
            Plain::Http2(http2) => http2.handle_input(input, out),
        }
    }

    pub(crate) fn handle_close(&mut self) -> CloseEvent {
        match self {
            Plain::Http1(http1) => http1.handle_close(),
            Plain::Http2(http2) => http2.handle_close(),
        }
    }

    pub(crate) fn cancel(&mut self, key: Key, out: &mut Vec<u8>) -> bool {
        match self {
            // Its responses come in the order of the requests, so none can be left out.
            Plain::Http1(_) => false,
            Plain::Http2(http2) => http2.cancel(key, out),
        }
    }

    pub(crate) fn survives_early_response(&self) -> bool {
        matches!(self, Plain::Http2(_))
    }
}
