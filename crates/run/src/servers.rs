//! From the options to the servers of a run: the address of each, and its protocol.

use std::fs::File;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use codec::tls::{Identity, TlsConfig, TlsOptions, Trust};
use codec::web::{HttpVersion, OriginPlan, Scheme, Url};
use engine::{Peer, Place};

use crate::options::or_default;
use crate::spec::{Connection, RunSpec, Tls};
use crate::values::{Count, HttpChoice, Switch, TlsVersionChoice};

/// The servers of a run, by [`codec::Origin`].
#[derive(Debug)]
pub struct Servers {
    pub plans: Vec<OriginPlan>,
    pub peers: Vec<Peer>,
}

impl Servers {
    /// Maximum outstanding requests per connection, as far as the client knows.
    pub fn depth(&self, pipeline: u64, streams: u64) -> u64 {
        let depth = |plan: &OriginPlan| match plan.version {
            HttpVersion::Http1 => pipeline,
            HttpVersion::Http2 => streams,
            HttpVersion::ByAlpn => pipeline.max(streams),
        };
        self.plans.iter().map(depth).max().unwrap_or(1)
    }

    /// Refuses options that apply to none of the servers, instead of ignoring them.
    ///
    /// # Errors
    ///
    /// For options of TLS, of one version of HTTP or of TCP that no server uses.
    pub fn refuse_unused(&self, spec: &RunSpec) -> anyhow::Result<()> {
        let is_secure = self.plans.iter().any(|plan| plan.url.scheme() == Scheme::Https);
        ensure!(
            is_secure || !asks_for_tls(&spec.tls),
            "TLS options need an https:// URL; leave them out (connections are kept open in any case)"
        );
        let streams = or_default::<Count>(&spec.connection.streams, "streams").0;
        let has_streams = self.plans.iter().any(|plan| plan.version != HttpVersion::Http1);
        ensure!(
            has_streams || streams == 1,
            "--streams is for HTTP/2, and all servers use HTTP/1.1; write --pipeline {0}, or --http h2c \
             (over https:// --http 2) with it",
            streams
        );
        let pipeline = or_default::<Count>(&spec.pool.pipeline, "pipeline").0;
        let has_pipelines = self.plans.iter().any(|plan| plan.version != HttpVersion::Http2);
        ensure!(
            has_pipelines || pipeline == 1,
            "--pipeline is for HTTP/1.1, and all servers use HTTP/2; write --streams {pipeline}"
        );
        ensure!(
            spec.connection.password_file.is_none(),
            "--password-file is for a database, and all servers speak HTTP; leave it out"
        );
        let has_addresses = self.plans.iter().any(|plan| plan.url.socket().is_none());
        ensure!(
            has_addresses || spec.connection.source.is_empty(),
            "--source is for TCP, and all servers have a Unix domain socket; leave it out"
        );
        Ok(())
    }
}

/// Works out the addresses and protocols of the servers of `urls`.
///
/// # Errors
///
/// One line for anything that cannot be done as requested.
pub fn servers(urls: Vec<Url>, spec: &RunSpec) -> anyhow::Result<Servers> {
    refuse_strange(&urls, spec)?;
    let secure = urls.iter().any(|url| url.scheme() == Scheme::Https);
    let alpn = alpn(&spec.tls, http(spec));
    let config = if secure { Some(tls_config(&spec.tls, trust(&spec.tls)?, alpn)?) } else { None };
    let peers = urls.iter().map(|url| peer(url, &spec.connection)).collect::<anyhow::Result<_>>()?;
    let plans =
        urls.into_iter().map(|url| origin(url, spec, config.as_ref())).collect::<anyhow::Result<_>>()?;
    Ok(Servers { plans, peers })
}

/// Refuses addresses for servers that are not in `urls`: because of a typo, the requests would go elsewhere.
///
/// # Errors
///
/// One line for the first of them.
pub fn refuse_strange(urls: &[Url], spec: &RunSpec) -> anyhow::Result<()> {
    for resolve in &spec.connection.resolve {
        ensure!(
            urls.iter().any(|url| url.socket().is_none() && resolve.value.is_for(url)),
            "--resolve has a host and port that no URL has over TCP; use those of a URL"
        );
    }
    Ok(())
}

