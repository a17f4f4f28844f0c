//! A real TLS server in memory: both versions of HTTP within TLS, cut in every way, and the reason of every refusal.

use std::io::{Read, Write};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use units::Nanos;

use super::*;
use crate::web::{Checks, HttpVersion, OriginPlan, Request, Turns, Url, Web, WebSession, WebSettings};
use crate::{CloseEvent, DecodeError, Event, Key, Opening, Origin, Protocol, Session};

/// A certificate authority, which issues certificates for servers.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Authority { issuer }
    }

    fn root(&self) -> Vec<u8> {
        self.issuer.der().to_vec()
    }

    /// A certificate for `localhost`, valid from the first year to the second.
    fn certificate(&self, years: (i32, i32)) -> (Vec<u8>, KeyPair) {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_before = date_time_ymd(years.0, 1, 1);
        params.not_after = date_time_ymd(years.1, 1, 1);
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().der().to_vec(), key)
    }
}

/// A self-signed certificate for `localhost`, as `openssl req -x509` makes it if `is_ca` is set.
fn self_signed(is_ca: bool, years: (i32, i32)) -> (Vec<u8>, KeyPair) {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.not_before = date_time_ymd(years.0, 1, 1);
    params.not_after = date_time_ymd(years.1, 1, 1);
    if is_ca {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    let key = KeyPair::generate().unwrap();
    (params.self_signed(&key).unwrap().der().to_vec(), key)
}

/// Who signed the certificate that the server shows.
#[derive(Clone, Copy, PartialEq)]
enum Signed {
    ByAuthority,
    /// Self-signed; and whether it is marked as an authority's.
    ByItself {
        is_ca: bool,
    },
}

/// What differs between the tests.
struct Case {
    signed: Signed,
    /// The client trusts the server's certificate itself.
    pinned: bool,
    years: (i32, i32),
    trust: Option<Trust>,
    name: &'static str,
    offers: &'static [&'static str],
    version: HttpVersion,
    versions: Versions,
    server_alpn: &'static [&'static str],
    server_versions: &'static [&'static rustls::SupportedProtocolVersion],
    asks_client: bool,
}

impl Default for Case {
    fn default() -> Case {
        Case {
            signed: Signed::ByAuthority,
            pinned: false,
            years: (2020, 2030),
            trust: None,
            name: "localhost",
            offers: &["h2", "http/1.1"],
            version: HttpVersion::ByAlpn,
            versions: Versions::Any,
            server_alpn: &["http/1.1"],
            server_versions: rustls::ALL_VERSIONS,
            asks_client: false,
        }
    }
}

impl Case {
    /// A client's connection, and the server that it connects to.
    fn build(&self) -> (WebSession<Turns>, ServerConnection) {
        let authority = Authority::new("ours");
        let (certificate, key) = match self.signed {
            Signed::ByAuthority => authority.certificate(self.years),
            Signed::ByItself { is_ca } => self_signed(is_ca, self.years),
        };
        let trusted = if self.pinned { certificate.clone() } else { authority.root() };
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_protocol_versions(self.server_versions).unwrap();
        let builder = if self.asks_client {
            let mut roots = RootCertStore::empty();
            roots.add(authority.root().into()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.unwrap())
        } else {
            builder.with_no_client_auth()
        };
        let mut server = builder.with_single_cert(vec![certificate.into()], key).unwrap();
        server.alpn_protocols = self.server_alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        let options = TlsOptions {
            trust: self.trust.clone().unwrap_or(Trust::Roots(vec![trusted])),
            identity: None,
            alpn: self.offers.iter().map(|&name| name.to_owned()).collect(),
            versions: self.versions,
            resumption: Resumption::On,
            now: || Nanos::from_secs(YEAR_2025),
        };
        let url = Url::parse("https://localhost/").unwrap();
        let plan = OriginPlan {
            url: url.clone(),
            version: self.version,
            tls: Some(options.config().unwrap().for_server(self.name).unwrap()),
        };
        let web = Web::turns_over(&[plan], &[Request::get(url)], &Checks::default(), WebSettings::default());
        (web.unwrap().session(Origin(0)), ServerConnection::new(Arc::new(server)).unwrap())
    }
}

