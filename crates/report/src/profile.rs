//! The text of `profile`: which frames have the time, what threads wait for, who sleeps, and what is doubtful.

use std::io::{self, Write};

use record::observation::profile::{FrameShare, Picture, PictureResult, ProfileResults, Wait};
use record::observation::{Observation, ObservationBody};
use record::stacks::FrameChange;
use units::Nanos;

use crate::style::{Style, wrap};
use units::{count, percent, plural};

/// Rows of a table: what a screen holds of three of them.
const ROWS: usize = 10;
const ROWS_OF_QUEUE: usize = 5;
/// A change of less is noise of sampling in any run that people wait for.
const LEAST_CHANGE: f64 = 0.005;

/// What a profile saw.
///
/// # Errors
///
/// When `out` fails.
///
/// # Panics
///
/// When it is not the record of a profile.
pub fn profile_text(observation: &Observation, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let ObservationBody::Profile(results) = &observation.body else {
        panic!("it is the record of a profile")
    };
    head(observation, results, out, style)?;
    for picture in &results.pictures {
        picture_text(picture, results, out, style)?;
        if picture.picture == Picture::OffCpu {
            waits(&results.waits, out, style)?;
            sleepers(results, out, style)?;
        }
    }
    doubts(observation, results, out, style)
}

fn head(
    observation: &Observation,
    results: &ProfileResults,
    out: &mut dyn Write,
    style: Style,
) -> io::Result<()> {
    let length = observation.time.elapsed_ns.map_or("under way".to_owned(), |ns| Nanos(ns).to_string());
    let named = results.processes.iter().take(3).map(|process| {
        let name = process.name.as_deref().unwrap_or("gone before it was looked at");
        format!("{} ({})", process.pid, record::escape_text(name))
    });
    let mut named = named.collect::<Vec<_>>().join(", ");
    if results.processes.len() > 3 {
        named.push_str(&format!(" and {} more", results.processes.len() - 3));
    }
    let text = format!("profile of {named}: {length}, {} samples/s on each CPU", results.rate_hz);
    writeln!(out, "{}", style.strong(text))
}

fn picture_text(
    picture: &PictureResult,
    results: &ProfileResults,
    out: &mut dyn Write,
    style: Style,
) -> io::Result<()> {
    let time = Nanos(picture.time_ns);
    let (what, rows) = match picture.picture {
        Picture::OnCpu => (
            format!(
                "on CPU: {} by {}; the scheduler counted {}",
                time,
                plural(picture.count, "sample"),
                Nanos(results.on_cpu_ns)
            ),
            ROWS,
        ),
        Picture::OffCpu => {
            (format!("asleep: {time} of all threads, {}", plural(picture.count, "sleep")), ROWS_OF_QUEUE)
        }
        Picture::RunQueue => (
            format!("waiting for a CPU: {time} of all threads, {}", plural(picture.count, "wait")),
            ROWS_OF_QUEUE,
        ),
    };
    writeln!(out, "\n{}", style.strong(what))?;
    if rows > 0 && !picture.frames.is_empty() {
        writeln!(out, "{}", style.faint("       own     total  frame"))?;
        picture.frames.iter().take(rows).try_for_each(|frame| row(frame, out, style))?;
    }
    Ok(())
}

fn row(frame: &FrameShare, out: &mut dyn Write, style: Style) -> io::Result<()> {
    const BEFORE: usize = 22;
    let name = cut(&record::escape_text(&frame.frame), style.width.saturating_sub(BEFORE));
    writeln!(out, "  {:>8}  {:>8}  {name}", percent(frame.own), percent(frame.total))
}

