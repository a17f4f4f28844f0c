//! The parts of a script: statements up to their semicolons, and the commands that begin with a backslash.

/// A part of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part<'a> {
    /// Without its semicolon.
    Statement(&'a str),
    Set {
        name: &'a str,
        expression: &'a str,
    },
    Sleep(&'a str),
}

/// A part of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Text(&'a str),
    /// `:name`, and whether it is within quotes.
    Variable {
        name: &'a str,
        quoted: bool,
    },
}

/// All parts with the lines at which they begin, counted from 1; the line and the reason of the first that is no part.
pub(super) fn parts(text: &str) -> Result<Vec<(usize, Part<'_>)>, (usize, String)> {
    let mut parts = Vec::new();
    let mut at = 0;
    while let Some(begin) = begin_of_part(text, at) {
        let line = 1 + text[..begin].matches('\n').count();
        if text[begin..].starts_with('\\') {
            let end = text[begin..].find('\n').map_or(text.len(), |length| begin + length);
            parts.push((line, command(text[begin + 1..end].trim()).map_err(|what| (line, what))?));
            at = end;
            continue;
        }
        let end = statement_end(text, begin)
            .ok_or((line, "the statement does not end with a semicolon".to_owned()))?;
        let statement = text[begin..end].trim();
        if !statement.is_empty() {
            parts.push((line, Part::Statement(statement)));
        }
        at = end + 1;
    }
    Ok(parts)
}

/// Passes white space and comments.
fn begin_of_part(text: &str, mut at: usize) -> Option<usize> {
    loop {
        let rest = &text[at..];
        at += rest.len() - rest.trim_start().len();
        at += match Span::at(&text[at..])? {
            (Span::Comment, length) => length,
            _ => return Some(at),
        };
    }
}

fn command(line: &str) -> Result<Part<'_>, String> {
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    match word {
        "set" => {
            let (name, expression) =
                rest.split_once(char::is_whitespace).ok_or("\\set takes a name and a value")?;
            if name.is_empty() || !name.bytes().all(is_of_name) {
                return Err(format!("`{name}` is no name of a variable"));
            }
            Ok(Part::Set { name, expression: expression.trim() })
        }
        "sleep" => Ok(Part::Sleep(rest)),
        _ => Err(format!("\\{word} cannot be converted; \\set and \\sleep can")),
    }
}

/// Where the semicolon of the statement is that begins at `begin`.
fn statement_end(text: &str, begin: usize) -> Option<usize> {
    let mut at = begin;
    while let Some((span, length)) = Span::at(&text[at..]) {
        if span == Span::Semicolon {
            return Some(at);
        }
        at += length;
    }
    None
}

/// The statement without its comments, split at its variables.
pub(super) fn pieces(statement: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut at = 0;
    while let Some((span, length)) = Span::at(&statement[at..]) {
        let text = &statement[at..at + length];
        match span {
            Span::Comment => pieces.push(Piece::Text(" ")),
            Span::Quoted => split_at_variables(text, &mut pieces),
            Span::Variable => pieces.push(Piece::Variable { name: &text[1..], quoted: false }),
            Span::Plain | Span::Semicolon => pieces.push(Piece::Text(text)),
        }
        at += length;
    }
    pieces
}

fn split_at_variables<'a>(mut text: &'a str, pieces: &mut Vec<Piece<'a>>) {
    while let Some(colon) = text.find(':') {
        let name = name_of(&text[colon + 1..]);
        pieces.push(Piece::Text(&text[..colon + usize::from(name.is_empty())]));
        if !name.is_empty() {
            pieces.push(Piece::Variable { name, quoted: true });
        }
        text = &text[colon + 1 + name.len()..];
    }
    pieces.push(Piece::Text(text));
}

/// What the lexer of psql tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Span {
    Plain,
    /// A string, a quoted name, or a text between dollar signs.
    Quoted,
    Comment,
    Variable,
    Semicolon,
}

impl Span {
    /// The span at the beginning of `text`, with its length; none at its end. One that does not end goes to the end.
    fn at(text: &str) -> Option<(Span, usize)> {
        let first = text.chars().next()?;
        let until = |end: &str, from: usize| {
            text[from..].find(end).map_or(text.len(), |length| from + length + end.len())
        };
        Some(match first {
            ';' => (Span::Semicolon, 1),
            '\'' | '"' => (Span::Quoted, until(&text[..1], 1)),
            'E' | 'e' if text[1..].starts_with('\'') => (Span::Quoted, escaped_length(text)),
            '-' if text.starts_with("--") => (Span::Comment, until("\n", 2)),
            '/' if text.starts_with("/*") => (Span::Comment, comment_length(text)),
            '$' => match dollar_tag(text) {
                Some(tag) => (Span::Quoted, until(tag, tag.len())),
                None => (Span::Plain, 1),
            },
            ':' if text.starts_with("::") => (Span::Plain, 2),
            // A slice of an array, `x[1:2]`, is none.
            ':' if text[1..].starts_with(|c: char| c == '_' || c.is_ascii_alphabetic()) => {
                (Span::Variable, 1 + name_of(&text[1..]).len())
            }
            _ if first == '_' || first.is_alphabetic() => {
                let end = text.find(|c: char| c != '_' && c != '$' && !c.is_alphanumeric());
                (Span::Plain, end.unwrap_or(text.len()))
            }
            _ => (Span::Plain, first.len_utf8()),
        })
    }
}

/// `E'it\'s'`, from the E to the quote that no backslash stands before.
fn escaped_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(2) {
        match byte {
            b'\'' if !is_escaped => return at + 1,
            _ => is_escaped = byte == b'\\' && !is_escaped,
        }
    }
    text.len()
}

/// Comments nest.
fn comment_length(text: &str) -> usize {
    let (mut at, mut depth) = (2, 1);
    while depth > 0 {
        let Some(next) = text[at..].find("*/").map(|length| at + length) else { return text.len() };
        depth += text[at..next].matches("/*").count();
        depth -= 1;
        at = next + 2;
    }
    at
}

/// `$$` or `$name$` at the beginning of `text`.
fn dollar_tag(text: &str) -> Option<&str> {
    let name = name_of(&text[1..]);
    let is_tag = !name.starts_with(|c: char| c.is_ascii_digit()) && text[1 + name.len()..].starts_with('$');
    is_tag.then(|| &text[..name.len() + 2])
}

/// The name of a variable at the beginning of `text`; empty if there is none.
fn name_of(text: &str) -> &str {
    &text[..text.bytes().take_while(|byte| is_of_name(*byte)).count()]
}

fn is_of_name(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric()
}