static ONLY_12: [&rustls::SupportedProtocolVersion; 1] = [&rustls::version::TLS12];
static ONLY_13: [&rustls::SupportedProtocolVersion; 1] = [&rustls::version::TLS13];

const YEAR_2025: u64 = 1_750_000_000;

/// Carries bytes between the two until both are silent; to the client in pieces of `piece` bytes.
struct Line {
    client: WebSession<Turns>,
    server: ServerConnection,
    to_server: Vec<u8>,
    piece: usize,
    /// What the server has read.
    heard: Vec<u8>,
    events: Vec<Event>,
}

impl Line {
    fn new(case: &Case, piece: usize) -> Line {
        let (mut client, server) = case.build();
        let mut to_server = Vec::new();
        assert_eq!(client.open(&mut to_server), Opening::Tls);
        Line { client, server, to_server, piece, heard: Vec::new(), events: Vec::new() }
    }

    fn carry(&mut self) -> Result<(), DecodeError> {
        loop {
            let sent = std::mem::take(&mut self.to_server);
            let mut rest = sent.as_slice();
            while !rest.is_empty() {
                self.server.read_tls(&mut rest).unwrap();
                if self.server.process_new_packets().is_err() {
                    break;
                }
            }
            let _ = self.server.reader().read_to_end(&mut self.heard);
            let mut from_server = Vec::new();
            while self.server.wants_write() {
                self.server.write_tls(&mut from_server).unwrap();
            }
            if from_server.is_empty() && self.to_server.is_empty() {
                return Ok(());
            }
            self.deliver(&from_server)?;
        }
    }

    fn deliver(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        for piece in bytes.chunks(self.piece) {
            let (mut rest, mut more) = (piece, false);
            while !rest.is_empty() || more {
                let step = self.client.handle_input(rest, &mut self.to_server)?;
                (rest, more) = (&rest[step.consumed..], step.more);
                self.events.extend(step.event);
            }
        }
        Ok(())
    }

    fn say(&mut self, bytes: &[u8]) {
        self.server.writer().write_all(bytes).unwrap();
        self.carry().unwrap();
    }

    /// The reported events, except for the beginnings of responses, which depend on the cuts.
    fn reported(&self) -> Vec<Event> {
        self.events.iter().filter(|event| !matches!(event, Event::Began(_))).copied().collect()
    }
}

