//! Pushes OTLP metrics over HTTP. A failed push disturbs nothing: it is counted, and reported at the end.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{bail, ensure};

use super::state::State;
use crate::secrets;

/// A slower collector gets the next push instead.
const PUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// The URL to push to: OTLP's own path is added if there is none.
///
/// # Errors
///
/// When it is not an HTTP URL.
pub(super) fn url(text: &str) -> anyhow::Result<String> {
    let shown = secrets::url(text);
    let Some((scheme, rest)) = text.split_once("://") else {
        bail!("--otlp `{shown}` is not a URL; write for example http://127.0.0.1:4318");
    };
    ensure!(
        matches!(scheme, "http" | "https"),
        "--otlp uses HTTP, and `{shown}` does not; write for example http://127.0.0.1:4318"
    );
    let authority = rest.split(['/', '?', '#']).next().unwrap_or("");
    ensure!(!authority.is_empty(), "--otlp `{shown}` has no host; write for example http://127.0.0.1:4318");
    let url = if rest.trim_end_matches('/') == authority {
        format!("{scheme}://{authority}/v1/metrics")
    } else {
        text.to_owned()
    };
    let uri = ureq::http::Uri::try_from(url.as_str());
    ensure!(
        uri.is_ok_and(|uri| uri.host().is_some_and(|host| !host.is_empty())),
        "--otlp `{shown}` is not a URL; write for example http://127.0.0.1:4318"
    );
    Ok(url)
}

/// Pushes at every interval `every`, and once more when the run has ended.
pub(super) fn keep_pushing(url: &str, every: Duration, state: &Arc<State>) -> Result<(), String> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(PUSH_TIMEOUT))
        .http_status_as_error(false)
        .max_redirects(0)
        .build()
        .into();
    let mut pushes = Pushes::default();
    while !state.ends_within(every) {
        pushes.push(&agent, url, state);
    }
    pushes.push(&agent, url, state);
    match pushes.first_error {
        Some(error) => {
            Err(format!("{} of {} pushes failed; the first error: {error}", pushes.failed, pushes.made))
        }
        None => Ok(()),
    }
}

#[derive(Default)]
struct Pushes {
    made: u64,
    failed: u64,
    first_error: Option<String>,
}

impl Pushes {
    fn push(&mut self, agent: &ureq::Agent, url: &str, state: &State) {
        let Some(body) = state.snapshot(export::otlp::request) else { return };
        self.made += 1;
        let error = match agent.post(url).send_json(&body) {
            Ok(answer) if answer.status().is_success() => return,
            Ok(answer) => format!("{} responded {}", secrets::url(url), answer.status()),
            // Its message has the URL, as it was understood.
            Err(ureq::Error::BadUri(_)) => format!("{} is not a URL", secrets::url(url)),
            Err(error) => {
                let shown = secrets::url(url);
                format!("{shown}: {}", error.to_string().replace(url, &shown))
            }
        };
        self.failed += 1;
        self.first_error.get_or_insert(error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_without_a_path_gets_that_of_otlp() {
        for (text, expected) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/metrics"),
            ("http://[::1]:4318/", "http://[::1]:4318/v1/metrics"),
            ("https://host/otlp/v1/metrics", "https://host/otlp/v1/metrics"),
        ] {
            assert_eq!(url(text).unwrap(), expected);
        }
        // If this fails, a typing error prints a password on the screen.
        for text in [
            "ftp://u:hunter2@host",
            "u:hunter2@host",
            "http://u:hunter2@h o/",
            "http:///?key=hunter2",
            "http://u:hunter2@/v1#a",
        ] {
            let error = url(text).unwrap_err().to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
        for text in ["127.0.0.1:4318", "grpc://host", "http://", "http:///v1", "http://a b/"] {
            assert!(url(text).is_err(), "{text}");
        }
    }
}
