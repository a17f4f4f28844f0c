//! Parses one recorded request, from each supported form: access logs, JSON lines, HAR, vegeta's results. Pure.

use serde_json::{Map, Value};

/// The form of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The common or combined log of a web server.
    AccessLog,
    /// One JSON object per line: path, method, headers, body.
    Json,
    /// One result of vegeta per line. Headers and body in it are those of the response.
    Vegeta,
    /// An HTTP archive (HAR): one document.
    Archive,
    /// Times only, no requests.
    Times,
}

/// A request as recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entry {
    pub method: String,
    /// A path, or a whole URL.
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// The fields that may contain the target of a request, in order of preference.
const TARGETS: [&str; 6] = ["path", "uri", "url", "request_uri", "target", "request"];

/// The form of a recording with this line.
pub fn detect(first: &str) -> Form {
    let text = first.trim_start_matches('\u{feff}').trim();
    if !text.starts_with('{') {
        // A log may begin with a request that was none: `"\x16\x03" 400`.
        return if text.contains("] \"") { Form::AccessLog } else { Form::Times };
    }
    match serde_json::from_str::<Map<String, Value>>(text) {
        // An archive is rarely on a single line.
        Err(_) => Form::Archive,
        Ok(object) if object.contains_key("log") => Form::Archive,
        Ok(object) if object.contains_key("latency") && object.contains_key("attack") => Form::Vegeta,
        Ok(object) if TARGETS.iter().any(|name| object.contains_key(*name)) => Form::Json,
        Ok(_) => Form::Times,
    }
}

/// The request of a line; `None` if it cannot be parsed.
pub fn entry(form: Form, line: &str) -> Option<Entry> {
    let line = line.trim_start_matches('\u{feff}').trim();
    match form {
        Form::AccessLog => access_log(line),
        Form::Json => json(&serde_json::from_str(line).ok()?),
        Form::Vegeta => {
            let object: Map<String, Value> = serde_json::from_str(line).ok()?;
            let text = |name: &str| object.get(name).and_then(Value::as_str).map(str::to_owned);
            Some(Entry { method: text("method")?, target: text("url")?, ..Entry::default() })
        }
        Form::Archive | Form::Times => None,
    }
}

/// `127.0.0.1 - - [10/Oct/2026:13:55:36 -0700] "GET /a?b HTTP/1.1" 200 2326 "referrer" "agent"`.
fn access_log(line: &str) -> Option<Entry> {
    let (_, rest) = line.split_once("] \"")?;
    let text = unescaped(rest)?;
    // A server answers such a request with an error, and no URL can contain them.
    if text.contains(|c: char| c.is_ascii_control()) {
        return None;
    }
    request_line(&text)
}

/// The text up to the closing quote, without the escapes of nginx (`\x22`, `\x5C`, `\xC3`) and of Apache, which also
/// writes `\"`, `\\`, `\t` and the like. `None` without a closing quote. Bytes that are not UTF-8 are percent-encoded,
/// as they are when they are sent.
fn unescaped(quoted: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = quoted.as_bytes();
    loop {
        let (&byte, after) = rest.split_first()?;
        let (meant, after) = match (byte, after) {
            (b'"', _) => break,
            (b'\\', [b'x', high, low, after @ ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                (hex(*high) << 4 | hex(*low), after)
            }
            (b'\\', [letter, after @ ..]) => match meaning(*letter) {
                Some(meant) => (meant, after),
                None => (b'\\', &rest[1..]),
            },
            _ => (byte, after),
        };
        bytes.push(meant);
        rest = after;
    }
    Some(String::from_utf8(bytes).unwrap_or_else(|error| {
        let encoded = |&byte: &u8| match byte {
            0x80.. => format!("%{byte:02X}"),
            _ => char::from(byte).to_string(),
        };
        error.as_bytes().iter().map(encoded).collect()
    }))
}

/// The value of a hexadecimal digit.
fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => digit.to_ascii_lowercase() - b'a' + 10,
    }
}

