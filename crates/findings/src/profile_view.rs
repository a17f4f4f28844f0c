//! The view of a profile: which frames have the time, what threads wait for, which threads sleep, and what is doubtful.

use record::observation::Observation;
use record::observation::profile::{FrameShare, Picture, PictureResult, ProfileResults, Spin, Wait};
use stats::Sampled;
use units::Nanos;

use crate::view::{Block, Cell, Phrase, Role, Row, Section, Subject, Table, Value, View, phrase};

/// Maximum number of rows per table, so that three tables fit on a screen.
const ROWS: usize = 10;
const ROWS_OF_QUEUE: usize = 5;

/// The view of a profile.
pub fn profile_view(observation: &Observation, results: &ProfileResults) -> View {
    let mut view = View::new(Subject::Profile);
    view.sections.push(Section::new("subject", vec![head(observation, results)]));
    for picture in &results.pictures {
        let mut blocks = picture_blocks(picture, results);
        if picture.picture == Picture::OnCpu {
            blocks.extend(spins(&results.spins, picture.count));
        }
        if picture.picture == Picture::OffCpu {
            blocks.extend(waits(&results.waits));
            blocks.extend(sleepers(results));
        }
        let id = match picture.picture {
            Picture::OnCpu => "on_cpu",
            Picture::OffCpu => "off_cpu",
            Picture::RunQueue => "run_queue",
        };
        view.sections.push(Section::new(id, blocks));
    }
    view.sections.push(Section::new("doubts", doubts(observation, results)));
    view
}

fn head(observation: &Observation, results: &ProfileResults) -> Block {
    let named = results.processes.iter().take(3).map(|process| {
        let name = process.name.as_deref().unwrap_or("gone before it was looked at");
        phrase!("{pid} ({name})", pid = Value::Id(u64::from(process.pid)), name = name)
    });
    let mut text = Phrase::new("profile of ").then("", Phrase::join(named, ", "));
    if results.processes.len() > 3 {
        let more = Value::Id((results.processes.len() - 3) as u64);
        text = text.then(" and ", phrase!("{more} more", more = more));
    }
    let length = match observation.time.elapsed_ns {
        Some(ns) => phrase!("{elapsed}", elapsed = Nanos(ns)),
        None => Phrase::new("in progress"),
    };
    let rate = phrase!("{rate_hz} samples/s on each CPU", rate_hz = results.rate_hz.to_string());
    Block::line(Role::Title, text.then(": ", length).then(", ", rate))
}

fn picture_blocks(picture: &PictureResult, results: &ProfileResults) -> Vec<Block> {
    let time = Nanos(picture.time_ns);
    let (what, rows) = match picture.picture {
        Picture::OnCpu => (
            phrase!(
                "on CPU: {time} by {samples}; the scheduler counted {counted}",
                time = time,
                samples = Value::items(picture.count, "sample"),
                counted = Nanos(results.on_cpu_ns)
            ),
            ROWS,
        ),
        Picture::OffCpu => (
            phrase!(
                "asleep: {time} of all threads, {sleeps}",
                time = time,
                sleeps = Value::items(picture.count, "sleep")
            ),
            ROWS_OF_QUEUE,
        ),
        Picture::RunQueue => (
            phrase!(
                "waiting for a CPU: {time} of all threads, {waits}",
                time = time,
                waits = Value::items(picture.count, "wait")
            ),
            ROWS_OF_QUEUE,
        ),
    };
    let mut blocks = vec![Block::line(Role::Title, what)];
    if !picture.frames.is_empty() {
        let columns = [
            ("own", "own", "share", "of the time, in the frame itself"),
            ("total", "total", "share", "of the time, with all that it calls"),
            ("frame", "frame", "text", "the function"),
        ];
        let is_sampled = picture.picture == Picture::OnCpu;
        let cell = |share: f64| match is_sampled {
            true => share_cell(Sampled { hits: hits(share, picture.count), trials: picture.count }),
            false => Value::Share(share).into(),
        };
        let row = |frame: &FrameShare| {
            let shares = [frame.own, frame.total].map(cell);
            Row::new(shares.into_iter().chain([frame.frame.as_str().into()]).collect())
        };
        let rows = picture.frames.iter().take(rows).map(row).collect();
        blocks.push(Block::Table(Table::new("frames", &columns, rows)));
    }
    blocks
}

/// A share of samples with its 95 % confidence interval.
pub(crate) fn share_cell(sampled: Sampled) -> Cell {
    match sampled.share().zip(sampled.interval()) {
        Some((share, bounds)) => Cell::Interval {
            value: Value::Share(share),
            low: Value::Share(bounds.low),
            high: Some(Value::Share(bounds.high)),
        },
        None => Cell::absent(),
    }
}

/// The number of samples that made a share.
fn hits(share: f64, samples: u64) -> u64 {
    (share * samples as f64).round() as u64
}

