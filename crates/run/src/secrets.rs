//! Keeps credentials out of the record and of messages: the values of headers that usually contain one, and the user,
//! password and query of a URL that figures are sent to.
//!
//! The URL and the body under test are part of what was measured and are kept; SECURITY.md documents this.

/// Replaces a secret value.
const REDACTED: &str = "(redacted)";

const NAMES: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "set-cookie"];
const ENDINGS: [&str; 5] = ["token", "api-key", "apikey", "secret", "password"];

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
        _ => text.to_owned(),
    }
}

/// A URL that figures are sent to, redacted: without user, password and query.
pub fn url(text: &str) -> String {
    let (scheme, rest) = text.split_once("://").map_or(("", text), |(scheme, rest)| (scheme, rest));
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
    format!("{scheme}{user}{host}{path}{query}")
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    NAMES.contains(&name.as_str()) || ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Redacts the value of an option.
type Keep = fn(&str) -> String;

/// A command line, redacted: `-H X`, `-HX`, `-H=X`, `--header X`, `--header=X`, `--set X`, `--set=X`, `--otlp X` and
/// `--otlp=X`.
pub fn without(command: impl Iterator<Item = String>) -> Vec<String> {
    let mut kept_as: Option<Keep> = None;
    command
        .map(|text| {
            if let Some(keep) = kept_as.take() {
                return keep(&text);
            }
            kept_as = match text.as_str() {
                "-H" | "--header" => Some(header),
                "--set" => Some(setting),
                "--otlp" => Some(url),
                _ => None,
            };
            let flags: [(&str, Keep); 5] = [
                ("--header=", header),
                ("--set=", setting),
                ("--otlp=", url),
                ("-H=", header),
                ("-H", header),
            ];
            let attached = flags.iter().find_map(|(flag, keep)| {
                text.strip_prefix(flag).map(|value| format!("{flag}{}", keep(value)))
            });
            attached.unwrap_or(text)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_not_kept_however_they_are_written() {
        for arguments in [
            &["-H", "Authorization: Bearer hunter2"][..],
            &["-HAuthorization: Bearer hunter2"],
            &["-H=authorization:hunter2"],
            &["--header", "Proxy-Authorization : Basic hunter2"],
            &["--header=Cookie: a=hunter2"],
            &["-H", "X-Api-Key: hunter2"],
            &["-H", "X-Auth-Token: hunter2"],
        ] {
            let kept = without(arguments.iter().map(|text| (*text).to_owned()));
            assert_eq!(kept.len(), arguments.len());
            assert!(!kept.concat().contains("hunter2"), "{kept:?}");
            assert!(kept.concat().ends_with(": (redacted)"), "{kept:?}");
        }
        for arguments in [&["--set", "vars.api_token=hunter2"][..], &["--set=password=hunter2"]] {
            let kept = without(arguments.iter().map(|text| (*text).to_owned()));
            assert!(kept.concat().ends_with("=(redacted)"), "{kept:?}");
        }
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
        ] {
            assert_eq!(url(text), kept, "{text}");
            for command in [vec!["--otlp".to_owned(), text.to_owned()], vec![format!("--otlp={text}")]] {
                let command = without(command.into_iter()).join("=");
                assert_eq!(command, format!("--otlp={kept}"));
            }
        }
    }

    #[test]
    fn all_else_is_kept_as_it_was_written() {
        let command = ["parallax", "drive", "-H", "Accept: */*", "-HX-Mine: 1", "-c", "2", "http://h/?a:b"];
        let command = command.map(str::to_owned);
        assert_eq!(without(command.iter().cloned()), command);
    }
}