/// What Apache means by a backslash and `letter` (`ap_escape_logitem`).
fn meaning(letter: u8) -> Option<u8> {
    match letter {
        b'"' | b'\\' => Some(letter),
        b'b' => Some(8),
        b't' => Some(b'\t'),
        b'n' => Some(b'\n'),
        b'v' => Some(11),
        b'r' => Some(b'\r'),
        _ => None,
    }
}

/// `GET /a?b HTTP/1.1`; without a version, HTTP/0.9 or a log that leaves it out.
fn request_line(text: &str) -> Option<Entry> {
    let mut words = text.split(' ').filter(|word| !word.is_empty());
    let (method, target) = (words.next()?, words.next()?);
    let is_method = method.bytes().all(|byte| byte.is_ascii_uppercase());
    let is_version = words.next().is_none_or(|version| version.starts_with("HTTP/"));
    let is_whole = is_method && is_version && words.next().is_none();
    is_whole.then(|| Entry { method: method.to_owned(), target: target.to_owned(), ..Entry::default() })
}

fn json(object: &Map<String, Value>) -> Option<Entry> {
    let text = |name: &str| object.get(name).and_then(Value::as_str);
    let target = TARGETS.iter().find_map(|name| text(name))?;
    // nginx logs the whole request line as `request`.
    let line = request_line(target).filter(|_| target.contains(' '));
    let mut entry = line.unwrap_or_else(|| Entry {
        method: ["method", "request_method", "verb"]
            .iter()
            .find_map(|name| text(name))
            .unwrap_or("GET")
            .to_owned(),
        target: target.to_owned(),
        ..Entry::default()
    });
    entry.method.make_ascii_uppercase();
    if let Some(Value::Object(headers)) = object.get("headers") {
        for (name, value) in headers {
            let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
            let texts = values.iter().filter_map(Value::as_str);
            entry.headers.extend(texts.map(|value| (name.clone(), value.to_owned())));
        }
    }
    entry.body = match object.get("body") {
        Some(Value::String(text)) => text.clone().into_bytes(),
        None | Some(Value::Null) => Vec::new(),
        Some(other) => other.to_string().into_bytes(),
    };
    Some(entry)
}

/// The requests of an archive, each with its time.
///
/// # Errors
///
/// When the document is not an archive.
pub fn archive(text: &str) -> anyhow::Result<Vec<(String, Option<Entry>)>> {
    let text = text.trim_start_matches('\u{feff}');
    let document: Value = serde_json::from_str(text)
        .map_err(|error| anyhow::anyhow!("it is neither an HTTP archive nor JSON lines: {error}"))?;
    let entries = document.pointer("/log/entries").and_then(Value::as_array);
    let entries =
        entries.ok_or_else(|| anyhow::anyhow!("it has no log.entries, so it is no HTTP archive"))?;
    let time = |entry: &Value| entry.get("startedDateTime").and_then(Value::as_str).unwrap_or("?").to_owned();
    Ok(entries.iter().map(|entry| (time(entry), archived(entry))).collect())
}

fn archived(entry: &Value) -> Option<Entry> {
    let request = entry.get("request")?;
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let headers = request.get("headers").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let header = |header: &Value| Some((text(header, "name")?, text(header, "value")?));
    let body = request.get("postData").and_then(|data| text(data, "text")).unwrap_or_default();
    entry.get("startedDateTime")?;
    Some(Entry {
        method: text(request, "method")?.to_ascii_uppercase(),
        target: text(request, "url")?,
        headers: headers.iter().filter_map(header).collect(),
        body: body.into_bytes(),
    })
}

/// The path and query of a target, and the host it names; `None` if it is neither a path nor a URL.
pub fn path_of(target: &str) -> Option<(&str, Option<&str>)> {
    if target.starts_with('/') {
        return Some((target.split('#').next()?, None));
    }
    let (scheme, rest) = target.split_once("://")?;
    if !["http", "https"].contains(&scheme.to_ascii_lowercase().as_str()) {
        return None;
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = &rest[..end];
    let host_port = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match host_port.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((inside, _)) => inside,
        None => host_port.split(':').next()?,
    };
    let path = rest[end..].split('#').next()?;
    Some((if path.is_empty() { "/" } else { path }, Some(host)))
}
