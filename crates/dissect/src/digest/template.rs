//! Routes as a user writes them, for parts of a path that no rule recognises as varying.

use std::str::FromStr;

/// A method and a path in which `{NAME}` matches one segment: `GET /reset/{token}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteTemplate {
    text: Box<str>,
}

impl RouteTemplate {
    /// Method and path, as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a request matches this route. `path` has no query.
    ///
    /// # Cost
    ///
    /// One pass over the path; no allocation.
    pub(super) fn matches(&self, method: &[u8], path: &[u8]) -> bool {
        let Some((own, template)) = self.text.split_once(' ') else { return false };
        if own.as_bytes() != method {
            return false;
        }
        let mut segments = path.split(|byte| *byte == b'/');
        let matched = template.as_bytes().split(|byte| *byte == b'/').all(|wanted| {
            segments
                .next()
                .is_some_and(|found| if is_hole(wanted) { !found.is_empty() } else { wanted == found })
        });
        matched && segments.next().is_none()
    }
}

impl FromStr for RouteTemplate {
    type Err = String;

    fn from_str(text: &str) -> Result<RouteTemplate, String> {
        let form = "is a method and a path, with {NAME} for each segment that varies: 'GET /reset/{token}'";
        let (method, path) = text.split_once(' ').ok_or(form)?;
        let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
        let is_path = path.starts_with('/')
            && path.len() <= LONGEST
            && path.bytes().all(|byte| byte.is_ascii_graphic());
        let mut segments = path.split('/');
        if is_method
            && is_path
            && segments.all(|part| is_hole(part.as_bytes()) || !part.contains(['{', '}', '?', '#']))
        {
            Ok(RouteTemplate { text: text.into() })
        } else {
            Err(form.to_owned())
        }
    }
}

/// No path of a template needs more, and a digest has room for it.
const LONGEST: usize = 256;

fn is_hole(segment: &[u8]) -> bool {
    segment.len() > 2
        && segment.starts_with(b"{")
        && segment.ends_with(b"}")
        && !segment[1..segment.len() - 1].contains(&b'{')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_matches_its_route_only() {
        let template: RouteTemplate = "GET /reset/{token}".parse().unwrap();
        assert_eq!(template.text(), "GET /reset/{token}");
        for (method, path, expected) in [
            ("GET", "/reset/hunterabc", true),
            ("GET", "/reset/a;b=c", true),
            ("GET", "/reset/", false),
            ("GET", "/reset", false),
            ("GET", "/reset/a/b", false),
            ("POST", "/reset/a", false),
            ("GET", "/resets/a", false),
        ] {
            assert_eq!(template.matches(method.as_bytes(), path.as_bytes()), expected, "{method} {path}");
        }
        for wrong in ["", "GET", "/a", "get /a", "GET a", "GET /a{b}", "GET /{}", "GET /a?b={c}", "GET /a b"]
        {
            assert!(wrong.parse::<RouteTemplate>().is_err(), "{wrong}");
        }
    }
}