/// Whether any option of TLS was given that has an effect only with TLS.
pub fn asks_for_tls(tls: &Tls) -> bool {
    let version: TlsVersionChoice = or_default(&tls.tls_version, "tls-version");
    let resumption: Switch = or_default(&tls.tls_resumption, "tls-resumption");
    let files = tls.cacert.is_some() || tls.cert.is_some();
    let versions = version != TlsVersionChoice::Auto || resumption != Switch::On;
    tls.insecure || files || versions || tls.sni.is_some() || !tls.alpn.is_empty()
}

fn http(spec: &RunSpec) -> HttpChoice {
    or_default(&spec.connection.http, "http")
}

fn origin(url: Url, spec: &RunSpec, config: Option<&TlsConfig>) -> anyhow::Result<OriginPlan> {
    let version = match (http(spec), url.scheme()) {
        (HttpChoice::Auto, Scheme::Https) => HttpVersion::ByAlpn,
        (HttpChoice::Auto | HttpChoice::Http1, _) => HttpVersion::Http1,
        (HttpChoice::Http2, Scheme::Https) | (HttpChoice::H2c, Scheme::Http) => HttpVersion::Http2,
        (HttpChoice::Http2, Scheme::Http) => {
            bail!("--http 2 needs https://; for HTTP/2 without TLS write --http h2c")
        }
        (HttpChoice::H2c, Scheme::Https) => bail!("--http h2c is without TLS; over https:// write --http 2"),
    };
    let tls = match (url.scheme(), config) {
        (Scheme::Https, Some(config)) => {
            Some(config.for_server(spec.tls.sni.as_deref().unwrap_or(url.host()))?)
        }
        _ => None,
    };
    Ok(OriginPlan { url, version, tls })
}

fn peer(url: &Url, connection: &Connection) -> anyhow::Result<Peer> {
    let resolved =
        connection.resolve.iter().map(|resolve| &resolve.value).find(|resolve| resolve.is_for(url));
    let resolved = resolved.map(|resolve| resolve.address);
    let sources: Vec<IpAddr> = connection.source.iter().map(|source| source.value).collect();
    let place = match (url.socket(), resolved.or_else(|| url.host().parse::<IpAddr>().ok())) {
        (Some(socket), _) => Place::Unix(PathBuf::from(socket)),
        (None, Some(address)) => Place::Address(SocketAddr::new(address, url.port())),
        (None, None) => Place::Name { host: url.host().to_owned(), port: url.port() },
    };
    if let Place::Address(address) = &place {
        let fits = |source: &IpAddr| source.is_ipv4() == address.is_ipv4();
        ensure!(
            sources.is_empty() || sources.iter().any(fits),
            "--source has no address of the same family as {address}; add one that can reach it"
        );
    }
    Ok(Peer { place, sources })
}

/// The TLS settings of a run that trusts as `trust` says and offers the protocols `alpn`.
///
/// # Errors
///
/// One line for certificates and keys that cannot be used.
pub fn tls_config(tls: &Tls, trust: Trust, alpn: Vec<String>) -> anyhow::Result<TlsConfig> {
    let identity = match (&tls.cert, &tls.key) {
        (Some(chain), Some(key)) => Some(Identity { chain: read(chain)?, key: read(key)? }),
        _ => None,
    };
    let options = TlsOptions {
        trust,
        identity,
        alpn,
        versions: or_default::<TlsVersionChoice>(&tls.tls_version, "tls-version").into(),
        resumption: or_default::<Switch>(&tls.tls_resumption, "tls-resumption").into(),
        now: clock::wall,
    };
    options.config().context("TLS cannot be set up")
}

/// Which certificates the options trust.
///
/// # Errors
///
/// One line for a CA bundle that cannot be used.
pub fn trust(tls: &Tls) -> anyhow::Result<Trust> {
    if tls.insecure {
        return Ok(Trust::Anyone);
    }
    if let Some(path) = &tls.cacert {
        let roots = TlsOptions::certificates(&read(path)?);
        return Ok(Trust::Roots(roots.with_context(|| format!("cannot use `{path}`"))?));
    }
    // Certificates of the system store that cannot be read matter only to servers that need them, which then report it.
    let found = rustls_native_certs::load_native_certs();
    Ok(Trust::Roots(found.certs.into_iter().map(|certificate| certificate.to_vec()).collect()))
}

