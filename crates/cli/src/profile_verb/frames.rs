//! `parallax profile --focus` and `--highlight`: questions about the frames of one profile, new or existing.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::ensure;
use clap::ValueHint;
use export::flame::{FlameGraph, Highlight};
use export::pictures;
use findings::view::View;
use findings::{FoundFrames, FrameAnswers, focus_view};
use record::RecordDir;
use record::observation::ObservationBody;
use record::observation::profile::{Picture, Spin};
use record::stacks::focus::Focus;
use record::stacks::{Stacks, spins};
use run::observe::frames::FramePattern;
use units::Nanos;

use super::sources;
use crate::exit::Exit;
use crate::output::report_line;
use crate::{records, terminal};

/// What to ask of the frames.
#[derive(Debug, Clone, clap::Args)]
pub struct FrameArgs {
    /// Show a function's share, callers and callees, as tables and as flame graphs: part of a frame's name, or a regular
    /// expression.
    #[arg(long, value_name = "FRAME", value_parser = clap::builder::NonEmptyStringValueParser::new(), conflicts_with_all = ["diff", "controlled"])]
    pub focus: Option<String>,

    /// Colour these frames in the flame graphs, with their share in the title: part of a frame's name, or a regular
    /// expression.
    #[arg(long, value_name = "FRAME", value_parser = clap::builder::NonEmptyStringValueParser::new(), conflicts_with_all = ["diff", "controlled"])]
    pub highlight: Option<String>,

    /// Count samples whose leaf is this function as spinning in a lock; repeatable, in addition to the known functions.
    #[arg(long, value_name = "FRAME", value_parser = clap::builder::NonEmptyStringValueParser::new(), conflicts_with_all = ["diff", "controlled"])]
    pub spin: Vec<String>,

    /// Answer --focus, --highlight and --spin from an existing profile: a record of `profile`, or collapsed stacks of
    /// any tool.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["pid", "duration", "rate", "diff", "controlled"], value_hint = ValueHint::AnyPath)]
    pub from: Option<PathBuf>,
}

/// How the answers are printed.
#[derive(Debug, Clone, Copy)]
pub struct Printing {
    pub json: bool,
    pub no_color: bool,
}

/// Answers from an existing profile. Flame graphs go to `folder`, which is made if there are any.
///
/// # Errors
///
/// When there is no question or no such profile, it cannot be read, no frame matches, or a flame graph cannot be
/// written.
pub fn run(args: &FrameArgs, from: &Path, folder: &Path, printing: Printing) -> anyhow::Result<Exit> {
    let is_asked = args.focus.is_some() || args.highlight.is_some() || !args.spin.is_empty();
    ensure!(is_asked, "--from needs a question: add --focus FRAME, --highlight FRAME or --spin FRAME");
    let profile = Read::of(from)?;
    ensure!(profile.0.iter().any(|(_, stacks)| !stacks.is_empty()), "`{}` has no samples", from.display());
    let answers = Answers {
        focus: profile.find(args.focus.as_deref())?,
        highlight: profile.find(args.highlight.as_deref())?,
        spins: profile.spins(&args.spin),
        samples: profile.samples(),
    };
    let mut out = io::stdout();
    let style = terminal::style(&out, printing.no_color);
    if !args.spin.is_empty() && answers.spins.is_empty() {
        report_line("--spin: no sample has such a function at its leaf");
    }
    records::print(&answers.view(), printing.json, &mut out, style)?;
    for path in draw(&profile, &answers, folder, &subtitle(from))? {
        report_line(format_args!("flame graph: {}", path.display()));
    }
    Ok(Exit::Done)
}

/// Answers from a profile that was just recorded in `folder`, where the flame graphs are drawn, too. A question whose
/// frame is not in the profile is a line on standard error.
///
/// # Errors
///
/// When the profile cannot be read, or a flame graph cannot be written.
#[cfg(feature = "ebpf")]
pub fn run_on_new(args: &FrameArgs, folder: &Path, printing: Printing) -> anyhow::Result<()> {
    if args.focus.is_none() && args.highlight.is_none() {
        return Ok(());
    }
    let profile = Read::of(folder)?;
    let find = |question: Option<&String>| {
        profile.find(question.map(String::as_str)).unwrap_or_else(|error| {
            report_line(error);
            None
        })
    };
    // Its spins are in the record already.
    let (focus, highlight) = (find(args.focus.as_ref()), find(args.highlight.as_ref()));
    let answers = Answers { focus, highlight, spins: Vec::new(), samples: 0 };
    // The record, printed as JSON, holds no answers.
    if !printing.json && (answers.focus.is_some() || answers.highlight.is_some()) {
        let mut out = io::stdout();
        let style = terminal::style(&out, printing.no_color);
        crate::output::printed(io::Write::write_all(&mut out, b"\n"))?;
        records::print(&answers.view(), false, &mut out, style)?;
    }
    draw(&profile, &answers, folder, &subtitle(folder)).map(drop)
}

