//! The servers that a run's requests go to, each once.

use super::request::{Request, RequestError};
use super::url::{Scheme, Url};
use super::wire::HttpVersion;
use crate::tls::TlsPlan;

/// One of the run's servers, and how it is spoken to.
#[derive(Debug, Clone)]
pub struct OriginPlan {
    /// Its scheme, host and port; the path does not matter.
    pub url: Url,
    pub version: HttpVersion,
    /// Without it, everything is sent in the clear.
    pub tls: Option<TlsPlan>,
}

impl OriginPlan {
    /// HTTP/1.1 in the clear.
    pub fn plain(url: Url) -> OriginPlan {
        OriginPlan { url, version: HttpVersion::Http1, tls: None }
    }

    /// Whether it is spoken to as its URL says.
    pub(super) fn check(&self) -> Result<(), RequestError> {
        match (self.url.scheme(), &self.tls) {
            (Scheme::Https, None) => Err(RequestError::NoTls { url: self.url.to_string() }),
            _ => Ok(()),
        }
    }
}

/// The servers of `requests`, in the order of first sight: a request's [`Origin`](crate::Origin) is its server's
/// place among them.
///
/// # Errors
///
/// [`RequestError::TooManyOrigins`].
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

/// Each has a pool of connections of its own; beyond this a list of targets was made by mistake.
const ORIGINS_MAX: usize = 1_000;
