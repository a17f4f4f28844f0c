//! Which frames a user means by `--focus` or `--highlight`.

use anyhow::anyhow;
use record::stacks::Stacks;
use regex::Regex;

/// A question about frames: part of a name, or a regular expression.
///
/// Names of C++, Java and Go contain characters that are special in a regular expression, so a text is one only if no
/// frame contains it as it is.
#[derive(Debug, Clone)]
pub struct FramePattern {
    text: String,
    regex: Option<Regex>,
}

impl FramePattern {
    /// The pattern that `text` is for these pictures.
    ///
    /// # Errors
    ///
    /// When no frame contains the text, and it is no regular expression either, or one that matches no frame.
    pub fn of(text: &str, pictures: &[&Stacks]) -> anyhow::Result<FramePattern> {
        let has = |pattern: &FramePattern| {
            // The root names the thread and is no frame.
            let is_in = |stacks: &&Stacks| {
                stacks.iter().any(|(frames, _)| frames.skip(1).any(|frame| pattern.matches(frame)))
            };
            pictures.iter().any(is_in)
        };
        let literal = FramePattern { text: text.to_owned(), regex: None };
        if has(&literal) {
            return Ok(literal);
        }
        let regex = Regex::new(text)
            .map_err(|_| anyhow!("no frame contains `{text}`, which is no regular expression either"))?;
        let pattern = FramePattern { regex: Some(regex), ..literal };
        if has(&pattern) { Ok(pattern) } else { Err(anyhow!("no frame contains or matches `{text}`")) }
    }

    /// Whether the frame is meant.
    pub fn matches(&self, frame: &str) -> bool {
        self.regex.as_ref().map_or_else(|| frame.contains(&self.text), |regex| regex.is_match(frame))
    }

    /// The text as it was given.
    pub fn text(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matched(text: &str) -> Result<Vec<String>, String> {
        let stacks = Stacks::parse("t;main;a::f(int);(*Conn).serve;io/b.get_[j] 1").unwrap();
        let pattern = FramePattern::of(text, &[&stacks]).map_err(|e| e.to_string())?;
        let all: Vec<_> = stacks.frames().into_iter().map(|frame| frame.frame).collect();
        Ok(all.into_iter().filter(|frame| pattern.matches(frame)).collect())
    }

    #[test]
    fn a_name_is_taken_literally_if_a_frame_has_it() {
        assert_eq!(matched("f(int)").unwrap(), ["a::f(int)"]);
        assert_eq!(matched("(*Conn).s").unwrap(), ["(*Conn).serve"]);
        assert_eq!(matched("^io/b|^main$").unwrap(), ["io/b.get_[j]", "main"]);
    }

    #[test]
    fn what_matches_nothing_is_refused() {
        assert_eq!(
            matched("(*Con)").unwrap_err(),
            "no frame contains `(*Con)`, which is no regular expression either"
        );
        assert_eq!(matched("x.*y").unwrap_err(), "no frame contains or matches `x.*y`");
    }
}
