//! HTTP/1.1, both sides: heads are read, bodies are skipped by their length.
//!
//! A head whose end was not captured is parsed as far as it goes; the request is then complete, or the response over,
//! at the end of its turn. A chunked body needs the line before each chunk.

mod body;
mod head;

use crate::event::{Protocol, RequestKind, Status};
use crate::exchanges::Until;
use crate::protocols::Context;
use crate::tap::{HELD_BYTES, Step, View};
use body::Body;
use head::{Framing, Head};

#[derive(Debug, Default)]
pub(crate) struct Http1 {
    request_body: Body,
    response_body: Body,
}

impl Http1 {
    pub(crate) fn restart_client(&mut self) {
        self.request_body = Body::None;
    }

    pub(crate) fn restart_server(&mut self) {
        self.response_body = Body::None;
    }

    pub(crate) fn client_frame(&mut self, view: View<'_>, context: &mut Context<'_>) -> Step {
        if self.request_body != Body::None {
            let step = self.request_body.frame(view);
            if let (Step::Taken(length), Body::None) = (step, self.request_body) {
                context.exchanges.complete(view.at + length);
            }
            return step;
        }
        // Servers skip empty lines before a request (RFC 9112, section 2.2).
        if let [b'\r' | b'\n', ..] = view.bytes {
            return Step::Taken(1);
        }
        let head = match head::request(view) {
            Ok(head) => head,
            Err(step) => return step,
        };
        let digest = context.digests.route(head.method, head.target);
        let until = match head.method {
            b"HEAD" => Until::Head,
            b"CONNECT" => Until::Tunnel,
            _ => Until::Response,
        };
        if !context.exchanges.begin(view.at, RequestKind::Http, digest, until) {
            return Step::Bad;
        }
        match (head.length, head.framing) {
            (None, _) => {
                context.exchanges.open_end();
                Step::Taken(view.bytes.len() as u64)
            }
            (Some(length), Framing::Chunked) => {
                self.request_body = Body::Line;
                context.exchanges.extend(view.at + length);
                Step::Taken(length)
            }
            (Some(length), framing) => {
                let length = length.saturating_add(framing.body_bytes());
                context.exchanges.complete(view.at.saturating_add(length));
                Step::Taken(length)
            }
        }
    }

    pub(crate) fn server_frame(&mut self, view: View<'_>, context: &mut Context<'_>) -> Step {
        if self.response_body != Body::None {
            let step = self.response_body.frame(view);
            if let (Step::Taken(length), Body::None) = (step, self.response_body) {
                context.exchanges.end_at(view.at + length);
            }
            return step;
        }
        let head = match head::response(view) {
            Ok(head) => head,
            Err(step) => return step,
        };
        self.response_head(&head, view, context)
    }

    fn response_head(&mut self, head: &Head<'_>, view: View<'_>, context: &mut Context<'_>) -> Step {
        let Some(oldest) = context.exchanges.begin_response(view.at, context.events) else {
            // A server that reports why it closes an idle connection (408).
            context.exchanges.counts.unsolicited += 1;
            let length = head.length.unwrap_or(view.bytes.len() as u64);
            return Step::Taken(length.saturating_add(head.framing.body_bytes()));
        };
        let until = oldest.until;
        let Some(length) = head.length else {
            oldest.status = Status::Http(head.status);
            return Step::Taken(view.bytes.len() as u64);
        };
        if head.status < 200 && head.status != 101 {
            context.exchanges.interim();
            return Step::Taken(length);
        }
        oldest.status = Status::Http(head.status);
        let tunnel = until == Until::Tunnel && head.status < 300;
        if head.status == 101 || tunnel {
            context.exchanges.end_at(view.at + length);
            *context.switch = Some(Protocol::Upgraded);
            return Step::Taken(view.bytes.len() as u64);
        }
        let bodiless = until == Until::Head || matches!(head.status, 204 | 304);
        let length = match head.framing {
            _ if bodiless => length,
            Framing::Length(bytes) => length.saturating_add(bytes),
            Framing::Chunked => {
                self.response_body = Body::Line;
                return Step::Taken(length);
            }
            Framing::None => {
                // The response ends with the connection.
                self.response_body = Body::UntilClose;
                return Step::Taken(length);
            }
        };
        context.exchanges.end_at(view.at.saturating_add(length));
        Step::Taken(length)
    }
}

/// A longer head is not read: servers refuse it too.
const HEAD_MOST: usize = HELD_BYTES;
