//! HTTP requests of a run: URLs, target files and recordings, read and checked before anything is sent.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use codec::web::{self, Header, Url, Web, WebSettings, origins, targets};
use protocols::DriveProtocol;
use units::{Bytes, read_at_most, read_text_at_most};

use crate::options::{GivenOptions, or_default};
use crate::parts::Parts;
use crate::replay::{self, Replayed};
use crate::servers::servers;
use crate::spec::{Request, RunSpec, UrlRequests};
use crate::values::{Count, Length, value};

/// The parts of a run of URLs, targets or a recording.
///
/// # Errors
///
/// One line for anything that cannot be done as requested.
pub fn parts(spec: &RunSpec, given: GivenOptions) -> anyhow::Result<Parts> {
    let Replayed { requests: replayed, turns, recorded, facts } = replay::read(spec)?.unwrap_or_default();
    let requests = requests(spec, replayed)?;
    let checks = web::Checks {
        expect_status: value(&spec.checks.expect_status).cloned(),
        expect_body_contains: spec.checks.expect_body_contains.as_ref().map(|text| text.as_bytes().to_vec()),
        expect_sha256: value(&spec.checks.expect_sha256).copied(),
    };
    let settings = settings(spec)?;
    let servers = servers(origins(&requests)?, spec)?;
    servers.refuse_unused(spec)?;
    let depth = servers.depth(settings.pipeline as u64, settings.streams as u64);
    let are_apart = recorded.is_none() || requests.len() <= engine::KINDS_APART;
    let protocol = match &recorded {
        None => Web::turns_over(&servers.plans, &requests, &checks, settings)?,
        Some(_) => Web::in_order((&requests, turns, are_apart), &servers.plans, &checks, settings)?,
    };
    let first = requests.first().context("nothing to request; give a URL")?;
    let url = match &spec.request {
        Request::Urls(urls) if recorded.is_some() => urls.url[0].clone(),
        _ => first.url.to_string(),
    };
    let method = match requests.len() {
        1 => first.method.clone(),
        _ => "of each target".to_owned(),
    };
    let name = |request: &web::Request| format!("{} {}", request.method, request.url);
    let names = if are_apart { requests.iter().map(name).collect() } else { vec!["replayed".to_owned()] };
    Ok(Parts {
        spec: spec.clone(),
        given,
        protocol: DriveProtocol::RoundRobin(protocol),
        peers: servers.peers,
        depth,
        url,
        method,
        names,
        values: BTreeMap::new(),
        seed: None,
        data_limit: None,
        recorded,
        replay: facts,
    })
}

/// How connections are used, and how much of a response is accepted.
///
/// # Errors
///
/// One line for a limit that needs too much memory.
pub fn settings(spec: &RunSpec) -> anyhow::Result<WebSettings> {
    let max_head = or_default::<Bytes>(&spec.checks.max_head, "max-head");
    let limits = web::Limits {
        head_bytes: usize::try_from(max_head.0).context("--max-head needs too much memory; use less")?,
        body_bytes: or_default::<Bytes>(&spec.checks.max_body, "max-body").0,
        ..web::Limits::default()
    };
    let per_connection = |name: &str, field| {
        let count: u64 = or_default::<Count>(field, name).0;
        ensure!(count <= 10_000, "--{name} {count} is over 10000; use more connections instead");
        usize::try_from(count).with_context(|| format!("--{name} needs too much memory; use less"))
    };
    let pipeline = per_connection("pipeline", &spec.pool.pipeline)?;
    let streams = per_connection("streams", &spec.connection.streams)?;
    Ok(WebSettings { pipeline, streams, limits })
}

/// The requests, each with the headers of the run; `replayed` has the requests of a recording.
fn requests(spec: &RunSpec, replayed: Vec<web::Request>) -> anyhow::Result<Vec<web::Request>> {
    let (texts, mut requests) = match &spec.request {
        Request::Targets(targets) => {
            let file = targets.file.as_deref().context("targets without a file; give one")?;
            (&targets.header, read_targets(Path::new(file))?)
        }
        Request::Urls(urls) if !replayed.is_empty() => (&urls.header, replayed),
        Request::Urls(urls) => {
            refuse_words(&urls.url)?;
            let request = |text: &String| request(urls, text);
            (&urls.header, urls.url.iter().map(request).collect::<anyhow::Result<_>>()?)
        }
        Request::Scenario(_) | Request::Statements(_) => bail!("these requests are not single HTTP requests"),
    };
    let headers = texts.iter().map(|text| header(text)).collect::<anyhow::Result<Vec<_>>>()?;
    for request in &mut requests {
        if let Some(socket) = &spec.connection.unix {
            request.url = request.url.clone().over_socket(socket);
        }
        // As in vegeta, a target's own header has precedence over the run's.
        let missing = headers
            .iter()
            .filter(|header| !request.headers.iter().any(|own| own.name.eq_ignore_ascii_case(&header.name)));
        let missing: Vec<Header> = missing.cloned().collect();
        request.headers.extend(missing);
    }
    Ok(requests)
}

