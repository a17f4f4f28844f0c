//! Keeps credentials out of the record: the value of a header that usually holds one is not written down.
//!
//! Only headers: what is in a URL or a body is part of what was measured, and SECURITY.md says so.

/// What is in the place of a value.
const REDACTED: &str = "(redacted)";

const NAMES: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "set-cookie"];
const ENDINGS: [&str; 5] = ["token", "api-key", "apikey", "secret", "password"];

/// A header `Name: value` as it may be kept.
pub fn header(text: &str) -> String {
    match text.split_once(':') {
        Some((name, _)) if is_secret(name.trim()) => format!("{name}: {REDACTED}"),
        _ => text.to_owned(),
    }
}

/// A `--set` `key=value` as it may be kept.
pub fn setting(text: &str) -> String {
    match text.split_once('=') {
        Some((key, _)) if is_secret(key.trim()) => format!("{key}={REDACTED}"),
        _ => text.to_owned(),
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    NAMES.contains(&name.as_str()) || ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// What of an option's value may be kept.
type Keep = fn(&str) -> String;

/// A command line as it may be kept: `-H X`, `-HX`, `-H=X`, `--header X`, `--header=X`, `--set X` and `--set=X`.
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
                _ => None,
            };
            let flags: [(&str, Keep); 4] =
                [("--header=", header), ("--set=", setting), ("-H=", header), ("-H", header)];
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
    fn all_else_is_kept_as_it_was_written() {
        let command = ["parallax", "drive", "-H", "Accept: */*", "-HX-Mine: 1", "-c", "2", "http://h/?a:b"];
        let command = command.map(str::to_owned);
        assert_eq!(without(command.iter().cloned()), command);
    }
}
