//! What the terminal can show. The only reader of `NO_COLOR`, `TERM`, the locale and the window's width.

use std::io::{self, IsTerminal, Stdout};

use report::Style;

use tui::{TerminalStyle, screen};

/// The style of the live view; `None` unless both streams are a terminal that can move its cursor and send keys.
pub fn live_style(no_color: bool) -> Option<TerminalStyle> {
    let both = io::stdout().is_terminal() && io::stderr().is_terminal();
    let moves = std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
    let look = TerminalStyle { colour: !no_color && !is_set("NO_COLOR"), unicode: speaks_utf8() };
    (both && moves && screen::is_in_front()).then_some(look)
}

/// The style of standard output: colors only on a terminal, unless NO_COLOR or `--no-color` disables them.
pub fn style(out: &Stdout, no_color: bool) -> Style {
    let is_terminal = out.is_terminal();
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    Style {
        colour: is_terminal && !no_color && !is_set("NO_COLOR") && !dumb,
        unicode: !is_terminal || speaks_utf8(),
        width: if is_terminal { width(out) } else { 100 },
        details: false,
    }
}

fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

fn speaks_utf8() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    // Containers usually have no locale at all, but their terminals show UTF-8.
    locale.is_none_or(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8") || locale == "c" || locale == "posix"
    })
}

fn width(out: &Stdout) -> usize {
    let columns = rustix::termios::tcgetwinsize(out).map_or(0, |size| usize::from(size.ws_col));
    if columns == 0 { 100 } else { columns.clamp(60, 100) }
}