/// What part of the samples spins; nothing if none does.
pub(crate) fn spins(spins: &[Spin], samples: u64) -> Vec<Block> {
    if spins.is_empty() {
        return Vec::new();
    }
    let sampled = |hits| Sampled { hits, trials: samples };
    let all = sampled(spins.iter().map(|spin| spin.samples).sum());
    let text = phrase!(
        "spinning in a lock: {share} of the samples, which is neither work nor sleep",
        share = share_cell(all)
    );
    let row = |spin: &Spin| Row::new(vec![share_cell(sampled(spin.samples)), spin.what.as_str().into()]);
    let columns = [
        ("share", "spins", "share", "of the samples"),
        ("what", "for", "text", "what the leaf function waits for without sleeping"),
    ];
    let table = Table::new("spins", &columns, spins.iter().take(ROWS).map(row).collect());
    vec![Block::line(Role::Line, text), Block::Table(table)]
}

fn waits(waits: &[Wait]) -> Option<Block> {
    let row = |wait: &Wait| {
        let spins = if wait.picture == Picture::OnCpu { " (on a CPU: it spins)" } else { "" };
        Row::new(vec![
            wait.kind.name().into(),
            Value::Ns(wait.time_ns).into(),
            Value::Share(wait.share).into(),
            Cell::maybe(wait.share_of_busy.map(Value::Share)),
            format!("{}{spins}", wait.what).into(),
        ])
    };
    let columns = [
        ("kind", "waits for", "text", "what kind of thing threads wait for"),
        ("time", "time", "ns", "of all threads together"),
        ("share", "of sleep", "share", "of all sleep"),
        ("share_of_busy", "of what is not idle", "share", "of sleep that is not idleness"),
        ("what", "", "text", "what they wait for"),
    ];
    let table = Table::new("waits", &columns, waits.iter().map(row).collect());
    (!waits.is_empty()).then_some(Block::Table(table))
}

fn sleepers(results: &ProfileResults) -> Option<Block> {
    let rows = results.sleepers.iter().take(ROWS).map(|sleeper| {
        Row::new(vec![
            sleeper.thread.as_str().into(),
            Value::Count(sleeper.threads).into(),
            Value::Ns(sleeper.asleep_ns).into(),
            Value::Count(sleeper.sleeps).into(),
            sleeper.what.as_deref().map_or_else(Cell::absent, Cell::from),
        ])
    });
    let columns = [
        ("thread", "sleepers", "text", "threads of one name"),
        ("threads", "threads", "count", "how many"),
        ("asleep", "asleep", "ns", "all of them together"),
        ("sleeps", "sleeps", "count", "how often"),
        ("what", "for", "text", "what they wait for"),
    ];
    let table = Table::new("sleepers", &columns, rows.collect());
    (!results.sleepers.is_empty()).then_some(Block::Table(table))
}

fn doubts(observation: &Observation, results: &ProfileResults) -> Vec<Block> {
    let mut notes: Vec<Phrase> =
        observation.missing.iter().map(|fact| Phrase::text(fact.why.as_str())).collect();
    let lost = results.lost;
    let counts = [
        (lost.stacks, "stacks did not fit in the table: their time is shown as `[stack lost]`"),
        (lost.weights, "samples or waits did not fit in the table: they are in no flame graph"),
        (lost.threads, "threads did not fit in the table: they are missing"),
        (lost.processes, "children were not followed"),
        (lost.switches, "context switches were missed: their time is taken from the scheduler's account"),
    ];
    let lost_some = counts.iter().filter(|(n, _)| *n > 0);
    notes.extend(
        lost_some.map(|&(n, what)| {
            phrase!("lost: {count} ", count = Value::Count(n)).then(what, Phrase::default())
        }),
    );
    let mut blocks: Vec<Block> =
        notes.into_iter().map(|note| Block::labelled(Role::Warning, "note", note)).collect();
    let quality = &results.quality;
    let share =
        |part: u64, whole: u64| Cell::maybe((whole > 0).then(|| Value::Share(part as f64 / whole as f64)));
    let mut last = phrase!(
        "unnamed frames {unknown}, truncated stacks {cut_stacks} of samples and {cut_sleeps} of sleeps (repaired \
         {mended_stacks} and {mended_sleeps})",
        unknown = share(quality.unknown_frames, quality.frames),
        cut_stacks = share(quality.cut_stacks, quality.stacks),
        cut_sleeps = share(quality.cut_sleeps, quality.sleeps),
        mended_stacks = share(quality.mended_stacks, quality.stacks),
        mended_sleeps = share(quality.mended_sleeps, quality.sleeps)
    );
    if !lost.any() {
        last = last.then(", nothing lost", Phrase::default());
    }
    if let (Some(cost), Some(runs)) = (results.cost_ns, results.cost_runs) {
        let runs = Value::items(runs, "run");
        last =
            last.then("; ", phrase!("the programs took {cost} in {runs}", cost = Nanos(cost), runs = runs));
    }
    blocks.push(Block::line(Role::Line, last));
    blocks
}