#[track_caller]
fn finished(events: &[Event]) -> Vec<(u64, u16, u64)> {
    events
        .iter()
        .map(|event| match event {
            Event::Finished(Key(key), reply) => {
                (*key, reply.code.unwrap().as_status().unwrap(), reply.body_bytes)
            }
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn http1_within_tls_is_read_alike_however_cut() {
    for server_versions in [&ONLY_12 as &[_], &ONLY_13] {
        for piece in [usize::MAX, 1, 7, 1_000] {
            let mut line = Line::new(&Case { server_versions, ..Case::default() }, piece);
            line.carry().unwrap();
            assert_eq!(line.reported(), [Event::Opened], "said once");
            line.client.request(&0, Key(3), &mut line.to_server);
            line.carry().unwrap();
            assert!(line.heard.starts_with(b"GET / HTTP/1.1\r\nHost: localhost\r\n"));
            let body = "x".repeat(40_000);
            line.say(format!("HTTP/1.1 200 OK\r\nContent-Length: 40000\r\n\r\n{body}").as_bytes());
            assert_eq!(finished(&line.reported()[1..]), [(3, 200, 40_000)]);
            let whole = line.piece == usize::MAX;
            assert_eq!(line.events.len() == 2, whole, "begun and ended in one input, whatever the records");
        }
    }
}

#[test]
fn http2_is_spoken_where_the_server_chooses_it() {
    for piece in [usize::MAX, 1, 7] {
        let case = Case { server_alpn: &["h2"], ..Case::default() };
        let mut line = Line::new(&case, piece);
        line.carry().unwrap();
        assert!(line.heard.starts_with(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
        line.client.request(&0, Key(3), &mut line.to_server);
        // Settings; then headers with `:status: 200` that end the stream.
        line.say(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
        line.say(&[0, 0, 1, 1, 5, 0, 0, 0, 1, 0x88]);
        assert_eq!(finished(&line.reported()[1..]), [(3, 200, 0)]);
    }
}

#[track_caller]
fn check_refused(case: &Case, words: &str) {
    for piece in [usize::MAX, 1] {
        let mut line = Line::new(case, piece);
        match line.carry().expect_err(words) {
            DecodeError::Handshake { what } => assert!(what.contains(words), "{what}"),
            other => panic!("{other:?}"),
        }
    }
}

/// If this fails, a user whose certificate has expired learns only that TLS failed, and has to guess why.
#[test]
fn every_refusal_says_why() {
    check_refused(&Case { years: (2020, 2024), ..Case::default() }, "certificate expired");
    check_refused(&Case { years: (2026, 2030), ..Case::default() }, "certificate not yet valid");
    let stranger = Some(Trust::Roots(vec![Authority::new("theirs").root()]));
    check_refused(&Case { trust: stranger, ..Case::default() }, "unknown issuer");
    check_refused(&Case { name: "example.com", ..Case::default() }, "another name");
    check_refused(&Case { asks_client: true, ..Case::default() }, "alert received: certificate required");
    let only_12 = Case { server_versions: &ONLY_12, ..Case::default() };
    check_refused(&Case { versions: Versions::Only13, ..only_12 }, "alert received: protocol version");
    let no_h2 = Case { version: HttpVersion::Http2, offers: &["h2"], server_alpn: &[], ..Case::default() };
    check_refused(&no_h2, "did not choose HTTP/2");
    let no_common = Case { offers: &["x"], ..Case::default() };
    check_refused(&no_common, "alert received: no application protocol");
}

/// If this fails, a developer cannot test a server with a certificate that curl accepts.
#[test]
fn a_certificate_that_is_given_is_accepted_from_its_server() {
    let signed = [Signed::ByAuthority, Signed::ByItself { is_ca: true }, Signed::ByItself { is_ca: false }];
    for signed in signed {
        let pinned = || Case { signed, pinned: true, ..Case::default() };
        let mut line = Line::new(&pinned(), usize::MAX);
        line.carry().unwrap();
        assert_eq!(line.reported(), [Event::Opened]);
        // Its name and its period of validity are still checked.
        check_refused(&Case { name: "example.com", ..pinned() }, "another name");
        check_refused(&Case { years: (2020, 2024), ..pinned() }, "certificate expired");
        if signed != Signed::ByAuthority {
            let words = "self-signed certificate; give it with --cacert, or use -k";
            check_refused(&Case { signed, ..Case::default() }, words);
        }
    }
}

#[test]
fn anyone_is_believed_when_asked_for() {
    for case in [
        Case { years: (2020, 2024), trust: Some(Trust::Anyone), ..Case::default() },
        Case { name: "127.0.0.1", trust: Some(Trust::Anyone), ..Case::default() },
    ] {
        let mut line = Line::new(&case, usize::MAX);
        line.carry().unwrap();
        assert_eq!(line.reported(), [Event::Opened]);
    }
}

#[test]
fn a_server_without_tls_is_named() {
    let mut line = Line::new(&Case::default(), 1);
    let error = line.deliver(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap_err();
    assert!(error.to_string().contains("does not speak TLS"), "{error}");
}

/// If this fails, somebody who cuts a connection decides where a body ends.
#[test]
fn a_body_that_the_close_ends_needs_a_close_of_tls() {
    for (says_goodbye, complete) in [(true, true), (false, false)] {
        let mut line = Line::new(&Case::default(), usize::MAX);
        line.carry().unwrap();
        line.client.request(&0, Key(0), &mut line.to_server);
        line.say(b"HTTP/1.1 200 OK\r\n\r\nabc");
        if says_goodbye {
            line.server.send_close_notify();
            line.carry().unwrap();
            assert_eq!(line.client.capacity(), 0);
        }
        let event = line.client.handle_close();
        assert_eq!(matches!(event, CloseEvent::Finished(_)), complete, "{event:?}");
        assert!(complete || event == CloseEvent::Incomplete);
    }
}

#[test]
fn bytes_that_were_altered_end_the_connection() {
    let mut line = Line::new(&Case::default(), usize::MAX);
    line.carry().unwrap();
    line.server.writer().write_all(b"HTTP/1.1 200 OK\r\n").unwrap();
    let mut bytes = Vec::new();
    line.server.write_tls(&mut bytes).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    let error = line.deliver(&bytes).unwrap_err();
    assert_eq!(error, DecodeError::Malformed { what: "a message could not be decrypted" });
}

/// If this fails, a complete response is counted as a failure of the server because of what followed it.
#[test]
fn an_answer_before_a_bad_record_is_told() {
    let mut line = Line::new(&Case::default(), usize::MAX);
    line.carry().unwrap();
    line.client.request(&0, Key(0), &mut line.to_server);
    line.carry().unwrap();
    let mut bytes = Vec::new();
    for text in ["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", "x"] {
        line.server.writer().write_all(text.as_bytes()).unwrap();
        line.server.write_tls(&mut bytes).unwrap();
    }
    *bytes.last_mut().unwrap() ^= 1;
    let error = line.deliver(&bytes).unwrap_err();
    assert_eq!(error, DecodeError::Malformed { what: "a message could not be decrypted" });
    assert_eq!(finished(&line.reported()[1..]), [(0, 200, 2)]);
}

/// If this fails, a server that breaks off in the middle of its work counts as having refused the handshake.
#[test]
fn an_alert_after_an_answer_is_no_matter_of_the_handshake() {
    for piece in [usize::MAX, 1] {
        let mut line = Line::new(&Case::default(), piece);
        line.carry().unwrap();
        line.client.request(&0, Key(0), &mut line.to_server);
        line.carry().unwrap();
        line.server.writer().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab").unwrap();
        // Bytes that the server cannot decrypt.
        line.to_server.extend([[23, 3, 3, 0, 32].as_slice(), &[7; 32]].concat());
        let error = line.carry().unwrap_err();
        assert_eq!(error, DecodeError::Malformed { what: "alert received: bad record" });
        assert_eq!(finished(&line.reported()[1..]), [(0, 200, 2)]);
    }
}

#[test]
fn settings_that_cannot_be_used_are_refused() {
    let options = |trust, identity, alpn: &str| TlsOptions {
        trust,
        identity,
        alpn: vec![alpn.to_owned()],
        versions: Versions::Any,
        resumption: Resumption::Off,
        now: || Nanos::ZERO,
    };
    let refused = |options: TlsOptions| options.config().expect_err("refused");
    assert_eq!(refused(options(Trust::Roots(Vec::new()), None, "h2")), TlsError::NoRoots);
    assert_eq!(refused(options(Trust::Anyone, None, "h 2")), TlsError::BadAlpn { name: "h 2".to_owned() });
    let nothing = Identity { chain: b"x".to_vec(), key: b"y".to_vec() };
    assert_eq!(refused(options(Trust::Anyone, Some(nothing), "h2")), TlsError::NoKey);
    assert_eq!(TlsOptions::certificates(b"none"), Err(TlsError::NoCertificate));
    let config = options(Trust::Anyone, None, "h2").config().unwrap();
    assert!(matches!(config.for_server("a b"), Err(TlsError::BadName { .. })));
}