/// The pictures of a profile.
struct Read(Vec<(Picture, Stacks)>);

/// A question with its answer in each picture.
struct Answer {
    pattern: FramePattern,
    focus: Vec<(Picture, Focus)>,
}

impl Read {
    fn of(from: &Path) -> anyhow::Result<Read> {
        let read = |picture| Ok((picture, pictures::read(&sources::file_of(from, picture))?));
        sources::pictures_of(from)?.into_iter().map(read).collect::<anyhow::Result<_>>().map(Read)
    }

    /// The answer to a question, if there is one.
    fn find(&self, question: Option<&str>) -> anyhow::Result<Option<Answer>> {
        let Some(question) = question else { return Ok(None) };
        let stacks: Vec<_> = self.0.iter().map(|(_, stacks)| stacks).collect();
        let pattern = FramePattern::of(question, &stacks)?;
        let of = |(picture, stacks): &(Picture, Stacks)| {
            (*picture, Focus::of(stacks, |frame| pattern.matches(frame)))
        };
        let focus = self.0.iter().map(of).collect();
        Ok(Some(Answer { pattern, focus }))
    }

    fn spins(&self, added: &[String]) -> Vec<Spin> {
        let on_cpu = self.0.iter().filter(|(picture, _)| *picture == Picture::OnCpu);
        on_cpu.flat_map(|(_, stacks)| spins::found(stacks, added)).collect()
    }

    fn samples(&self) -> u64 {
        self.0.iter().find(|(picture, _)| *picture == Picture::OnCpu).map_or(0, |(_, stacks)| stacks.total())
    }
}

/// The answers to all questions.
struct Answers {
    focus: Option<Answer>,
    highlight: Option<Answer>,
    spins: Vec<Spin>,
    /// The samples on a CPU, of which `spins` are a part.
    samples: u64,
}

impl Answers {
    fn view(&self) -> View {
        focus_view(&FrameAnswers {
            focused: self.focus.iter().flat_map(Answer::found).collect(),
            highlighted: self.highlight.iter().flat_map(Answer::found).collect(),
            spins: &self.spins,
            samples: self.samples,
        })
    }
}

impl Answer {
    fn found(&self) -> impl Iterator<Item = FoundFrames<'_>> {
        let question = self.pattern.text();
        self.focus.iter().map(move |(picture, focus)| FoundFrames { picture: *picture, question, focus })
    }

    /// The answer in one picture, unless no frame there matches.
    fn in_picture(&self, picture: Picture) -> Option<FoundFrames<'_>> {
        self.found().find(|found| found.picture == picture && found.focus.total > 0)
    }
}

/// That of the record's own flame graphs; of other profiles, the path.
fn subtitle(from: &Path) -> String {
    let observed = record::read_observation(from).map(|observed| observed.document);
    if let Ok(document) = &observed
        && let ObservationBody::Profile(results) = &document.body
        && let Some(length) = document.time.elapsed_ns
    {
        return pictures::subtitle(document, Nanos(length), &results.processes);
    }
    from.display().to_string()
}

/// The question and its share, for a title.
fn label(found: &FoundFrames<'_>) -> String {
    format!("`{}`, {}", found.question, units::percent(found.share()))
}

/// Draws the pictures in which a frame matches, and returns their paths.
fn draw(profile: &Read, answers: &Answers, folder: &Path, subtitle: &str) -> anyhow::Result<Vec<PathBuf>> {
    let mut drawn = Vec::new();
    for (picture, stacks) in &profile.0 {
        let focused = answers.focus.as_ref().and_then(|answer| answer.in_picture(*picture));
        let highlight = answers.highlight.as_ref().and_then(|answer| answer.in_picture(*picture));
        if focused.is_none() && highlight.is_none() {
            continue;
        }
        // Held until it is drawn: nobody puts another directory in its place.
        let _held = RecordDir::make(folder)?;
        let highlight = highlight.map(|found| Highlight {
            frames: found.focus.matched.iter().map(|frame| frame.frame.clone()).collect::<BTreeSet<_>>(),
            label: label(&found),
        });
        let graph = FlameGraph { picture: *picture, subtitle, highlight: highlight.as_ref() };
        if highlight.is_some() {
            drawn.push(pictures::write_graph(folder, graph, stacks)?);
        }
        if let Some(found) = focused {
            drawn.extend(pictures::write_focus(folder, graph, &label(&found), found.focus)?);
        }
    }
    Ok(drawn)
}
