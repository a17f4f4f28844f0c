//! Makes untrusted text safe for a terminal and for one line.

/// `text` with each harmful character ([`is_harmful`]) escaped, as in `\u{1b}`. Escaping twice changes nothing more.
pub fn escape_text(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for c in text.chars() {
        if is_harmful(c) { printable.extend(c.escape_unicode()) } else { printable.push(c) }
    }
    printable
}

/// Whether `c` is a control character (C0, DEL, C1), a separator of lines or paragraphs, or a mark that changes the
/// direction of reading (Unicode Standard Annex 9, table 1).
pub fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
