//! Keeps credentials out of the record and of messages: the values of headers that usually contain one, and the user,
//! password and query of a URL that figures are sent to, and the password in the URL of a database.
//!
//! The URL and the body under test are part of what was measured and are kept; SECURITY.md documents this.

use database::without_password;

use crate::spec::{Request, RunSpec};

/// Replaces a secret value.
const REDACTED: &str = "(redacted)";

const NAMES: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "set-cookie"];
const ENDINGS: [&str; 5] = ["token", "api-key", "apikey", "secret", "password"];

/// Segments of the paths that metrics are sent to.
const PATH_WORDS: [&str; 9] = ["", "api", "ingest", "metrics", "opentelemetry", "otlp", "v1", "v2", "v3"];

/// A header `Name: value`, redacted.
pub fn header(text: &str) -> String {
    match text.split_once(':') {
        Some((name, _)) if is_secret(name.trim()) => format!("{name}: {REDACTED}"),
        _ => text.to_owned(),
    }
}

/// A `--set` `key=value`, redacted.
pub fn setting(text: &str) -> String {
    match text.split_once('=') {
        Some((key, _)) if is_secret(key.trim()) => format!("{key}={REDACTED}"),
        Some((key, value)) => format!("{key}={}", without_password(value)),
        None => text.to_owned(),
    }
}

/// A spec without the passwords of databases, to be shown.
pub fn spec(spec: &RunSpec) -> RunSpec {
    let mut shown = spec.clone();
    match &mut shown.request {
        Request::Statements(statements) => statements.url.iter_mut().for_each(hide),
        Request::Scenario(scenario) => scenario.database.iter_mut().for_each(hide),
        Request::Urls(_) | Request::Targets(_) => {}
    }
    shown
}

fn hide(url: &mut String) {
    *url = without_password(url);
}

/// A URL that figures are sent to, redacted: without user, password and query, and of the path only the words that
/// collectors use, because hosted ones have their key in it.
pub fn url(text: &str) -> String {
    let (scheme, rest) = text.split_once("://").map_or(("", text), |(scheme, rest)| (scheme, rest));
    if !scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return REDACTED.to_owned();
    }
    let scheme = if scheme.is_empty() { String::new() } else { format!("{scheme}://") };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    // A slash or a question mark may be part of a password that was not escaped.
    if rest.contains('@') {
        return format!("{scheme}{REDACTED}");
    }
    let (user, host) = match authority.rsplit_once('@') {
        Some((_, host)) => ("(redacted)@", host),
        None => ("", authority),
    };
    let (path, query) = match rest.find(['?', '#']) {
        Some(at) => (&rest[..at], "?(redacted)"),
        None => (rest, ""),
    };
    let kept = |segment| if PATH_WORDS.contains(&segment) { segment } else { REDACTED };
    let path = path.split('/').map(kept).collect::<Vec<_>>().join("/");
    format!("{scheme}{user}{host}{path}{query}")
}

/// The value of an option as a record keeps it.
pub fn option(name: &str, text: &str) -> String {
    match name {
        "url" => without_password(text),
        "header" => header(text),
        "set" => setting(text),
        "otlp" => url(text),
        _ => text.to_owned(),
    }
}

/// Whether headers and settings of this name usually contain a credential.
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    NAMES.contains(&name.as_str()) || ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// A command line, redacted: `given` are the options by name with their values, as they were parsed from it. A value is
/// the end of a word however it was written (`-H X`, `-kHX`, `--header=X`), so no spelling has to be known here.
pub fn without(command: Vec<String>, given: &[(String, String)]) -> Vec<String> {
    let kept = given.iter().map(|(name, value)| (value.as_str(), option(name, value)));
    let secrets: Vec<_> = kept.filter(|(value, kept)| value != kept).collect();
    let redacted = |text: String| {
        let text = without_password(&text);
        let found = secrets.iter().find_map(|(value, kept)| Some((text.strip_suffix(value)?, kept)));
        found.map_or_else(|| text.clone(), |(before, kept)| format!("{before}{kept}"))
    };
    command.into_iter().map(redacted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(options: &[(&str, &str)]) -> Vec<(String, String)> {
        options.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn credentials_are_not_kept_however_they_are_written() {
        let (secret, short) = ("Authorization: Bearer hunter2", "X-Api-Key:hunter2");
        for (arguments, values) in [
            (&["-H", secret][..], &[("header", secret)][..]),
            (&["-vkH", secret], &[("header", secret)]),
            (&["-vHX-Api-Key:hunter2"], &[("header", short)]),
            (&["-H=X-Api-Key:hunter2"], &[("header", short)]),
            (&["--header=X-Api-Key:hunter2", "-H", secret], &[("header", short), ("header", secret)]),
            (
                &["--set=password=hunter2", "--otlp", "http://h/hunter2"],
                &[("set", "password=hunter2"), ("otlp", "http://h/hunter2")],
            ),
        ] {
            let command = arguments.iter().map(|text| (*text).to_owned()).collect();
            let kept = without(command, &given(values));
            assert_eq!(kept.len(), arguments.len());
            assert!(!kept.concat().contains("hunter2"), "{kept:?}");
            assert!(kept.concat().ends_with("(redacted)"), "{kept:?}");
        }
        for name in ["Proxy-Authorization ", "Cookie", "X-Auth-Token"] {
            assert_eq!(header(&format!("{name}: hunter2")), format!("{name}: (redacted)"));
        }
        assert_eq!(setting("vars.api_token=hunter2"), "vars.api_token=(redacted)");
        let url = ("targets.db.url=mysql://ann:hunter2@db", "targets.db.url=mysql://ann@db");
        assert_eq!(setting(url.0), url.1);
        let command = without(vec![url.0.to_owned(), format!("--set={}", url.0)], &given(&[("set", url.0)]));
        assert_eq!(command, [url.1.to_owned(), format!("--set={}", url.1)]);
    }

    #[test]
    fn a_url_that_figures_go_to_is_kept_without_its_credentials() {
        for (text, kept) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318"),
            ("https://host/otlp/v1/metrics", "https://host/otlp/v1/metrics"),
            ("http://user:hunter2@host:4318/v1", "http://(redacted)@host:4318/v1"),
            ("http://hunter2@[::1]/", "http://(redacted)@[::1]/"),
            ("https://host/v1?api_key=hunter2&b=c", "https://host/v1?(redacted)"),
            ("https://host?api_key=hunter2", "https://host?(redacted)"),
            ("https://host/v1#hunter2", "https://host/v1?(redacted)"),
            ("https://u:hunter2/x@host/v1", "https://(redacted)"),
            ("user:hunter2@host", "(redacted)@host"),
            ("https://host/v1/hunter2/api/v1/otlp", "https://host/v1/(redacted)/api/v1/otlp"),
            ("u:hunter2@h://host", "(redacted)"),
        ] {
            assert_eq!(url(text), kept, "{text}");
        }
    }

    #[test]
    fn all_else_is_kept_as_it_was_written() {
        let command = ["parallax", "drive", "-H", "Accept: */*", "-HX-Mine: 1", "-c", "2", "http://h/?a:b"];
        let command = command.map(str::to_owned);
        let given = given(&[("header", "Accept: */*"), ("header", "X-Mine: 1"), ("connections", "2")]);
        assert_eq!(without(command.to_vec(), &given), command);
    }
}
