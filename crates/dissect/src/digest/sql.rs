//! SQL statements to digests: literals become `?`, lists and rows of literals collapse, comments are removed, and
//! outside quotes spacing and case are normalised.
//!
//! It works on tokens and knows no grammar: any bytes give some text.

use super::CUT_MARK;

/// The rules for quoting and comments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// PostgreSQL with `standard_conforming_strings` on, the default since 9.1.
    Postgres,
    /// MySQL and MariaDB without `ANSI_QUOTES` and `NO_BACKSLASH_ESCAPES`: backslash escapes, and `"` for strings.
    MySql,
}

/// Appends the normalised `text`, at most `most` bytes plus the mark of a cut.
pub(super) fn normalise(dialect: Dialect, text: &[u8], cut: bool, most: usize, out: &mut Vec<u8>) {
    let base = out.len();
    let mut writer = Writer { out, base, last: Last::Start, list: None, row: None };
    let mut tokens = Tokens { dialect, text, at: 0, in_code: false };
    while let Some(token) = tokens.next(writer.last) {
        writer.write(token);
    }
    writer.finish(cut, most);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a [u8]),
    /// An identifier with its quotes.
    Quoted(&'a [u8]),
    Literal,
    Open,
    Close,
    Comma,
    Dot,
    Semicolon,
    /// Written without spaces around it: `::`, brackets.
    Tight(&'a [u8]),
    Operator(&'a [u8]),
}

/// The last token, as far as the next one depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    Start,
    Name,
    Keyword,
    In,
    Values,
    /// IS or NOT: NULL, TRUE and FALSE after them are not values.
    Is,
    Literal,
    Open,
    Close,
    Comma,
    Tight,
    Semicolon,
    Operator,
}

struct Tokens<'a> {
    dialect: Dialect,
    text: &'a [u8],
    at: usize,
    /// Inside a comment of MySQL that is code (`/*! … */`).
    in_code: bool,
}

