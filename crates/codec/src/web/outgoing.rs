//! Requests as they are sent: prepared once for the run, or rendered for one journey.

use bytes::Bytes;

use super::request::{Request, RequestError};
use crate::Origin;

/// Properties of a request that affect the form of its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResponseForm {
    /// The request is HEAD: the response ends with its head, even if that announces a body.
    pub head_only: bool,
    /// The request has `Connection: close`, so the connection ends after the response.
    pub last: bool,
}

impl ResponseForm {
    fn of(request: &Request) -> ResponseForm {
        ResponseForm { head_only: request.is_head(), last: request.asks_close() }
    }
}

/// One of the run's requests, in every form in which it may be sent.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub http1: Vec<u8>,
    /// Without its body.
    pub http2: http::Request<()>,
    pub body: Bytes,
    pub form: ResponseForm,
}

impl Prepared {
    pub(super) fn new(request: &Request) -> Result<Prepared, RequestError> {
        let mut http1 = Vec::new();
        request.encode(&mut http1);
        Ok(Prepared {
            http1,
            http2: request.http2_head()?,
            body: Bytes::copy_from_slice(&request.body),
            form: ResponseForm::of(request),
        })
    }
}

/// A request as it is passed to a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Outgoing<'a> {
    Prepared(&'a Prepared),
    Rendered(&'a Rendered),
}

impl Outgoing<'_> {
    #[inline]
    pub(crate) fn form(self) -> ResponseForm {
        match self {
            Outgoing::Prepared(prepared) => prepared.form,
            Outgoing::Rendered(rendered) => rendered.form,
        }
    }

    /// Appends it in the form of HTTP/1.1.
    #[inline]
    pub(crate) fn encode_http1(self, out: &mut Vec<u8>) {
        match self {
            Outgoing::Prepared(prepared) => out.extend_from_slice(&prepared.http1),
            Outgoing::Rendered(rendered) => rendered.request.encode(out),
        }
    }

    /// Its head and body in the form of HTTP/2. Copies a rendered body; a prepared body is shared.
    pub(crate) fn http2(self) -> (http::Request<()>, Bytes) {
        match self {
            Outgoing::Prepared(prepared) => (prepared.http2.clone(), prepared.body.clone()),
            Outgoing::Rendered(rendered) => (
                rendered.request.http2_head().expect("a request is rendered only after this was tried"),
                Bytes::copy_from_slice(&rendered.request.body),
            ),
        }
    }
}

/// A request made for one journey, from the contents of earlier responses.
///
/// Content of a response is not trusted: [`Rendered::new`] refuses what would break the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    origin: Origin,
    request: Request,
    form: ResponseForm,
}

impl Rendered {
    /// Checks `request`, and prepares it for the server with index `origin`.
    ///
    /// # Errors
    ///
    /// [`RequestError`] if the request cannot be sent as it is, over HTTP/1.1 or HTTP/2.
    pub fn new(origin: Origin, request: Request) -> Result<Rendered, RequestError> {
        request.check()?;
        request.check_http2()?;
        Ok(Rendered { origin, form: ResponseForm::of(&request), request })
    }

    /// The index of the server that the request goes to.
    pub fn origin(&self) -> Origin {
        self.origin
    }
}
