//! The TLS settings of a run. Invalid ones are refused before anything is sent.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, SupportedProtocolVersion, version};
use thiserror::Error;
use units::Nanos;

use super::verify::CertificateVerifier;

/// The TLS settings of a run. Cheap to clone; connections that share it resume each other's sessions.
#[derive(Debug, Clone)]
pub struct TlsConfig(Arc<ClientConfig>);

/// The TLS settings of a run, for one of its servers.
#[derive(Debug, Clone)]
pub struct TlsPlan {
    pub(super) config: Arc<ClientConfig>,
    pub(super) name: ServerName<'static>,
}

/// The TLS options that a user gives.
#[derive(Debug, Clone)]
pub struct TlsOptions {
    pub trust: Trust,
    /// The certificate that this client shows if a server requests one.
    pub identity: Option<Identity>,
    /// The protocols offered by ALPN, in order of preference.
    pub alpn: Vec<String>,
    pub versions: Versions,
    pub resumption: Resumption,
    /// Returns the time of day, since 1970, at which certificates must be valid.
    pub now: fn() -> Nanos,
}

/// Which certificates of servers are trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// Those issued by one of these certificates, each in DER, and these certificates themselves.
    Roots(Vec<Vec<u8>>),
    /// The same, whatever name they are for.
    AnyName(Vec<Vec<u8>>),
    /// All of them: the connection is encrypted, but may not be with the right server.
    Anyone,
}

/// A client's certificate chain and its private key, both as PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub chain: Vec<u8>,
    pub key: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Versions {
    Any,
    Only12,
    Only13,
}

/// Whether a connection may resume the TLS session of an earlier one, which makes the handshake shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resumption {
    On,
    Off,
}

/// Why TLS could not be set up. The message states what to do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TlsError {
    #[error("no trusted certificate was found; give a CA bundle with --cacert, or skip verification with -k")]
    NoRoots,
    #[error("the file contains no certificate; it must have `-----BEGIN CERTIFICATE-----`")]
    NoCertificate,
    #[error("the file contains no private key; it must have `-----BEGIN PRIVATE KEY-----`")]
    NoKey,
    #[error("the client's certificate and key cannot be used together: {reason}")]
    Identity { reason: String },
    #[error("`{name}` cannot be the name in a certificate; use a host name or an address")]
    BadName { name: String },
    #[error("`{name}` is not a protocol for ALPN; write for example h2 or http/1.1")]
    BadAlpn { name: String },
    #[error("these TLS versions cannot be offered: {reason}")]
    Versions { reason: String },
}

impl TlsOptions {
    /// The settings for all servers of a run.
    ///
    /// # Errors
    ///
    /// [`TlsError`] if the options cannot be used.
    pub fn config(&self) -> Result<TlsConfig, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let verifier = Arc::new(CertificateVerifier::new(&self.trust, &provider)?);
        let time = Arc::new(WallClock(self.now));
        let builder = ClientConfig::builder_with_details(provider, time)
            .with_protocol_versions(self.versions.offered())
            .map_err(|error| TlsError::Versions { reason: error.to_string() })?;
        let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
        let mut config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let (chain, key) = identity.read()?;
                let config = builder.with_client_auth_cert(chain, key);
                config.map_err(|error| TlsError::Identity { reason: error.to_string() })?
            }
        };
        config.alpn_protocols = self.alpn.iter().map(|name| alpn(name)).collect::<Result<_, _>>()?;
        if self.resumption == Resumption::Off {
            config.resumption = rustls::client::Resumption::disabled();
        }
        Ok(TlsConfig(Arc::new(config)))
    }

    /// The certificates of a PEM file, each in DER.
    ///
    /// # Errors
    ///
    /// [`TlsError::NoCertificate`].
    pub fn certificates(pem: &[u8]) -> Result<Vec<Vec<u8>>, TlsError> {
        Ok(read_chain(pem)?.iter().map(|certificate| certificate.to_vec()).collect())
    }
}

impl TlsConfig {
    /// The settings for a server whose certificate must be for `name`.
    ///
    /// # Errors
    ///
    /// [`TlsError::BadName`].
    pub fn for_server(&self, name: &str) -> Result<TlsPlan, TlsError> {
        let bad_name = |_| TlsError::BadName { name: name.to_owned() };
        let name = ServerName::try_from(name.to_owned()).map_err(bad_name)?;
        Ok(TlsPlan { config: Arc::clone(&self.0), name })
    }
}

impl Versions {
    fn offered(self) -> &'static [&'static SupportedProtocolVersion] {
        match self {
            Versions::Any => rustls::DEFAULT_VERSIONS,
            Versions::Only12 => &ONLY_12,
            Versions::Only13 => &ONLY_13,
        }
    }
}

impl Identity {
    fn read(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|_| TlsError::NoKey)?;
        Ok((read_chain(&self.chain)?, key))
    }
}

fn read_chain(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    chain.ok().filter(|chain| !chain.is_empty()).ok_or(TlsError::NoCertificate)
}

fn alpn(name: &str) -> Result<Vec<u8>, TlsError> {
    let fits = !name.is_empty() && name.len() <= 255 && name.bytes().all(|byte| byte.is_ascii_graphic());
    if fits { Ok(name.as_bytes().to_vec()) } else { Err(TlsError::BadAlpn { name: name.to_owned() }) }
}

static ONLY_12: [&SupportedProtocolVersion; 1] = [&version::TLS12];
static ONLY_13: [&SupportedProtocolVersion; 1] = [&version::TLS13];

/// The time of day; the caller of [`TlsOptions::config`] provides the clock.
struct WallClock(fn() -> Nanos);

impl fmt::Debug for WallClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WallClock")
    }
}

impl TimeProvider for WallClock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_nanos((self.0)().0)))
    }
}