impl<'a> Tokens<'a> {
    fn next(&mut self, last: Last) -> Option<Token<'a>> {
        loop {
            self.skip_blank();
            let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty())?;
            if self.in_code && rest.starts_with(b"*/") {
                self.in_code = false;
                self.at += 2;
                continue;
            }
            return Some(self.token(rest, last));
        }
    }

    fn token(&mut self, rest: &'a [u8], last: Last) -> Token<'a> {
        let first = rest[0];
        let second = rest.get(1).copied().unwrap_or(0);
        match first {
            b'(' => self.take(1, Token::Open),
            b')' => self.take(1, Token::Close),
            b',' => self.take(1, Token::Comma),
            b';' => self.take(1, Token::Semicolon),
            b'\'' => self.string(0, self.dialect == Dialect::MySql),
            b'"' if self.dialect == Dialect::MySql => self.string(0, true),
            b'"' | b'`' => self.quoted(first),
            b'0'..=b'9' => self.number(0),
            b'.' if second.is_ascii_digit() && !matches!(last, Last::Name | Last::Close) => self.number(0),
            b'.' => self.take(1, Token::Dot),
            b'+' | b'-' if is_unary(last) && second.is_ascii_digit() => self.number(1),
            b'?' if self.dialect == Dialect::MySql => self.take(1, Token::Literal),
            b'$' if second.is_ascii_digit() => self.number(1),
            b'$' if self.dialect == Dialect::Postgres => self.dollar(rest),
            b'[' | b']' => self.take(1, Token::Tight(&rest[..1])),
            b':' if second == b':' => self.take(2, Token::Tight(&rest[..2])),
            _ if is_word(first) => self.word(rest),
            _ => self.operator(rest),
        }
    }

    fn take(&mut self, length: usize, token: Token<'a>) -> Token<'a> {
        self.at += length;
        token
    }

    /// Skips spaces and comments.
    fn skip_blank(&mut self) {
        while let Some(rest) = self.text.get(self.at..).filter(|rest| !rest.is_empty()) {
            let hash = rest[0] == b'#' && self.dialect == Dialect::MySql;
            // MySQL requires a space after the dashes: `5--1` is a sum.
            let dashes = rest.starts_with(b"--")
                && (self.dialect == Dialect::Postgres || rest.get(2).is_none_or(|byte| *byte <= b' '));
            if rest[0] <= b' ' {
                self.at += 1;
            } else if hash || dashes {
                self.at += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            } else if rest.starts_with(b"/*") {
                self.skip_comment(rest);
            } else {
                return;
            }
        }
    }

    fn skip_comment(&mut self, rest: &[u8]) {
        if self.dialect == Dialect::MySql && (rest.starts_with(b"/*!") || rest.starts_with(b"/*M!")) {
            let version = rest.iter().position(|byte| *byte == b'!').unwrap_or(0) + 1;
            let digits = rest[version..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            self.in_code = true;
            self.at += version + digits;
            return;
        }
        let (mut depth, mut at) = (1, 2);
        while depth > 0 {
            let Some(next) = memchr::memchr2(b'*', b'/', &rest[at.min(rest.len())..]) else {
                self.at = self.text.len();
                return;
            };
            at += next;
            match rest.get(at..at + 2) {
                Some(b"*/") => depth -= 1,
                // Comments of PostgreSQL nest.
                Some(b"/*") if self.dialect == Dialect::Postgres => depth += 1,
                _ => {
                    at += 1;
                    continue;
                }
            }
            at += 2;
        }
        self.at += at;
    }

    /// A string whose quote is `prefix` bytes ahead.
    fn string(&mut self, prefix: usize, backslash: bool) -> Token<'a> {
        let quote = self.text[self.at + prefix];
        let mut at = self.at + prefix + 1;
        loop {
            let rest = &self.text[at.min(self.text.len())..];
            let next =
                if backslash { memchr::memchr2(quote, b'\\', rest) } else { memchr::memchr(quote, rest) };
            let Some(next) = next else {
                return self.take(self.text.len() - self.at, Token::Literal);
            };
            at += next;
            if self.text[at] == b'\\' || self.text.get(at + 1) == Some(&quote) {
                at += 2;
            } else {
                return self.take(at + 1 - self.at, Token::Literal);
            }
        }
    }

    fn quoted(&mut self, quote: u8) -> Token<'a> {
        let rest = &self.text[self.at..];
        let end = memchr::memchr(quote, &rest[1..]).map_or(rest.len(), |end| end + 2);
        self.take(end, Token::Quoted(&rest[..end]))
    }

    /// A number or numbered parameter that begins `prefix` bytes ahead.
    fn number(&mut self, prefix: usize) -> Token<'a> {
        let digits = &self.text[self.at + prefix..];
        let mut length = 0;
        while let Some(byte) = digits.get(length) {
            let exponent =
                length > 0 && matches!(digits[length - 1], b'e' | b'E') && !digits.starts_with(b"0x");
            if is_word(*byte) || *byte == b'.' || (exponent && matches!(byte, b'+' | b'-')) {
                length += 1;
            } else {
                break;
            }
        }
        self.take(prefix + length.max(1), Token::Literal)
    }

    /// A string between `$tag$` and `$tag$`.
    fn dollar(&mut self, rest: &'a [u8]) -> Token<'a> {
        let tag = rest[1..].iter().take_while(|byte| is_word(**byte) && **byte != b'$').count() + 2;
        match rest.get(..tag) {
            Some(mark) if mark.ends_with(b"$") => {
                let end = memchr::memmem::find(&rest[tag..], mark).map_or(rest.len(), |at| 2 * tag + at);
                self.take(end, Token::Literal)
            }
            _ => self.take(1, Token::Operator(&rest[..1])),
        }
    }

    fn word(&mut self, rest: &'a [u8]) -> Token<'a> {
        let length = rest.iter().take_while(|byte| is_word(**byte)).count();
        let word = &rest[..length];
        if rest.get(length) == Some(&b'\'') {
            let escaped = matches!(word, b"e" | b"E");
            if escaped || matches!(word, b"b" | b"B" | b"x" | b"X" | b"n" | b"N") || word[0] == b'_' {
                return self.string(length, escaped || self.dialect == Dialect::MySql);
            }
        }
        if matches!(word, b"u" | b"U") && rest.get(1..3) == Some(b"&'") {
            return self.string(2, false);
        }
        self.take(length, Token::Word(word))
    }

    fn operator(&mut self, rest: &'a [u8]) -> Token<'a> {
        let asks = self.dialect == Dialect::Postgres;
        let of_operator = |byte: &u8| b"=<>!~^&|*/%+-#:\\".contains(byte) || (*byte == b'?' && asks);
        let mut length = rest.iter().take_while(|byte| of_operator(byte)).count().max(1);
        // A comment, a sign, or the end of code may follow without a space.
        for at in 1..length {
            let comment = matches!(&rest[at..], [b'-', b'-', ..] | [b'/', b'*', ..] | [b'*', b'/', ..]);
            if comment || matches!(rest[at], b'-' | b'+') && rest.get(at + 1).is_some_and(u8::is_ascii_digit)
            {
                length = at;
                break;
            }
        }
        self.take(length, Token::Operator(&rest[..length]))
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte == b'@' || byte >= 0x80
}

fn is_unary(last: Last) -> bool {
    !matches!(last, Last::Name | Last::Literal | Last::Close | Last::Tight)
}

/// Writes tokens with uniform spacing, and collapses lists as they close.
struct Writer<'a> {
    out: &'a mut Vec<u8>,
    base: usize,
    last: Last,
    list: Option<List>,
    /// The place of the last row of VALUES, while another may follow.
    row: Option<(usize, usize)>,
}

/// An open list after IN or VALUES.
struct List {
    start: usize,
    depth: u32,
    literals: bool,
    is_row: bool,
}

impl Writer<'_> {
    fn write(&mut self, token: Token<'_>) {
        match token {
            Token::Word(word) => self.word(word),
            Token::Literal => self.literal(),
            Token::Quoted(name) => self.plain(name, Last::Name),
            Token::Operator(operator) => self.plain(operator, Last::Operator),
            Token::Tight(text) => self.tight(text, Last::Tight),
            Token::Dot => self.tight(b".", Last::Tight),
            Token::Open => self.open(),
            Token::Close => self.close(),
            Token::Comma => {
                self.out.push(b',');
                self.last = Last::Comma;
            }
            Token::Semicolon => {
                self.row = None;
                self.tight(b";", Last::Semicolon);
            }
        }
    }

    fn space(&mut self) {
        if !matches!(self.last, Last::Start | Last::Open | Last::Tight) {
            self.out.push(b' ');
        }
    }

    fn word(&mut self, word: &[u8]) {
        let is = |text: &[u8]| word.eq_ignore_ascii_case(text);
        let value = matches!(word.len(), 4 | 5) && (is(b"null") || is(b"true") || is(b"false"));
        if value && self.last != Last::Is {
            return self.literal();
        }
        self.end_rows();
        self.space();
        let start = self.out.len();
        self.out.extend_from_slice(word);
        self.out[start..].make_ascii_lowercase();
        self.last = kind_of_word(&self.out[start..]);
        if let Some(list) = &mut self.list {
            list.literals = false;
        }
    }

    fn literal(&mut self) {
        self.space();
        self.out.push(b'?');
        self.last = Last::Literal;
    }

    /// Something other than a row follows a row.
    fn end_rows(&mut self) {
        if self.list.is_none() {
            self.row = None;
        }
    }

    fn plain(&mut self, text: &[u8], last: Last) {
        self.end_rows();
        self.space();
        self.tight(text, last);
    }

    fn tight(&mut self, text: &[u8], last: Last) {
        self.out.extend_from_slice(text);
        self.last = last;
        if let Some(list) = &mut self.list {
            list.literals = false;
        }
    }

    fn open(&mut self) {
        let another_row = self.last == Last::Comma && self.row.is_some();
        let is_row = self.last == Last::Values || another_row;
        let begins_list = is_row || self.last == Last::In;
        if self.last != Last::Name {
            self.space();
        }
        match &mut self.list {
            Some(list) => {
                list.depth += 1;
                list.literals = false;
            }
            None if begins_list => {
                self.list = Some(List { start: self.out.len(), depth: 1, literals: true, is_row });
            }
            None => self.row = None,
        }
        self.out.push(b'(');
        self.last = Last::Open;
    }

    fn close(&mut self) {
        self.out.push(b')');
        let empty = self.last == Last::Open;
        self.last = Last::Close;
        let Some(list) = &mut self.list else { return };
        list.depth -= 1;
        if list.depth > 0 {
            return;
        }
        let List { start, literals, is_row, .. } = *list;
        self.list = None;
        if literals && !empty {
            self.out.truncate(start);
            self.out.extend_from_slice(b"(?+)");
        }
        if is_row {
            self.row = Some(match self.row {
                Some((from, to)) if self.out[from..to] == self.out[start..] => {
                    self.out.truncate(to);
                    (from, to)
                }
                _ => (start, self.out.len()),
            });
        }
    }

    fn finish(self, cut: bool, most: usize) {
        let mut end = self.out.len();
        if cut {
            // How much of a row or list was captured depends on its values, so the captured part is dropped.
            end = match (&self.list, self.row) {
                (_, Some((_, to))) => to,
                (Some(list), None) => list.start,
                (None, None) => end,
            };
        }
        self.out.truncate(end);
        while !cut && self.out.len() > self.base && self.out.last() == Some(&b';') {
            self.out.pop();
        }
        let over = self.out.len() - self.base > most;
        if over {
            self.out.truncate(self.base + most);
        }
        if cut || over {
            self.out.extend_from_slice(CUT_MARK.as_bytes());
        }
    }
}

fn kind_of_word(word: &[u8]) -> Last {
    match word {
        b"in" => Last::In,
        b"values" | b"value" => Last::Values,
        b"is" | b"not" => Last::Is,
        b"and" | b"or" | b"where" | b"on" | b"from" | b"select" | b"as" | b"exists" | b"using" | b"join"
        | b"union" | b"all" | b"any" | b"some" | b"case" | b"when" | b"then" | b"else" | b"like"
        | b"between" | b"by" | b"over" | b"into" | b"table" | b"with" | b"returning" | b"limit"
        | b"offset" | b"having" | b"set" | b"return" | b"interval" | b"distinct" | b"except"
        | b"intersect" | b"top" => Last::Keyword,
        _ => Last::Name,
    }
}

#[cfg(test)]
#[path = "sql_tests.rs"]
mod tests;
