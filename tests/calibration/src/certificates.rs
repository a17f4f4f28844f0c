//! Certificates of the test's own authority, for servers and clients.

use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tempfile::TempDir;

/// A CA, with its certificate as `ca.pem` and a client's as `client.pem` and `client.key`.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

/// Whether the server requests a client certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientCertificate {
    NotAsked,
    Required,
}

impl Authority {
    /// A CA with this name: two with the same name would differ only in their signatures.
    pub fn new(name: &str) -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), issuer.pem()).unwrap();
        let key = KeyPair::generate().unwrap();
        let client = CertificateParams::new(vec!["client.example".to_owned()]).unwrap();
        let client = client.signed_by(&key, &issuer).unwrap();
        std::fs::write(folder.path().join("client.pem"), client.pem()).unwrap();
        std::fs::write(folder.path().join("client.key"), key.serialize_pem()).unwrap();
        Authority { issuer, folder }
    }

    pub fn path(&self, name: &str) -> String {
        let path: &Path = self.folder.path();
        path.join(name).to_str().unwrap().to_owned()
    }

    /// A server for `localhost` with a certificate that is valid until the first day of `year`.
    pub fn server(&self, year: i32, alpn: &[&str], client: ClientCertificate) -> Arc<ServerConfig> {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(year, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().der().to_vec();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_protocol_versions(rustls::ALL_VERSIONS).unwrap();
        let builder = match client {
            ClientCertificate::NotAsked => builder.with_no_client_auth(),
            ClientCertificate::Required => {
                let mut roots = RootCertStore::empty();
                roots.add(self.issuer.der().to_vec().into()).unwrap();
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let mut server = builder.with_single_cert(vec![certificate.into()], key).unwrap();
        server.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        Arc::new(server)
    }
}