fn waits(waits: &[Wait], out: &mut dyn Write, style: Style) -> io::Result<()> {
    if waits.is_empty() {
        return Ok(());
    }
    writeln!(out, "{}", style.faint("  waits for         time  of sleep  of what is not idle"))?;
    for wait in waits {
        let busy = wait.share_of_busy.map_or(style.absent().to_owned(), percent);
        let spins = if wait.picture == Picture::OnCpu { " (on a CPU: it spins)" } else { "" };
        let what = record::escape_text(&wait.what);
        let time = Nanos(wait.time_ns).to_string();
        let line = format!(
            "  {:<8} {time:>13}  {:>8}  {busy:>8}  {what}{spins}",
            wait.kind.name(),
            percent(wait.share)
        );
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn sleepers(results: &ProfileResults, out: &mut dyn Write, style: Style) -> io::Result<()> {
    if results.sleepers.is_empty() {
        return Ok(());
    }
    writeln!(out, "{}", style.faint("  sleepers           threads        asleep      sleeps  for"))?;
    for sleeper in results.sleepers.iter().take(ROWS) {
        writeln!(
            out,
            "  {:<16}  {:>8}  {:>12}  {:>10}  {}",
            record::escape_text(&sleeper.thread),
            count(sleeper.threads),
            Nanos(sleeper.asleep_ns).to_string(),
            count(sleeper.sleeps),
            record::escape_text(sleeper.what.as_deref().unwrap_or(style.absent())),
        )?;
    }
    Ok(())
}

fn doubts(
    observation: &Observation,
    results: &ProfileResults,
    out: &mut dyn Write,
    style: Style,
) -> io::Result<()> {
    let mut told: Vec<_> = observation.missing.iter().map(|fact| record::escape_text(&fact.why)).collect();
    let lost = results.lost;
    let counts = [
        (lost.stacks, "stacks had no room: their time stands as `[stack lost]`"),
        (lost.weights, "samples or waits had no room: they are in no picture"),
        (lost.threads, "threads had no room: nothing is known of them"),
        (lost.processes, "children were not followed"),
        (lost.switches, "switches were not told: their time is the scheduler's"),
    ];
    told.extend(counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("lost: {} {what}", count(*n))));
    writeln!(out)?;
    for line in &told {
        writeln!(out, "{}", style.bad(wrap("note  ", line, style.width)))?;
    }
    let quality = &results.quality;
    let share = |part: u64, whole: u64| {
        if whole == 0 { style.absent().to_owned() } else { percent(part as f64 / whole as f64) }
    };
    let mut last = format!(
        "frames without a name {}, cut stacks {} of samples and {} of sleeps (mended {} and {})",
        share(quality.unknown_frames, quality.frames),
        share(quality.cut_stacks, quality.stacks),
        share(quality.cut_sleeps, quality.sleeps),
        share(quality.mended_stacks, quality.stacks),
        share(quality.mended_sleeps, quality.sleeps)
    );
    if !lost.any() {
        last.push_str(", nothing lost");
    }
    if let (Some(cost), Some(runs)) = (results.cost_ns, results.cost_runs) {
        last.push_str(&format!("; the programs took {} in {}", Nanos(cost), plural(runs, "run")));
    }
    writeln!(out, "{}", style.faint(last))
}

/// What changed between two profiles, the frames that grew most first.
#[derive(Debug, Clone, Copy)]
pub struct ProfileChange<'a> {
    pub picture: Picture,
    pub changes: &'a [FrameChange],
}

/// Prints what grew and what shrank.
///
/// # Errors
///
/// When `out` fails.
pub fn profile_change_text(change: &ProfileChange<'_>, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let is_change = |change: &&FrameChange| change.change().abs() >= LEAST_CHANGE;
    let grown = change.changes.iter().filter(is_change).take_while(|change| change.change() > 0.0).take(ROWS);
    let shrunk = change.changes.iter().rev().filter(is_change).take_while(|change| change.change() < 0.0);
    let mut rows: Vec<_> = grown.collect();
    let mut shrunk: Vec<_> = shrunk.take(ROWS_OF_QUEUE).collect();
    shrunk.reverse();
    rows.append(&mut shrunk);
    let title = match change.picture {
        Picture::OnCpu => "on CPU",
        Picture::OffCpu => "asleep",
        Picture::RunQueue => "waiting for a CPU",
    };
    writeln!(out, "{}", style.strong(format!("{title}: a frame's share of the whole, with all it calls")))?;
    if rows.is_empty() {
        return writeln!(out, "  no frame's share changed by {}", percent(LEAST_CHANGE));
    }
    writeln!(out, "{}", style.faint("    before     after     change  its own  frame"))?;
    for row in rows {
        const BEFORE: usize = 42;
        let name = cut(&record::escape_text(&row.frame), style.width.saturating_sub(BEFORE));
        let points = |change: f64| format!("{:+.1}", change * 100.0);
        let (all, own) = (points(row.change()), points(row.own_change()));
        writeln!(
            out,
            "  {:>8}  {:>8}  {all:>9}  {own:>7}  {name}",
            percent(row.total_before),
            percent(row.total_after)
        )?;
    }
    Ok(())
}

