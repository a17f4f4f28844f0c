//! The requests of a recording, to be sent to one server at the recorded times.
//!
//! A recording comes from elsewhere and may name any server: its paths are sent only to the server of the URL. What is
//! not sent (other methods, what a filter excludes, what cannot be read) is counted. Called by `prepare`.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileTypeExt;
use std::str::FromStr;

use anyhow::{Context, bail, ensure};
use codec::web::{self, Header, Url};
use record::document::ReplayFacts;
use regex::Regex;
use schedule::{Reader, Recorded, Speed};
use units::{Bytes, LONGEST_LINE, bounded_lines, read_text_at_most};

use crate::secrets::is_secret;
use crate::spec::{Model, Replay, Request, RunSpec, Schedule, UrlRequests};
use crate::values::value;
use export::recording::{self, Entry, Form};

/// Methods that are sent by default: those that change nothing on a server (RFC 9110, 9.2.1).
pub const METHODS: &str = "GET,HEAD";

/// A set of methods: `GET,HEAD`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Methods(Vec<String>);

impl FromStr for Methods {
    type Err = String;

    fn from_str(text: &str) -> Result<Methods, String> {
        let names: Vec<String> = text.split(',').map(|name| name.trim().to_ascii_uppercase()).collect();
        let is_method =
            |name: &String| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic());
        if names.iter().all(is_method) {
            Ok(Methods(names))
        } else {
            Err(format!("`{text}` is no list of methods; write for example GET,HEAD,POST"))
        }
    }
}

/// The requests of a recording in the order of their times.
#[derive(Debug, Default)]
pub struct Replayed {
    /// Distinct requests, however often each is sent.
    pub requests: Vec<web::Request>,
    /// The index of the request to send at each time.
    pub turns: Vec<u32>,
    /// `None` if no requests are replayed.
    pub recorded: Option<Recorded>,
    pub facts: Option<ReplayFacts>,
}

/// Maximum number of distinct requests: each is kept in the form it is sent, some 200 bytes.
const MOST_REQUESTS: usize = 500_000;

/// Maximum size of all distinct requests.
const MOST_REQUEST_BYTES: u64 = 1 << 30;

/// Maximum size of an archive: it is one document, so all of it is read at once.
const LARGEST_ARCHIVE: u64 = 256 << 20;

/// Headers that belong to the recorded connection, or that are computed for each request.
const OF_CONNECTION: [&str; 8] =
    ["host", "content-length", "connection", "keep-alive", "transfer-encoding", "te", "upgrade", "expect"];

/// Methods that are reported by name when they are left out: a hostile log may invent any number.
const KNOWN: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "TRACE"];

/// Reads the requests of the recording that `spec` names. `None` if only its times are used: because that was
/// requested, because the requests come from elsewhere, or because the recording has none.
///
/// # Errors
///
/// One line for a recording that cannot be read, and for options that conflict with its requests.
pub fn read(spec: &RunSpec) -> anyhow::Result<Option<Replayed>> {
    let Model::Open(open) = &spec.load.model else { return Ok(None) };
    let Schedule::Replay(replay) = &open.schedule else { return Ok(None) };
    let Request::Urls(urls) = &spec.request else {
        refuse_unused(replay, "the requests do not come from the recording")?;
        return Ok(None);
    };
    let shown = &replay.file;
    let cannot = || format!("cannot read the recording `{shown}`");
    let is_pipe = fs::metadata(shown).with_context(cannot)?.file_type().is_fifo();
    ensure!(!is_pipe, "the recording `{shown}` is a pipe, but it is read twice; write it to a file first");
    let lines = BufReader::new(File::open(shown).with_context(cannot)?);
    let Some(form) = form_of(lines).with_context(cannot)? else { return Ok(None) };
    if form == Form::Times {
        refuse_unused(replay, "the recording has times and no requests")?;
        return Ok(None);
    }
    if replay.times_only {
        let replay = Replay { times_only: false, ..replay.clone() };
        refuse_unused(&replay, "--replay-times-only sends no request of the recording")?;
        return Ok(None);
    }
    let mut taking = Taking::of(replay, urls)?;
    // Reads from the beginning again, so that line numbers are right.
    let file = File::open(shown).with_context(cannot)?;
    if form == Form::Archive {
        let text = read_text_at_most(file, LARGEST_ARCHIVE).with_context(cannot)?;
        let entries =
            recording::archive(&text).with_context(|| format!("cannot use the recording `{shown}`"))?;
        for (time, entry) in entries {
            taking.take(&time, entry).with_context(|| format!("cannot use the recording `{shown}`"))?;
        }
    } else {
        for line in bounded_lines(BufReader::new(file)) {
            let line = line.with_context(cannot)?;
            let entry = recording::entry(form, &line);
            taking.take(&line, entry).with_context(|| format!("cannot use the recording `{shown}`"))?;
        }
    }
    let speed = value(&replay.speed).copied().unwrap_or(Speed::RECORDED);
    taking.finish(speed).with_context(|| format!("cannot use the recording `{shown}`")).map(Some)
}

