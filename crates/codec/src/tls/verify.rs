//! Which certificates of servers are accepted.

use std::fmt;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme};

use super::config::{TlsError, Trust};

/// Which certificates a client accepts. The server's signature in the handshake is verified in any case.
#[derive(Debug)]
pub(super) struct CertificateVerifier {
    /// `None` accepts every certificate.
    trusted: Option<TrustedRoots>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl CertificateVerifier {
    /// A verifier for `trust`, with the algorithms of `provider`.
    ///
    /// # Errors
    ///
    /// [`TlsError::NoRoots`] if none of the roots can be read.
    pub(super) fn new(
        trust: &Trust,
        provider: &Arc<CryptoProvider>,
    ) -> Result<CertificateVerifier, TlsError> {
        let trusted = match trust {
            Trust::Roots(roots) => Some(TrustedRoots::new(roots, true, provider)?),
            Trust::AnyName(roots) => Some(TrustedRoots::new(roots, false, provider)?),
            Trust::Anyone => None,
        };
        Ok(CertificateVerifier { trusted, algorithms: provider.signature_verification_algorithms })
    }
}

impl ServerCertVerifier for CertificateVerifier {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match &self.trusted {
            Some(trusted) => {
                let usual = trusted.usual.verify_server_cert(shown, chain, name, ocsp, now);
                trusted.judge(usual, shown, name)
            }
            None => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Accepts certificates issued by one of the trusted certificates, and a server that shows a trusted certificate
/// itself. The latter is as in curl: `openssl req -x509` marks its certificates as an authority's, and by the usual
/// rules a server may not show such a certificate.
#[derive(Debug)]
struct TrustedRoots {
    usual: Arc<WebPkiServerVerifier>,
    roots: Vec<Vec<u8>>,
    /// Whether a certificate must be for the name of the server.
    checks_name: bool,
}

impl TrustedRoots {
    /// `roots` are the certificates, each in DER.
    fn new(
        roots: &[Vec<u8>],
        checks_name: bool,
        provider: &Arc<CryptoProvider>,
    ) -> Result<TrustedRoots, TlsError> {
        let mut store = RootCertStore::empty();
        // A host's own store may contain certificates that cannot be parsed; they are ignored.
        store.add_parsable_certificates(roots.iter().map(|root| CertificateDer::from(root.as_slice())));
        let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(store), Arc::clone(provider));
        let usual = builder.build().map_err(|_| TlsError::NoRoots)?;
        Ok(TrustedRoots { usual, roots: roots.to_vec(), checks_name })
    }

    fn is_trusted(&self, shown: &CertificateDer<'_>) -> bool {
        self.roots.iter().any(|root| root.as_slice() == shown.as_ref())
    }

    /// The final verdict on the certificate `shown`, given the `usual` one.
    fn judge(
        &self,
        usual: Result<ServerCertVerified, Error>,
        shown: &CertificateDer<'_>,
        name: &ServerName<'_>,
    ) -> Result<ServerCertVerified, Error> {
        let error = match usual {
            // The name is compared last.
            Err(Error::InvalidCertificate(error)) if !self.checks_name && is_about_the_name(&error) => {
                return Ok(ServerCertVerified::assertion());
            }
            Err(Error::InvalidCertificate(error)) if is_about_the_issuer(&error) => error,
            result => return result,
        };
        // The usual rules have checked the period of validity before they looked for the issuer (RFC 5280 requires no
        // order; webpki uses this one, and a test depends on it).
        if self.is_trusted(shown) {
            if self.checks_name {
                verify_server_name(&ParsedCertificate::try_from(shown)?, name)?;
            }
            return Ok(ServerCertVerified::assertion());
        }
        let error = if is_self_signed(shown) {
            CertificateError::Other(OtherError(Arc::new(SelfSigned)))
        } else {
            error
        };
        Err(Error::InvalidCertificate(error))
    }
}

/// Whether the certificate is good, and for another name.
fn is_about_the_name(error: &CertificateError) -> bool {
    matches!(error, CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. })
}

/// Whether the only fault of the certificate is its issuer, or that it is an authority's own.
fn is_about_the_issuer(error: &CertificateError) -> bool {
    match error {
        CertificateError::UnknownIssuer => true,
        // A root of the same name but with another key: the issuer is still unknown. A certificate whose own signature
        // was altered fails here too, and is not trusted either way.
        CertificateError::BadSignature => true,
        CertificateError::Other(OtherError(other)) => {
            other.downcast_ref::<webpki::Error>() == Some(&webpki::Error::CaUsedAsEndEntity)
        }
        _ => false,
    }
}

fn is_self_signed(certificate: &CertificateDer<'_>) -> bool {
    webpki::EndEntityCert::try_from(certificate).is_ok_and(|read| read.issuer() == read.subject())
}

/// The certificate is its own issuer, and is not trusted.
#[derive(Debug)]
pub(super) struct SelfSigned;

impl fmt::Display for SelfSigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("self-signed certificate")
    }
}

impl std::error::Error for SelfSigned {}
