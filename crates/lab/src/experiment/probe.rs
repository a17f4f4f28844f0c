//! Questions to a server that runs: does it take requests, is its response right, is the treatment in effect?

use std::fs;
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use units::Nanos;

/// The most of a body that is looked at.
const LONGEST_BODY: u64 = 8 << 20;

/// A response to a GET.
#[derive(Debug)]
pub(super) struct Response {
    pub status: u16,
    pub body: String,
}

/// Asks for `url`. Certificates and proxies are not part of a check, so this is for plain HTTP.
///
/// # Errors
///
/// Why there is no response, in one line.
pub(super) fn get(url: &str, within: Nanos) -> Result<Response, String> {
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(within.into()))
        .http_status_as_error(false)
        .proxy(None)
        .max_redirects(0)
        .build();
    let said = |error: ureq::Error| format!("GET {url}: {error}");
    let mut response = ureq::Agent::new_with_config(config).get(url).call().map_err(said)?;
    let status = response.status().as_u16();
    let body = response.body_mut().with_config().limit(LONGEST_BODY).read_to_vec().map_err(said)?;
    Ok(Response { status, body: String::from_utf8_lossy(&body).into_owned() })
}

/// Whether somebody takes connections at `place`, a host and a port.
pub(super) fn listens(place: &str) -> bool {
    let Ok(addresses) = place.to_socket_addrs() else { return false };
    addresses.into_iter().any(|address| TcpStream::connect_timeout(&address, CONNECT).is_ok())
}

/// A server on this host or its network takes a connection in this time.
const CONNECT: Duration = Duration::from_secs(1);

/// Host and port of a URL.
pub(super) fn authority(url: &str) -> Option<&str> {
    url.strip_prefix("http://")?.split(['/', '?']).next()
}

/// Why a body is not the expected one; `None` if it is.
pub(super) fn misfit(
    response: &Response,
    status: u16,
    contains: Option<&str>,
    json: Option<&str>,
) -> Option<String> {
    if response.status != status {
        return Some(format!("status {} instead of {status}", response.status));
    }
    if let Some(text) = contains.filter(|text| !response.body.contains(*text)) {
        return Some(format!("the body does not contain `{text}`: {}", begin(&response.body)));
    }
    let json = json?;
    let Ok(wanted) = serde_json::from_str::<Value>(json) else {
        return Some(format!("`{json}` is no JSON with the values of this run"));
    };
    let found: Value = serde_json::from_str(&response.body).unwrap_or(Value::Null);
    (!has(&found, &wanted)).then(|| format!("the body does not have {wanted}: {}", begin(&response.body)))
}

/// Whether `found` has everything that `wanted` has; objects may have more members.
fn has(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            wanted.iter().all(|(name, value)| found.get(name).is_some_and(|found| has(found, value)))
        }
        _ => found == wanted,
    }
}

fn begin(body: &str) -> String {
    let line: String = body.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(100).collect()
}

/// Text of /proc about a process and everything below it: one of them has the library or the argument.
pub(super) fn of_tree(pids: &[u32], file: &str) -> String {
    let read = |pid: &u32| fs::read(Path::new("/proc").join(pid.to_string()).join(file)).ok();
    let texts = pids.iter().filter_map(read);
    // Arguments are separated by zeros.
    texts.map(|text| String::from_utf8_lossy(&text).replace('\0', " ") + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, a server that is fast because it sends errors is measured.
    #[test]
    fn a_response_must_have_what_was_asked_for() {
        let response =
            Response { status: 200, body: r#"{"id": 7, "name": {"first": "a", "x": 1}}"#.to_owned() };
        let check = |status, contains, json| misfit(&response, status, contains, json);
        assert_eq!(check(200, Some("first"), Some(r#"{"id":7,"name":{"first":"a"}}"#)), None);
        assert_eq!(check(404, None, None).unwrap(), "status 200 instead of 404");
        assert!(check(200, Some("second"), None).unwrap().starts_with("the body does not contain `second`"));
        assert!(check(200, None, Some(r#"{"id":"7"}"#)).unwrap().starts_with("the body does not have"));
    }

    #[test]
    fn the_place_of_a_url_is_its_host_and_port() {
        assert_eq!(authority("http://127.0.0.1:80/a?b"), Some("127.0.0.1:80"));
        assert_eq!(authority("https://x/"), None);
    }
}
