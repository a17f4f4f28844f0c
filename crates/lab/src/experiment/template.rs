//! Texts with `{name}` in them: commands, URLs, and variables of an environment.

use super::place::meant_or_known;

/// A text with names that are filled in for each run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template(String);

/// A part of a template.
enum Part<'a> {
    Text(&'a str),
    Name(&'a str),
}

impl Template {
    /// The template of `text`.
    ///
    /// # Errors
    ///
    /// A message about a name that is not among `known`.
    pub(crate) fn new(text: &str, known: &[&str]) -> Result<Template, String> {
        for part in parts(text) {
            if let Part::Name(name) = part
                && !known.contains(&name)
            {
                return Err(format!("`{{{name}}}` is not known here{}", meant_or_known(name, known)));
            }
        }
        Ok(Template(text.to_owned()))
    }

    /// The text with the values of its names, which are all among `values`.
    pub(crate) fn filled(&self, values: &[(String, String)]) -> String {
        let fill = |part| match part {
            Part::Text(text) => text,
            Part::Name(name) => {
                let value = values.iter().find(|(known, _)| known == name);
                value.map_or("", |(_, value)| value.as_str())
            }
        };
        parts(&self.0).into_iter().map(fill).collect()
    }

    pub(crate) fn as_written(&self) -> &str {
        &self.0
    }
}

/// `text` with one name filled in, and all others as they are: for values that contain names.
pub(crate) fn with_name(text: &str, name: &str, value: &str) -> String {
    let fill = |part| match part {
        Part::Text(text) => text.to_owned(),
        Part::Name(found) if found == name => value.to_owned(),
        Part::Name(other) => format!("{{{other}}}"),
    };
    parts(text).into_iter().map(fill).collect()
}

/// A name is in braces, without blanks; `${name}` is a variable of the shell, and other braces are text, as in JSON.
fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let (mut done, mut at) = (0, 0);
    while let Some(open) = text[at..].find('{').map(|found| at + found) {
        let Some(close) = text[open..].find('}').map(|found| open + found) else { break };
        let name = &text[open + 1..close];
        if is_name(name) && !text[..open].ends_with('$') {
            parts.push(Part::Text(&text[done..open]));
            parts.push(Part::Name(name));
            (done, at) = (close + 1, close + 1);
        } else {
            at = open + 1;
        }
    }
    parts.push(Part::Text(&text[done..]));
    parts
}

/// Whether `name` may be the name of a factor, also with a `.label`.
pub(crate) fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    name.chars().next().is_some_and(|first| first.is_ascii_alphabetic()) && name.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_filled_in_and_other_braces_stay() {
        let values = [("n", "4"), ("n.label", "four")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        let filled = |text| Template::new(text, &["n", "n.label"]).map(|template| template.filled(&values));
        assert_eq!(filled("run -j{n}{n} {n.label}").unwrap(), "run -j44 four");
        assert_eq!(filled(r#"-d '{"a": {n}}' ${n} {} { n }"#).unwrap(), r#"-d '{"a": 4}' ${n} {} { n }"#);
        assert_eq!(filled("{m}").unwrap_err(), "`{m}` is not known here; did you mean `n`?");
        assert_eq!(with_name("{a} {b} ${a} {\"c\": {a}}", "a", "1"), "1 {b} ${a} {\"c\": 1}");
        assert!(filled("open {n").is_ok() && filled("ä{n}ö").unwrap() == "ä4ö");
    }
}
