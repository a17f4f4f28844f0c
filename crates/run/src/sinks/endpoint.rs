//! `/metrics` for Prometheus during a run. Peers are assumed to be hostile: few at a time, each for a short time, with
//! small requests, and one response per connection.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use export::prometheus::{self, Form};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, ALLOW, CONTENT_TYPE, HOST, HeaderValue};
use hyper::http::uri::Authority;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::time;

use super::state::State;

/// What a scraper gets.
pub(crate) trait Scraped: Send + Sync + 'static {
    /// The figures so far; `None` before there are any.
    fn text(&self, form: Form) -> Option<String>;
    /// The figures are final.
    fn has_ended(&self) -> bool;
    /// Nothing is served any more.
    fn is_over(&self) -> bool;
    /// The final figures were served.
    fn close(&self);
}

impl Scraped for State {
    fn text(&self, form: Form) -> Option<String> {
        self.snapshot(|snapshot| prometheus::render(snapshot, form))
    }

    fn has_ended(&self) -> bool {
        self.ends_within(Duration::ZERO)
    }

    fn is_over(&self) -> bool {
        self.is_over_within(Duration::ZERO)
    }

    fn close(&self) {
        State::close(self);
    }
}

/// There are few scrapers. Connections beyond this number are closed.
const MOST_PEERS: usize = 16;

/// From the first byte of a connection to the last byte of its response.
const PEER_TIMEOUT: Duration = Duration::from_secs(10);

/// The smallest buffer that hyper takes; a scraper's request is a few hundred bytes.
const REQUEST_BYTES: usize = 8_192;
const REQUEST_HEADERS: usize = 64;

/// How soon the end of the run is noticed.
const NAP: Duration = Duration::from_millis(50);

/// # Errors
///
/// When the address is in use, or is not an address of this host.
pub(crate) fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let open = || format!("cannot listen on {address}; use another address for --prometheus");
    let listener = TcpListener::bind(address).with_context(open)?;
    listener.set_nonblocking(true).with_context(open)?;
    Ok(listener)
}

/// Serves until the run is over: its end, or one more scrape after that if configured.
pub(crate) fn serve<S: Scraped>(listener: TcpListener, state: &Arc<S>) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("nothing was served: {error}"))?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener);
        let listener = listener.map_err(|error| format!("nothing was served: {error}"))?;
        let peers = Arc::new(());
        while !state.is_over() {
            let Ok(accepted) = time::timeout(NAP, listener.accept()).await else { continue };
            let Ok((stream, _)) = accepted else {
                // Out of descriptors, or the peer has gone: an immediate retry would not help.
                time::sleep(NAP).await;
                continue;
            };
            if Arc::strong_count(&peers) > MOST_PEERS {
                continue;
            }
            let is_local = stream.local_addr().is_ok_and(|address| address.ip().to_canonical().is_loopback());
            let (peer, state) = (Arc::clone(&peers), Arc::clone(state));
            tokio::spawn(async move {
                let has_all = AtomicBool::new(false);
                let respond = service_fn(|request| {
                    let ended = state.has_ended();
                    let respond = respond(&request, is_local, &*state);
                    let is_whole = request.method() == Method::GET && respond.status() == StatusCode::OK;
                    has_all.store(ended && is_whole, Ordering::Relaxed);
                    async move { Ok::<_, Infallible>(respond) }
                });
                let connection = hyper::server::conn::http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(PEER_TIMEOUT)
                    .max_buf_size(REQUEST_BYTES)
                    .max_headers(REQUEST_HEADERS)
                    .keep_alive(false)
                    .serve_connection(TokioIo::new(stream), respond);
                // Errors of a peer do not concern the run.
                let ended = time::timeout(PEER_TIMEOUT, connection).await;
                if has_all.load(Ordering::Relaxed) && matches!(ended, Ok(Ok(()))) {
                    state.close();
                }
                drop(peer);
            });
        }
        Ok(())
    })
}

fn respond(request: &Request<Incoming>, is_local: bool, state: &impl Scraped) -> Response<Full<Bytes>> {
    // A web page open on this host can reach loopback under a host name of its choice (DNS rebinding).
    if is_local && !request.headers().get_all(HOST).iter().all(names_this_host) {
        return plain(StatusCode::FORBIDDEN, "this is served under a name of this host only\n");
    }
    if request.uri().path() != "/metrics" {
        return plain(StatusCode::NOT_FOUND, "the metrics are at /metrics\n");
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut refused = plain(StatusCode::METHOD_NOT_ALLOWED, "use GET\n");
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    let accept = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
    let form = Form::accepted(accept);
    match state.text(form) {
        Some(text) => typed(StatusCode::OK, form.content_type(), text),
        None => plain(StatusCode::SERVICE_UNAVAILABLE, "there are no figures yet\n"),
    }
}

/// On loopback: a loopback address, `localhost`, or the name of this host, which distributions map to loopback.
fn names_this_host(host: &HeaderValue) -> bool {
    let Ok(authority) = Authority::try_from(host.as_bytes()) else { return false };
    let name = authority.host();
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    address.map_or_else(
        |_| {
            let own = rustix::system::uname();
            let own = own.nodename().to_string_lossy();
            name.eq_ignore_ascii_case("localhost") || name.eq_ignore_ascii_case(&own)
        },
        |address| address.to_canonical().is_loopback(),
    )
}

fn plain(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    typed(status, "text/plain; charset=utf-8", text)
}

fn typed(status: StatusCode, kind: &'static str, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
