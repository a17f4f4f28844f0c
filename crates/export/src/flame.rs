//! Flame graphs: collapsed stacks as an interactive picture, and the difference of two.
//!
//! Inferno draws them. `record::stacks` has cleaned the names of frames; the writer of the picture escapes XML's
//! special characters.

use std::io::{self, Write};

use inferno::differential;
use inferno::flamegraph::color::{MultiPalette, Palette};
use inferno::flamegraph::{self, Options};
use record::observation::profile::Picture;
use record::stacks::Stacks;

/// The title of a picture.
#[derive(Debug, Clone, Copy)]
pub struct FlameGraph<'a> {
    /// The kind of picture.
    pub picture: Picture,
    /// The process and the time span.
    pub subtitle: &'a str,
}

impl FlameGraph<'_> {
    /// Draws `stacks` as SVG.
    ///
    /// # Errors
    ///
    /// When there is nothing to draw, or `out` fails.
    pub fn draw(&self, stacks: &Stacks, out: &mut impl Write) -> io::Result<()> {
        let mut options = self.options(title(self.picture));
        options.colors = Palette::Multi(MultiPalette::Java);
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

    fn options(&self, title: &str) -> Options<'static> {
        let mut options = Options::default();
        options.title = title.to_owned();
        options.subtitle = Some(record::escape_text(self.subtitle));
        options.count_name = self.picture.unit().to_owned();
        options.name_type = "Frame:".to_owned();
        // The same stacks give the same picture.
        options.hash = true;
        options
    }

    fn write(
        &self,
        mut options: Options<'static>,
        lines: impl Iterator<Item = String>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let lines: Vec<_> = lines.collect();
        flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), out)
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
    use super::*;

    const GRAPH: FlameGraph<'_> = FlameGraph { picture: Picture::OnCpu, subtitle: "a & <b>" };

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