fn alpn(tls: &Tls, http: HttpChoice) -> Vec<String> {
    let names: &[&str] = match http {
        _ if !tls.alpn.is_empty() => return tls.alpn.clone(),
        HttpChoice::Auto => &["h2", "http/1.1"],
        HttpChoice::Http1 => &["http/1.1"],
        HttpChoice::Http2 | HttpChoice::H2c => &["h2"],
    };
    names.iter().map(|&name| name.to_owned()).collect()
}

/// Maximum size of a file with certificates or a key.
const LARGEST_PEM: u64 = 16 << 20;

fn read(path: &str) -> anyhow::Result<Vec<u8>> {
    let read = File::open(path).and_then(|file| units::read_at_most(file, LARGEST_PEM));
    read.with_context(|| format!("cannot read `{path}`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::given;

    fn planned(arguments: &[&str]) -> anyhow::Result<Servers> {
        let given = given(arguments);
        let spec = given.spec()?;
        let texts = &given.0["url"].texts;
        let urls = texts.iter().map(|text| Ok(Url::parse(text)?)).collect::<anyhow::Result<Vec<_>>>()?;
        let servers = servers(urls, &spec)?;
        servers.refuse_unused(&spec)?;
        Ok(servers)
    }

    #[test]
    fn servers_are_where_the_options_say() {
        for (arguments, place) in [
            (&["http://127.0.0.1:1/"][..], "Address(127.0.0.1:1)"),
            (&["http://[::1]:1/"], "Address([::1]:1)"),
            (&["http://h/"], r#"Name { host: "h", port: 80 }"#),
            (&["http://h/", "--resolve", "h:80:127.0.0.9"], "Address(127.0.0.9:80)"),
            (&["unix:/x.sock:/path"], r#"Unix("/x.sock")"#),
        ] {
            assert_eq!(format!("{:?}", planned(arguments).unwrap().peers[0].place), place);
        }
        let sourced =
            planned(&["http://127.0.0.1/", "--source", "127.0.0.2", "--source", "127.0.0.3"]).unwrap();
        assert_eq!(sourced.peers[0].sources.len(), 2);
        // One server that uses the option is enough.
        planned(&["http://127.0.0.1/", "unix:/x.sock:/path", "--source", "127.0.0.2"]).unwrap();
        planned(&["https://h/", "-k", "--pipeline", "5"]).unwrap();
    }

    #[test]
    fn what_is_spoken_follows_the_scheme() {
        for (arguments, version) in [
            (&["http://h/"][..], HttpVersion::Http1),
            (&["https://h/", "-k"], HttpVersion::ByAlpn),
            (&["https://h/", "-k", "--http", "2"], HttpVersion::Http2),
            (&["https://h/", "-k", "--http", "1.1"], HttpVersion::Http1),
            (&["http://h/", "--http", "h2c"], HttpVersion::Http2),
        ] {
            let plan = &planned(arguments).unwrap().plans[0];
            assert_eq!(plan.version, version, "{arguments:?}");
            assert_eq!(plan.tls.is_some(), arguments[0].starts_with("https"));
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_a_cure() {
        for (arguments, cure) in [
            (&["http://h/", "--http", "2"][..], "h2c"),
            (&["https://h/", "-k", "--http", "h2c"], "--http 2"),
            (&["http://h/", "-k"], "leave them out"),
            (&["http://h/", "--tls-version", "1.3"], "leave them out"),
            (&["http://h/", "--tls-resumption", "off"], "leave them out"),
            (&["http://h/", "--streams", "4"], "--pipeline 4"),
            (&["https://h/", "-k", "--http", "1.1", "--streams", "4"], "--http 2"),
            (&["http://h/", "--http", "h2c", "--pipeline", "5"], "--streams 5"),
            (&["https://h/", "-k", "--http", "2", "--pipeline", "5"], "--streams 5"),
            (&["http://h/", "--resolve", "g:80:127.0.0.1"], "use those of a URL"),
            (&["unix:/x.sock:/path", "--resolve", "localhost:80:127.0.0.1"], "use those of a URL"),
            (&["unix:/x.sock:/path", "--source", "127.0.0.1"], "leave it out"),
            (&["http://127.0.0.1/", "--source", "::1"], "same family"),
            (&["https://h/", "--cacert", "/nowhere"], "cannot read `/nowhere`"),
            (&["https://h/", "--cacert", "/dev/null"], "cannot use `/dev/null`"),
        ] {
            let error = format!("{:#}", planned(arguments).expect_err(cure));
            assert!(error.contains(cure), "{error}");
        }
    }
}