/// Lines that are looked at for the form of a recording: a log may begin with lines without a request.
const LOOKED_AT: usize = 100;

/// The form of a recording; `None` if it has no lines.
fn form_of(mut lines: impl BufRead) -> io::Result<Option<Form>> {
    let (mut form, mut line) = (None, Vec::new());
    let mut left = LOOKED_AT;
    while left > 0 && !form.is_some_and(|form| form != Form::Times) {
        line.clear();
        // An archive may be a single line, which may be longer.
        if lines.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if !line.trim_ascii().is_empty() && !line.starts_with(b"#") {
            form = Some(recording::detect(&String::from_utf8_lossy(&line)));
            left -= 1;
        }
    }
    Ok(form)
}

/// Refuses the options for the requests of a recording if none of them is sent.
fn refuse_unused(replay: &Replay, why: &str) -> anyhow::Result<()> {
    for (is_given, option) in [
        (replay.times_only, "--replay-times-only"),
        (replay.methods.is_some(), "--replay-methods"),
        (replay.filter.is_some(), "--replay-filter"),
        (replay.credentials, "--replay-credentials"),
    ] {
        ensure!(!is_given, "{option} has no effect: {why}; leave it out");
    }
    Ok(())
}

/// Requests that are equal in this are kept once.
type Identity = (String, String, Vec<(String, String)>, Vec<u8>);

/// State while requests are taken from a recording.
struct Taking<'a> {
    replay: &'a Replay,
    server: Url,
    methods: Methods,
    filter: Option<Regex>,
    times: Reader,
    known: HashMap<Identity, u32>,
    requests: Vec<web::Request>,
    /// The sizes of `requests`.
    bytes: u64,
    turns: Vec<u32>,
    facts: ReplayFacts,
}

