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

use super::config::TlsError;

/// Accepts what one of the trusted certificates vouches for, and a server that shows a trusted certificate itself, as
/// curl does: `openssl req -x509` makes those, marked as an authority's, which no server may show by the usual rules.
#[derive(Debug)]
pub(super) struct TrustedRoots {
    usual: Arc<WebPkiServerVerifier>,
    roots: Vec<Vec<u8>>,
}

impl TrustedRoots {
    /// `roots` are the certificates, each in DER.
    ///
    /// # Errors
    ///
    /// [`TlsError::NoRoots`] if none of them can be read.
    pub(super) fn new(roots: &[Vec<u8>], provider: &Arc<CryptoProvider>) -> Result<TrustedRoots, TlsError> {
        let mut store = RootCertStore::empty();
        // A host's own store may hold certificates that cannot be read; the others serve.
        store.add_parsable_certificates(roots.iter().map(|root| CertificateDer::from(root.as_slice())));
        let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(store), Arc::clone(provider));
        let usual = builder.build().map_err(|_| TlsError::NoRoots)?;
        Ok(TrustedRoots { usual, roots: roots.to_vec() })
    }

    fn is_trusted(&self, shown: &CertificateDer<'_>) -> bool {
        self.roots.iter().any(|root| root.as_slice() == shown.as_ref())
    }
}

impl ServerCertVerifier for TrustedRoots {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let error = match self.usual.verify_server_cert(shown, chain, name, ocsp, now) {
            Err(Error::InvalidCertificate(error)) if is_about_the_issuer(&error) => error,
            result => return result,
        };
        // The usual rules have found it in force before they looked for its issuer (RFC 5280 asks for no order;
        // webpki has this one, and a test depends on it).
        if self.is_trusted(shown) {
            verify_server_name(&ParsedCertificate::try_from(shown)?, name)?;
            return Ok(ServerCertVerified::assertion());
        }
        let error = if is_self_signed(shown) {
            CertificateError::Other(OtherError(Arc::new(SelfSigned)))
        } else {
            error
        };
        Err(Error::InvalidCertificate(error))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}

/// Whether nothing is wrong with the certificate except who issued it, or that it is an authority's own.
fn is_about_the_issuer(error: &CertificateError) -> bool {
    match error {
        CertificateError::UnknownIssuer => true,
        CertificateError::Other(OtherError(other)) => {
            other.downcast_ref::<webpki::Error>() == Some(&webpki::Error::CaUsedAsEndEntity)
        }
        _ => false,
    }
}

fn is_self_signed(certificate: &CertificateDer<'_>) -> bool {
    webpki::EndEntityCert::try_from(certificate).is_ok_and(|read| read.issuer() == read.subject())
}

/// The certificate is its own issuer, and nobody said to trust it.
#[derive(Debug)]
pub(super) struct SelfSigned;

impl fmt::Display for SelfSigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("self-signed certificate")
    }
}

impl std::error::Error for SelfSigned {}

/// Believes every certificate, but still holds the server to its own signature.
#[derive(Debug)]
pub(super) struct BelieveAnyone(pub(super) WebPkiSupportedAlgorithms);

impl ServerCertVerifier for BelieveAnyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}