/// A word is a host of its name, which is right for the only URL (`localhost`). A second one is more often a value whose
/// option was forgotten, and half of the load would go to a stranger.
fn refuse_words(urls: &[String]) -> anyhow::Result<()> {
    let is_number = |text: &str| text.starts_with(|first: char| first.is_ascii_digit());
    let is_word = |text: &&String| !text.contains(['/', ':', '.']) && (urls.len() > 1 || is_number(text));
    let Some(word) = urls.iter().find(is_word) else { return Ok(()) };
    if word.parse::<Length>().is_ok() {
        bail!("`{word}` is no URL; to run for a time write `-d {word}`");
    }
    if word.bytes().all(|byte| byte.is_ascii_digit()) {
        bail!("`{word}` is no URL; for a number of requests write `-n {word}`, for a time `-d {word}s`");
    }
    bail!("`{word}` is no URL; write `http://{word}/` for the host of this name")
}

fn request(urls: &UrlRequests, text: &str) -> anyhow::Result<web::Request> {
    let mut request = web::Request::get(Url::parse(text)?);
    request.body = match urls.body.as_deref() {
        None => Vec::new(),
        Some(text) => match text.strip_prefix('@') {
            Some(path) => {
                read_body(Path::new(path)).with_context(|| format!("cannot read the body `{path}`"))?
            }
            None => text.as_bytes().to_vec(),
        },
    };
    if urls.body.is_some() {
        request.method = "POST".to_owned();
    }
    if let Some(method) = &urls.method {
        request.method.clone_from(method);
    }
    Ok(request)
}

/// Maximum size of a body read from a file: each connection may hold one while it is sent.
const LARGEST_BODY: u64 = 64 << 20;

/// Maximum size of all bodies of a target file.
const MOST_BODIES: u64 = 1 << 30;

/// Maximum size of a target file, without its bodies.
const LARGEST_TARGETS: u64 = 256 << 20;

fn read_body(path: &Path) -> io::Result<Vec<u8>> {
    read_at_most(File::open(path)?, LARGEST_BODY)
}

fn read_targets(path: &Path) -> anyhow::Result<Vec<web::Request>> {
    let shown = path.display();
    let text = match path.to_str() {
        Some("-") => read_text_at_most(io::stdin(), LARGEST_TARGETS),
        _ => File::open(path).and_then(|file| read_text_at_most(file, LARGEST_TARGETS)),
    };
    let text = text.with_context(|| format!("cannot read the targets `{shown}`"))?;
    let base = path.parent().unwrap_or(Path::new(""));
    let form = targets::detect(&text);
    let mut left = MOST_BODIES;
    targets::parse(&text, form, |body| {
        // As in vegeta: relative to the working directory, and if that fails, to the target file.
        let body = read_body(body).or_else(|error| read_body(&base.join(body)).map_err(|_| error))?;
        let over = || format!("the bodies are over {} together; use smaller ones", Bytes(MOST_BODIES));
        left = left.checked_sub(body.len() as u64).ok_or_else(|| io::Error::other(over()))?;
        Ok(body)
    })
    .with_context(|| format!("cannot use the targets `{shown}`"))
}

fn header(text: &str) -> anyhow::Result<Header> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok(Header { name: name.trim().to_owned(), value: value.trim().to_owned() })
        }
        _ => bail!("`-H {}` is not a header; write `-H 'Name: value'`", Header::shown(text)),
    }
}

#[cfg(test)]
mod tests {
    /// If this fails, `-b @/dev/zero` uses up all memory.
    #[test]
    fn a_body_of_a_file_has_a_bound() {
        let error = |file: &str| {
            let prepared = crate::testing::prepared(&["-b", file, "http://127.0.0.1:1/"]);
            prepared.map(|_| ()).map_err(|error| format!("{error:#}"))
        };
        let zero = "cannot read the body `/dev/zero`: it is over 64.0 MiB; use a smaller file";
        assert_eq!(error("@/dev/zero"), Err(zero.to_owned()));
        assert!(error("@/nowhere").unwrap_err().contains("cannot read the body `/nowhere`"));
        assert_eq!(error("@/dev/null"), Ok(()));
    }

    /// If this fails, a file without an end that an option names uses up all memory.
    #[test]
    fn each_file_that_an_option_names_has_a_bound() {
        let error = |options: &[&str]| {
            let error = crate::testing::prepared(options).map(|_| ()).expect_err("it has no end");
            format!("{error:#}")
        };
        let (zero, https) = ("/dev/zero", "https://127.0.0.1:1/");
        let too_large = "cannot read `/dev/zero`: it is over 16.0 MiB; use a smaller file";
        assert_eq!(error(&["--cacert", zero, https]), too_large);
        assert_eq!(error(&["--cert", zero, "--key", zero, https]), too_large);
        assert_eq!(
            error(&["--targets", zero]),
            "cannot read the targets `/dev/zero`: it is over 256.0 MiB; use a smaller file"
        );
    }
}
