//! Flame graphs: collapsed stacks as an interactive picture, and the difference of two.
//!
//! Inferno draws them. `record::stacks` has cleaned the names of frames; the writer of the picture escapes XML's
//! special characters.

use std::collections::BTreeSet;
use std::io::{self, Write};

use inferno::differential;
use inferno::flamegraph::color::{Color, MultiPalette, Palette, PaletteMap};
use inferno::flamegraph::{self, Direction, Options};
use record::observation::profile::Picture;
use record::stacks::Stacks;

/// The title of a picture.
#[derive(Debug, Clone, Copy)]
pub struct FlameGraph<'a> {
    /// The kind of picture.
    pub picture: Picture,
    /// The process and the time span.
    pub subtitle: &'a str,
    /// Frames to colour; not in a difference, whose colours are the change.
    pub highlight: Option<&'a Highlight>,
}

/// Frames that stand out, with their share in the title.
#[derive(Debug, Clone)]
pub struct Highlight {
    /// The names of the frames.
    pub frames: BTreeSet<String>,
    /// What they are: the question and the share.
    pub label: String,
}

units::named_enum! {
    /// A part of a picture that belongs to one frame; its name is that in the files' names.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum FocusPart {
        /// Only the stacks with the frame.
        Through = "focus",
        /// From the frame back to its threads: each frame is called by the one below it, and the focused one is at the
        /// top.
        Callers = "callers",
        /// From the frame on, which is at the bottom.
        Callees = "callees",
    }
}

/// A vivid pink that the palettes of frames do not have.
const HIGHLIGHT: Color = Color { r: 255, g: 0, b: 220 };
/// The longest question in a title, in characters: a template's name would leave the picture.
const LABEL_LONGEST: usize = 100;

impl FlameGraph<'_> {
    /// Draws `stacks` as SVG.
    ///
    /// # Errors
    ///
    /// When there is nothing to draw, or `out` fails.
    pub fn draw(&self, stacks: &Stacks, out: &mut impl Write) -> io::Result<()> {
        let label = self.highlight.map(|highlight| format!(" ({})", shortened(&highlight.label)));
        let title = format!("{}{}", title(self.picture), label.unwrap_or_default());
        self.write_coloured(&title, Direction::Straight, stacks, out)
    }

    /// Draws the `part` of a frame, which the title calls `label`. `stacks` are the part's.
    ///
    /// # Errors
    ///
    /// As [`FlameGraph::draw`].
    pub fn draw_focus(
        &self,
        part: FocusPart,
        label: &str,
        stacks: &Stacks,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let (label, place) = (shortened(label), place(self.picture));
        let (title, direction) = match part {
            FocusPart::Through => (format!("{place}: stacks with {label}"), Direction::Straight),
            FocusPart::Callers => (format!("{place}: callers of {label}"), Direction::Inverted),
            FocusPart::Callees => (format!("{place}: what is called by {label}"), Direction::Straight),
        };
        self.write_coloured(&title, direction, stacks, out)
    }

    fn write_coloured(
        &self,
        title: &str,
        direction: Direction,
        stacks: &Stacks,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let mut colours = PaletteMap::default();
        let mut options = self.options(title);
        options.colors = Palette::Multi(MultiPalette::Java);
        options.direction = direction;
        let frames = self.highlight.iter().flat_map(|highlight| &highlight.frames);
        for frame in frames {
            colours.insert(frame, HIGHLIGHT);
        }
        if self.highlight.is_some() {
            options.palette_map = Some(&mut colours);
        }
        self.write(options, stacks.lines(), out)
    }

    /// Draws what changed: the widths are those of `after`; growth is red and shrinkage blue, both as shares of the
    /// whole.
    ///
    /// # Errors
    ///
    /// As [`FlameGraph::draw`].
    pub fn draw_difference(&self, before: &Stacks, after: &Stacks, out: &mut impl Write) -> io::Result<()> {
        let mut texts = [Vec::new(), Vec::new()];
        before.write(&mut texts[0])?;
        after.write(&mut texts[1])?;
        let mut joined = Vec::new();
        let options = differential::Options { normalize: true, strip_hex: false };
        differential::from_readers(options, texts[0].as_slice(), texts[1].as_slice(), &mut joined)?;
        let joined = String::from_utf8(joined).map_err(io::Error::other)?;
        let title = format!(
            "{}: what changed (red: a larger share than before, blue: a smaller one)",
            title(self.picture)
        );
        self.write(self.options(&title), joined.lines().map(str::to_owned), out)
    }

    fn options<'o>(&self, title: &str) -> Options<'o> {
        let mut options = Options::default();
        options.title = record::escape_text(title);
        options.subtitle = Some(record::escape_text(self.subtitle));
        options.count_name = self.picture.unit().to_owned();
        options.name_type = "Frame:".to_owned();
        // The same stacks give the same picture.
        options.hash = true;
        options
    }

    fn write(
        &self,
        mut options: Options<'_>,
        lines: impl Iterator<Item = String>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let lines: Vec<_> = lines.collect();
        flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), out)
    }
}

fn shortened(label: &str) -> String {
    if label.chars().count() <= LABEL_LONGEST {
        return label.to_owned();
    }
    // The share is at the end.
    let half = LABEL_LONGEST / 2;
    let end: String = label.chars().skip(label.chars().count() - half).collect();
    label.chars().take(half).chain(['…']).chain(end.chars()).collect()
}

const fn place(picture: Picture) -> &'static str {
    match picture {
        Picture::OnCpu => "On CPU",
        Picture::OffCpu => "Off CPU",
        Picture::RunQueue => "Run queue",
    }
}

