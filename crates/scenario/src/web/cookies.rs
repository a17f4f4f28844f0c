//! The cookies of one journey: the part of RFC 6265 that a client needs for a minute or an hour.
//!
//! Left out: a positive age is assumed to outlast the journey, so nothing expires by waiting; there is no list of
//! public suffixes, only the rule that a domain of a single label is invalid.

/// Cookies kept for a journey. Bounded, so that a server cannot decide how many there are or how large.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Jar {
    cookies: Vec<Cookie>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Cookie {
    name: String,
    value: String,
    domain: String,
    /// Sent only to the host that set it.
    host_only: bool,
    path: String,
    secure: bool,
}

/// The destination of a request, which decides which cookies it may set and carry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// In lower case.
    pub host: &'a str,
    /// With or without its query.
    pub path: &'a str,
    /// Over TLS.
    pub secure: bool,
}

/// Name and value of a `Set-Cookie` line, and its attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SetCookie<'a> {
    pub name: &'a str,
    pub value: &'a str,
    attributes: &'a str,
}

impl<'a> SetCookie<'a> {
    /// RFC 6265, section 5.2. `None` if the line sets nothing.
    pub(crate) fn parse(line: &'a [u8]) -> Option<SetCookie<'a>> {
        let line = std::str::from_utf8(line).ok().filter(|line| line.len() <= COOKIE_BYTES)?;
        if line.chars().any(|c| c.is_control() && c != '\t') {
            return None;
        }
        let (pair, attributes) = line.split_once(';').unwrap_or((line, ""));
        let (name, value) = pair.split_once('=')?;
        let name = name.trim();
        (!name.is_empty()).then_some(SetCookie { name, value: value.trim(), attributes })
    }

    /// The last attribute with this name.
    fn attribute(&self, name: &str) -> Option<&'a str> {
        let pairs = self.attributes.split(';').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        pairs.rev().find(|(own, _)| own.trim().eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    /// Whether it deletes the cookie. `now` is in Unix seconds.
    fn is_over(&self, now: i64) -> bool {
        let age = self.attribute("max-age").filter(|age| is_whole(age));
        match age {
            Some(age) => age.starts_with('-') || age.bytes().all(|byte| byte == b'0'),
            None => self.attribute("expires").and_then(super::cookie_date::parse).is_some_and(|at| at <= now),
        }
    }
}

impl Jar {
    /// Handles a `Set-Cookie` line of a response from `place`.
    pub(crate) fn store(&mut self, line: &[u8], place: Place<'_>, now: i64) {
        let Some(set) = SetCookie::parse(line) else { return };
        let Some((domain, host_only)) = domain(&set, place.host) else { return };
        let secure = set.attribute("secure").is_some();
        let given_path = set.attribute("path").filter(|path| path.starts_with('/'));
        let bound = set.name.starts_with("__Host-");
        let unfit = bound && (!host_only || given_path != Some("/"));
        // A cookie that is only for TLS, or whose name requires it, is not accepted over anything else.
        if ((secure || bound || set.name.starts_with("__Secure-")) && !(secure && place.secure)) || unfit {
            return;
        }
        let path = given_path.map_or_else(|| default_path(place.path), str::to_owned);
        let old = self.cookies.iter().position(|old| {
            old.name == set.name && old.domain == domain && old.host_only == host_only && old.path == path
        });
        if set.is_over(now) {
            old.map(|index| self.cookies.remove(index));
            return;
        }
        let (name, value) = (set.name.to_owned(), set.value.to_owned());
        let cookie = Cookie { name, value, domain, host_only, path, secure };
        match old {
            // It keeps its position: section 5.3, step 11.
            Some(index) => self.cookies[index] = cookie,
            None => {
                if self.cookies.len() >= COOKIES {
                    self.cookies.remove(0);
                }
                self.cookies.push(cookie);
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.cookies.is_empty()
    }

    /// The value of the `Cookie` header of a request to `place`.
    pub(crate) fn header(&self, place: Place<'_>) -> Option<String> {
        let path = place.path.split(['?', '#']).next().unwrap_or("/");
        let mut fit: Vec<&Cookie> = self.cookies.iter().filter(|cookie| cookie.fits(place, path)).collect();
        if fit.is_empty() {
            return None;
        }
        // Section 5.4: longer paths first, then the older ones; the sort keeps their order.
        fit.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        let pairs: Vec<String> =
            fit.iter().map(|cookie| format!("{}={}", cookie.name, cookie.value)).collect();
        Some(pairs.join("; "))
    }
}

impl Cookie {
    fn fits(&self, place: Place<'_>, path: &str) -> bool {
        let domain =
            if self.host_only { place.host == self.domain } else { domain_matches(place.host, &self.domain) };
        domain && path_matches(path, &self.path) && (place.secure || !self.secure)
    }
}

/// The domain of a cookie, and whether it is for its own host only; `None` if the cookie is refused.
fn domain(set: &SetCookie<'_>, host: &str) -> Option<(String, bool)> {
    let given = set.attribute("domain").unwrap_or("");
    let given = given.strip_prefix('.').unwrap_or(given).to_ascii_lowercase();
    if given.is_empty() {
        return Some((host.to_owned(), true));
    }
    if given == host && !given.contains('.') {
        return Some((host.to_owned(), true));
    }
    (given.contains('.') && domain_matches(host, &given)).then_some((given, false))
}

/// Section 5.1.3.
fn domain_matches(host: &str, domain: &str) -> bool {
    let is_address = host.parse::<std::net::IpAddr>().is_ok();
    host == domain || (!is_address && host.strip_suffix(domain).is_some_and(|before| before.ends_with('.')))
}

/// Section 5.1.4.
fn path_matches(path: &str, wanted: &str) -> bool {
    path.strip_prefix(wanted)
        .is_some_and(|rest| rest.is_empty() || wanted.ends_with('/') || rest.starts_with('/'))
}

/// Section 5.1.4: the directory of the request.
fn default_path(path: &str) -> String {
    let path = path.split(['?', '#']).next().unwrap_or("");
    match path.rfind('/') {
        Some(0) | None => "/".to_owned(),
        Some(at) => path[..at].to_owned(),
    }
}

fn is_whole(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// RFC 6265, section 6.1, requires at least these.
const COOKIE_BYTES: usize = 4_096;
const COOKIES: usize = 50;

#[cfg(test)]
mod tests {
    use super::*;

    /// 2024-01-01.
    const NOW: i64 = 1_704_067_200;

    fn place(url: &str) -> Place<'_> {
        let (scheme, rest) = url.split_once("://").unwrap();
        let at = rest.find('/').unwrap();
        Place { host: &rest[..at], path: &rest[at..], secure: scheme == "https" }
    }

    /// What is sent to `to` after `from` has set `lines`.
    #[track_caller]
    fn check(from: &str, lines: &[&str], to: &str, sent: Option<&str>) {
        let mut jar = Jar::default();
        lines.iter().for_each(|line| jar.store(line.as_bytes(), place(from), NOW));
        assert_eq!(jar.header(place(to)).as_deref(), sent, "{lines:?} from {from} to {to}");
    }

    #[test]
    fn a_cookie_goes_back_to_whom_it_came_from() {
        check("http://h/a", &["a=1"], "http://h/b", Some("a=1"));
        check("http://h/a", &["a=1; HttpOnly; SameSite=Lax"], "http://h/", Some("a=1"));
        check("http://h/", &["a=1", "b=x=y; Path=/"], "http://h/", Some("a=1; b=x=y"));
        check("http://h/", &["a=1", "a=2"], "http://h/", Some("a=2"));
        check("http://h/", &["a=1"], "http://other/", None);
        check("http://h/", &["nothing", "=1", ""], "http://h/", None);
        check("http://h/", &["a=\"q\" ; Path=/"], "http://h/", Some("a=\"q\""));
    }

    #[test]
    fn a_domain_covers_its_hosts_and_no_others() {
        let from = "http://www.example.com/";
        check(from, &["a=1"], "http://api.example.com/", None);
        check(from, &["a=1; Domain=example.com"], "http://api.example.com/", Some("a=1"));
        check(from, &["a=1; Domain=.Example.COM"], "http://example.com/", Some("a=1"));
        check(from, &["a=1; Domain=example.com"], "http://badexample.com/", None);
        check(from, &["a=1; Domain=other.com"], "http://other.com/", None);
        check(from, &["a=1; Domain=com"], "http://www.example.com/", None);
        check(from, &["a=1; Domain=api.example.com"], "http://api.example.com/", None);
        check("http://localhost/", &["a=1; Domain=localhost"], "http://localhost/", Some("a=1"));
        check("http://127.0.0.1/", &["a=1; Domain=0.0.1"], "http://127.0.0.1/", None);
        check("http://127.0.0.1/", &["a=1; Domain=127.0.0.1"], "http://127.0.0.1/", Some("a=1"));
    }

    #[test]
    fn a_path_covers_what_lies_below_it() {
        check("http://h/a/b/c?x=/", &["a=1"], "http://h/a/b", Some("a=1"));
        check("http://h/a/b/c", &["a=1"], "http://h/a/bc", None);
        check("http://h/a/b/c", &["a=1"], "http://h/a/b/?q", Some("a=1"));
        check("http://h/", &["a=1; Path=/x/"], "http://h/x/y", Some("a=1"));
        check("http://h/", &["a=1; Path=/x/"], "http://h/x", None);
        check("http://h/", &["a=1; Path=x"], "http://h/", Some("a=1"));
        check("http://h/", &["a=1; Path=/", "b=2; Path=/x"], "http://h/x", Some("b=2; a=1"));
    }

    #[test]
    fn a_secure_cookie_travels_over_tls_only() {
        check("https://h/", &["a=1; Secure"], "https://h/", Some("a=1"));
        check("https://h/", &["a=1; Secure"], "http://h/", None);
        check("http://h/", &["a=1; Secure"], "https://h/", None);
        check("https://h/", &["__Host-a=1; Secure; Path=/"], "https://h/", Some("__Host-a=1"));
        check("https://h/", &["__Host-a=1; Secure"], "https://h/", None);
        check("https://h/", &["__Secure-a=1"], "https://h/", None);
    }

    #[test]
    fn a_cookie_is_taken_back_by_its_age() {
        for over in [
            "a=; Max-Age=0",
            "a=; Max-Age=-1",
            "a=; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
            "a=; Expires=Sunday, 31-Dec-23 23:59:59 GMT",
            "a=; Max-Age=0; Expires=Fri, 01 Jan 2100 00:00:00 GMT",
        ] {
            check("http://h/", &["a=1", over], "http://h/", None);
        }
        for kept in [
            "a=2; Max-Age=60",
            "a=2; Expires=Fri, 01 Jan 2100 00:00:00 GMT",
            "a=2; Max-Age=soon",
            "a=2; Expires=x",
        ] {
            check("http://h/", &["a=1", kept], "http://h/", Some("a=2"));
        }
        check("http://h/", &["a=1; Max-Age=0"], "http://h/", None);
        check(
            "http://h/",
            &["a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=9"],
            "http://h/",
            Some("a=1"),
        );
    }

    /// If this fails, a server decides how much memory a journey uses, or which headers it sends.
    #[test]
    fn a_jar_is_bounded_and_holds_no_control_characters() {
        let mut jar = Jar::default();
        for index in 0..1_000 {
            jar.store(format!("c{index}=1").as_bytes(), place("http://h/"), NOW);
        }
        assert_eq!(jar.cookies.len(), COOKIES);
        assert!(jar.header(place("http://h/")).unwrap().ends_with("c999=1"));
        let long = format!("a={}", "x".repeat(COOKIE_BYTES));
        check("http://h/", &[long.as_str(), "b=1\u{1}", "c=\r\nX: y"], "http://h/", None);
    }
}
