//! Certificates in a directory: a CA's, and a server's signed by it for `localhost`.

use std::fs;
use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use tempfile::TempDir;

/// `ca.pem`, `server.pem` and `server.key`, until it is dropped.
pub struct Certificates {
    folder: TempDir,
}

impl Certificates {
    /// Valid until the first day of `year`.
    pub fn until(year: i32) -> Certificates {
        let folder = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        // Two with the same name would differ only in their signatures.
        params.distinguished_name.push(DnType::CommonName, format!("authority until {year}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(year, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &authority).unwrap();
        fs::write(folder.path().join("ca.pem"), authority.pem()).unwrap();
        fs::write(folder.path().join("server.pem"), certificate.pem()).unwrap();
        fs::write(folder.path().join("server.key"), key.serialize_pem()).unwrap();
        Certificates { folder }
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn path(&self, name: &str) -> String {
        self.file(name).to_str().unwrap().to_owned()
    }
}
