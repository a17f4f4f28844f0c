//! The look of the live view: characters that the terminal can show, and colours that only repeat what they express.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;

use super::heat;
use super::lights::CheckLight;

/// The capabilities of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalStyle {
    pub colour: bool,
    pub unicode: bool,
}

impl TerminalStyle {
    /// The text of a heading.
    pub fn title(self, text: impl Into<String>) -> Span<'static> {
        Span::styled(text.into(), Modifier::BOLD)
    }

    /// Text of lesser importance.
    pub fn faint(self, text: impl Into<String>) -> Span<'static> {
        Span::styled(text.into(), Modifier::DIM)
    }

    /// The name of a key.
    pub fn key(self, text: impl Into<String>) -> Span<'static> {
        Span::styled(text.into(), Modifier::BOLD)
    }

    /// Text that reports a problem.
    pub fn bad(self, text: impl Into<String>) -> Span<'static> {
        self.paint(text, Color::Red)
    }

    /// Text in a color, which is left out without colors.
    pub fn paint(self, text: impl Into<String>, colour: Color) -> Span<'static> {
        let style = if self.colour { Style::new().fg(colour) } else { Style::new() };
        Span::styled(text.into(), style)
    }

    /// The sign of a check: a character, and a color that repeats it.
    pub fn light(self, light: CheckLight) -> Span<'static> {
        let (signs, colour) = match light {
            CheckLight::Green => (["✓", "ok"], Color::Green),
            CheckLight::Amber => (["!", "!"], Color::Yellow),
            CheckLight::Red => (["✗", "X"], Color::Red),
            CheckLight::Off => (["–", "-"], Color::Reset),
        };
        self.paint(if self.unicode { signs[0] } else { signs[1] }, colour).style_bold()
    }

    /// A multiplication sign.
    pub fn cross(self) -> &'static str {
        if self.unicode { "×" } else { "x" }
    }

    /// A bar of `cells`, filled to `share`.
    pub fn bar(self, share: f64, cells: usize) -> (String, String) {
        let filled = ((share.clamp(0.0, 1.0) * cells as f64).round() as usize).min(cells);
        let (full, empty) = if self.unicode { ("█", "░") } else { ("#", ".") };
        (full.repeat(filled), empty.repeat(cells - filled))
    }

    /// One character for each of `values`, as high as its share of `top`.
    pub fn sparkline(self, values: impl Iterator<Item = f64>, top: f64) -> String {
        let levels: &[char] = if self.unicode {
            &[' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']
        } else {
            &[' ', '.', ':', '+', '#']
        };
        let full = (levels.len() - 1) as f64;
        let level = |value: f64| match value {
            value if value <= 0.0 || top <= 0.0 => 0,
            value => ((value / top * full).round() as usize).clamp(1, levels.len() - 1),
        };
        values.map(|value| levels[level(value)]).collect()
    }

    /// The character for a part of a stacked bar: neighbours differ even without colour.
    pub fn part(self, index: usize) -> &'static str {
        let parts = if self.unicode { ["█", "▒", "▓", "░"] } else { ["#", "-", "=", "."] };
        parts[index % parts.len()]
    }

    /// Cells of the heat map for a share from 0 to 1.
    pub fn heat(self, share: f64, cells: usize) -> Span<'static> {
        let density = heat::density(share);
        self.paint(self.heat_signs()[density].repeat(cells), heat::COLOURS[density])
    }

    /// The legend of the heat map.
    pub fn heat_key(self) -> String {
        let [_, least, few, some, many, most] = self.heat_signs();
        format!("{least} {few} 1 % {some} 5 % {many} 20 % {most} 50 %")
    }

    fn heat_signs(self) -> [&'static str; 6] {
        if self.unicode { [" ", "·", "░", "▒", "▓", "█"] } else { [" ", ".", ":", "+", "%", "#"] }
    }
}

trait Bold {
    fn style_bold(self) -> Self;
}

impl Bold for Span<'static> {
    fn style_bold(self) -> Span<'static> {
        let style = self.style.add_modifier(Modifier::BOLD);
        self.style(style)
    }
}