/// To at most `width` characters.
fn cut(text: &str, width: usize) -> String {
    let width = width.max(20);
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use record::observation::profile::{ProfileLosses, ProfiledProcess, Sleeper, WaitKind};
    use record::stacks::{Stacks, changes};

    use super::*;

    fn share(frame: &str, own: f64) -> FrameShare {
        FrameShare { frame: frame.to_owned(), own, total: own }
    }

    fn picture(picture: Picture, frame: &str) -> PictureResult {
        PictureResult {
            picture,
            count: 3,
            time_ns: 30_000_000,
            stacks: 1,
            frames: vec![share(frame, 0.75)],
            widest: Vec::new(),
        }
    }

    fn results() -> ProfileResults {
        ProfileResults {
            processes: vec![ProfiledProcess { pid: 7, name: Some("shop".to_owned()), ended: false }],
            rate_hz: 99,
            on_cpu_ns: 31_000_000,
            pictures: vec![
                picture(Picture::OnCpu, "f\u{1b}[2J"),
                picture(Picture::OffCpu, "lock"),
                picture(Picture::RunQueue, "g"),
            ],
            waits: vec![Wait {
                picture: Picture::OffCpu,
                kind: WaitKind::Pool,
                what: "a connection of HikariCP's pool".to_owned(),
                time_ns: 20_000_000,
                share: 0.5,
                share_of_busy: Some(0.8),
            }],
            sleepers: vec![Sleeper {
                thread: "worker".to_owned(),
                threads: 2,
                sleeps: 3,
                asleep_ns: 30_000_000,
                what: None,
            }],
            lost: ProfileLosses { stacks: 4, ..ProfileLosses::default() },
            ..ProfileResults::default()
        }
    }

    fn printed(results: &ProfileResults) -> String {
        let mut out = Vec::new();
        for shown in &results.pictures {
            picture_text(shown, results, &mut out, Style::PLAIN).unwrap();
        }
        waits(&results.waits, &mut out, Style::PLAIN).unwrap();
        sleepers(results, &mut out, Style::PLAIN).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_wait_for_a_pool_is_named_with_its_share() {
        let text = printed(&results());
        assert!(text.contains("on CPU: 30.0 ms by 3 samples; the scheduler counted 31.0 ms"), "{text}");
        let line = text.lines().find(|line| line.contains("HikariCP")).unwrap();
        assert!(line.contains("pool") && line.contains("50.0 %") && line.contains("80.0 %"), "{line}");
    }

    /// If this fails, a function of the server writes to the terminal what it likes.
    #[test]
    fn a_name_reaches_no_terminal_as_it_is() {
        let text = printed(&results());
        assert!(!text.contains('\u{1b}') && text.contains("f\\u{1b}[2J"), "{text}");
    }

    #[test]
    fn a_change_names_what_grew_first_and_what_shrank_last() {
        let stacks = |text| Stacks::parse(text).unwrap();
        let changes = changes(&stacks("t;main;f 50\nt;main;g 50"), &stacks("t;main;f 75\nt;main;g 25"));
        let mut out = Vec::new();
        let change = ProfileChange { picture: Picture::OnCpu, changes: &changes };
        profile_change_text(&change, &mut out, Style::PLAIN).unwrap();
        let text = String::from_utf8(out).unwrap();
        let rows: Vec<_> = text.lines().skip(2).collect();
        assert_eq!(rows.len(), 2, "{text}");
        assert!(rows[0].ends_with(" f") && rows[0].contains("+25.0"), "{text}");
        assert!(rows[1].ends_with(" g") && rows[1].contains("-25.0"), "{text}");
    }
}
