//! The servers that a run's requests go to, each once.

use super::request::{Request, RequestError};
use super::url::{Scheme, Url};
use super::wire::HttpVersion;
use crate::tls::TlsPlan;

/// One of the run's servers, with the HTTP version and the TLS settings for it.
#[derive(Debug, Clone)]
pub struct OriginPlan {
    /// Its scheme, host and port; the path is ignored.
    pub url: Url,
    pub version: HttpVersion,
    /// `None`: everything is sent in plaintext.
    pub tls: Option<TlsPlan>,
}

impl OriginPlan {
    /// HTTP/1.1 in plaintext.
    pub fn plain(url: Url) -> OriginPlan {
        OriginPlan { url, version: HttpVersion::Http1, tls: None }
    }

    /// Refuses an `https` URL without TLS settings.
    pub(super) fn check(&self) -> Result<(), RequestError> {
        match (self.url.scheme(), &self.tls) {
            (Scheme::Https, None) => Err(RequestError::NoTls { url: self.url.to_string() }),
            _ => Ok(()),
        }
    }
}

/// The servers of `requests`, in the order of their first occurrence: a request's [`Origin`](crate::Origin) is the
/// index of its server in this list.
///
/// # Errors
///
/// [`RequestError::TooManyOrigins`] if there are more than 1000.
pub fn origins(requests: &[Request]) -> Result<Vec<Url>, RequestError> {
    let mut origins: Vec<Url> = Vec::new();
    for request in requests {
        if !origins.iter().any(|origin| origin.same_origin(&request.url)) {
            origins.push(request.url.clone());
        }
    }
    if origins.len() > ORIGINS_MAX {
        return Err(RequestError::TooManyOrigins { count: origins.len(), limit: ORIGINS_MAX });
    }
    Ok(origins)
}

/// Each has its own connection pool; a longer list of targets is assumed to be a mistake.
const ORIGINS_MAX: usize = 1_000;