impl<'a> Taking<'a> {
    fn of(replay: &'a Replay, urls: &UrlRequests) -> anyhow::Result<Taking<'a>> {
        let [url] = urls.url.as_slice() else {
            bail!(
                "--replay sends the requests of the recording to one server; name one URL, or add \
                 --replay-times-only to request several"
            );
        };
        for (is_given, option) in [(urls.method.is_some(), "-X"), (urls.body.is_some(), "-b")] {
            ensure!(
                !is_given,
                "{option} cannot be used with --replay, which sends what was recorded; add --replay-times-only to \
                 send another request at the recorded times"
            );
        }
        let methods = replay.methods.as_deref().unwrap_or(METHODS);
        let methods =
            methods.parse().map_err(|error: String| anyhow::anyhow!("--replay-methods: {error}"))?;
        let filter = replay.filter.as_deref().map(Regex::new).transpose().context("--replay-filter")?;
        Ok(Taking {
            replay,
            server: Url::parse(url)?,
            methods,
            filter,
            times: Reader::new(replay.column.clone()),
            known: HashMap::new(),
            requests: Vec::new(),
            bytes: 0,
            turns: Vec::new(),
            facts: ReplayFacts::default(),
        })
    }

    /// Takes one request with its time, or counts why it is left out.
    fn take(&mut self, time: &str, entry: Option<Entry>) -> anyhow::Result<()> {
        if time.trim().is_empty() || time.starts_with('#') {
            self.times.skip();
            return Ok(());
        }
        let request = match entry.ok_or("unreadable".to_owned()).and_then(|entry| self.request(entry)) {
            Ok(request) => request,
            Err(why) => {
                *self.facts.left_out.entry(why).or_default() += 1;
                self.times.skip();
                return Ok(());
            }
        };
        self.times.line(time)?;
        let headers = request.headers.iter().map(|header| (header.name.clone(), header.value.clone()));
        let path = request.url.path_and_query().to_owned();
        let identity = (request.method.clone(), path, headers.collect(), request.body.clone());
        let next = u32::try_from(self.requests.len()).context("it has too many requests; split it")?;
        let place = *self.known.entry(identity).or_insert(next);
        if place == next {
            self.bytes += request.url.path_and_query().len() as u64 + request.body.len() as u64;
            self.bytes += request.headers.iter().map(|header| header.value.len() as u64).sum::<u64>();
            self.requests.push(request);
            let most = Bytes(MOST_REQUEST_BYTES);
            ensure!(Bytes(self.bytes) <= most, "its different requests are over {most} together; split it");
            ensure!(
                self.requests.len() <= MOST_REQUESTS,
                "it has more than {MOST_REQUESTS} different requests; split it, or use --replay-filter"
            );
        }
        self.turns.push(place);
        self.facts.requests += 1;
        Ok(())
    }

    /// The request to send, or why it is left out.
    fn request(&mut self, entry: Entry) -> Result<web::Request, String> {
        let Entry { method, target, headers, body } = entry;
        let (path, host) = recording::path_of(&target).ok_or("unreadable")?;
        if !self.methods.0.contains(&method) {
            let is_known = KNOWN.contains(&method.as_str());
            return Err(if is_known { format!("method {method}") } else { "other methods".to_owned() });
        }
        if self.filter.as_ref().is_some_and(|filter| !filter.is_match(path)) {
            return Err("filter".to_owned());
        }
        let is = |names: &[&str], name: &str| names.iter().any(|own| own.eq_ignore_ascii_case(name));
        let all = headers.len();
        let mut headers = headers;
        if !self.replay.credentials {
            headers.retain(|(name, _)| !is_secret(name));
        }
        let dropped = headers.len() < all;
        headers.retain(|(name, _)| !is(&OF_CONNECTION, name) && !name.starts_with(':'));
        let headers = headers.into_iter().map(|(name, value)| Header { name, value }).collect();
        let url = self.server.with_path(path);
        let request = web::Request { method, headers, body, ..web::Request::get(url) };
        request.check().map_err(|_| "unreadable")?;
        self.facts.without_credentials += u64::from(dropped);
        let is_other = host.is_some_and(|host| !host.eq_ignore_ascii_case(self.server.host()));
        self.facts.of_other_servers += u64::from(is_other);
        Ok(request)
    }

    fn finish(self, speed: Speed) -> anyhow::Result<Replayed> {
        ensure!(
            !self.turns.is_empty(),
            "none of its requests is to be sent{}",
            left_out(&self.facts.left_out)
        );
        let (recorded, order) = self.times.finish_in_order(speed)?;
        let turns = order.into_iter().map(|place| self.turns[place as usize]).collect();
        Ok(Replayed { requests: self.requests, turns, recorded: Some(recorded), facts: Some(self.facts) })
    }
}

/// `: 3 method POST, 2 unreadable; choose others with --replay-methods`.
fn left_out(reasons: &BTreeMap<String, u64>) -> String {
    let all: Vec<String> = reasons.iter().map(|(why, count)| format!("{count} {why}")).collect();
    if all.is_empty() {
        return String::new();
    }
    format!(": {}; choose others with --replay-methods or --replay-filter", all.join(", "))
}

#[cfg(test)]
mod tests;