const fn title(picture: Picture) -> &'static str {
    match picture {
        Picture::OnCpu => "On CPU: where it runs",
        Picture::OffCpu => "Off CPU: where it sleeps",
        Picture::RunQueue => "Run queue: where it waits for a CPU",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const GRAPH: FlameGraph<'_> =
        FlameGraph { picture: Picture::OnCpu, subtitle: "a & <b>", highlight: None };

    fn drawn(text: &str) -> String {
        let mut svg = Vec::new();
        GRAPH.draw(&Stacks::parse(text).unwrap(), &mut svg).unwrap();
        String::from_utf8(svg).unwrap()
    }

    #[test]
    fn frames_are_in_the_picture() {
        let svg = drawn("t;main;slow 30\nt;main;fast 10\n");
        assert!(svg.contains("slow (30 samples, 75.00%)"), "{svg}");
        assert!(svg.contains("a &amp; &lt;b&gt;"));
    }

    /// If this fails, a function name of the server can run a script in the browser that opens the picture.
    #[test]
    fn a_name_is_not_interpreted_as_markup() {
        let svg = drawn("t;</title><script>alert(1)</script>;\"onload=\"x() 5\nt;]]>&#60;b 5\n");
        assert!(!svg.contains("<script>alert"), "{svg}");
        assert!(!svg.contains("</title><script"));
        assert!(svg.contains("&lt;script&gt;alert(1)"), "{svg}");
        // The semicolon ends the frame.
        assert!(svg.contains("]]&gt;&amp;#60 ("), "{svg}");
        // The only attributes of this name are the picture's own.
        assert_eq!(
            svg.matches("onload=").count(),
            drawn("t;main 1").matches("onload=").count() + svg.matches("&quot;onload=").count()
        );
    }

    #[test]
    fn highlighted_frames_have_their_colour_and_share() {
        let highlight =
            Highlight { frames: ["slow".to_owned()].into(), label: "`</title><b>` 75.0 %".to_owned() };
        let graph = FlameGraph { highlight: Some(&highlight), ..GRAPH };
        let mut svg = Vec::new();
        graph.draw(&Stacks::parse("t;main;slow 30\nt;main;fast 10\n").unwrap(), &mut svg).unwrap();
        let svg = String::from_utf8(svg).unwrap();
        assert!(svg.contains("On CPU: where it runs (`&lt;/title&gt;&lt;b&gt;` 75.0 %)"), "{svg}");
        let filled = |frame: &str| {
            let (_, rest) = svg.split_once(&format!("<title>{frame} (")).unwrap();
            rest.split("fill=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
        };
        assert_eq!(filled("slow"), "rgb(255,0,220)");
        assert_ne!(filled("fast"), "rgb(255,0,220)");
    }

    /// The text of the pictures of one frame: from top to bottom as they are drawn.
    #[test]
    fn a_focus_is_drawn_from_the_frame_to_both_sides() {
        let stacks = Stacks::parse("t;main;order;price;load 30\nt;main;cart;price 10\nt;idle 60").unwrap();
        let focus = record::stacks::focus::Focus::of(&stacks, |frame| frame == "price");
        let drawn = |part: FocusPart, stacks: &Stacks| {
            let mut svg = Vec::new();
            GRAPH.draw_focus(part, "`price`, 40.0 %", stacks, &mut svg).unwrap();
            rows(&String::from_utf8(svg).unwrap())
        };
        assert_eq!(
            drawn(FocusPart::Through, &focus.through),
            "On CPU: stacks with `price`, 40.0 %\n\
             load 30\nprice 10, price 30\ncart 10, order 30\nmain 40\nt 40\nall 40"
        );
        assert_eq!(
            drawn(FocusPart::Callers, &focus.to_root),
            "On CPU: callers of `price`, 40.0 %\n\
             all 40\nprice 40\ncart 10, order 30\nmain 10, main 30\nt 10, t 30"
        );
        assert_eq!(
            drawn(FocusPart::Callees, &focus.to_leaf),
            "On CPU: what is called by `price`, 40.0 %\nload 30\nprice 40\nall 40"
        );
    }

    /// The title of a picture and its frames with their samples, a line per row, from the top.
    fn rows(svg: &str) -> String {
        let between = |text: &str, open: &str, close: &str| {
            text.split_once(open).map(|(_, rest)| rest.split(close).next().unwrap_or_default().to_owned())
        };
        let mut rows: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
        for frame in svg.split("<g><title>").skip(1) {
            let name = frame.split(" samples").next().unwrap_or_default().replace(" (", " ");
            let y = between(frame, " y=\"", "\"").and_then(|y| y.parse().ok()).expect("a frame has a row");
            rows.entry(y).or_default().insert(name);
        }
        let title = svg.split_once("<text id=\"title\"").and_then(|(_, rest)| between(rest, ">", "<"));
        let rows = rows.into_values().map(|row| row.into_iter().collect::<Vec<_>>().join(", "));
        std::iter::once(title.expect("a picture has a title")).chain(rows).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_difference_has_what_grew() {
        let stacks = |text| Stacks::parse(text).unwrap();
        let mut svg = Vec::new();
        GRAPH
            .draw_difference(
                &stacks("t;main;f 50\nt;main;g 50"),
                &stacks("t;main;f 300\nt;main;g 100"),
                &mut svg,
            )
            .unwrap();
        let svg = String::from_utf8(svg).unwrap();
        assert!(svg.contains("f (300 samples, 75.00%; +25.00%)"), "{svg}");
    }

    #[test]
    fn an_empty_profile_is_refused() {
        assert!(GRAPH.draw(&Stacks::default(), &mut Vec::new()).is_err());
    }
}
