//! The view of an explanation: the culprit first, then the figures, then what is unknown.

use findings::view::{
    Advice, Block, Cell, Column, Part, Phrase, Role, Row, Section, Subject, Table, Value, View, Waterfall,
};
use units::Nanos;

use crate::explanation::{Explanation, Slow};
use crate::place::Segment;
use crate::rules::phrase;
use crate::runtime::Runtime;

/// A segment with less of the time than this in every column is included in the row of the rest.
const WORTH_A_ROW: f64 = 0.001;

/// A segment of a waterfall with a smaller share than this is left out.
const SHOWN: f64 = 0.005;

/// Maximum characters of a statement or route shown for a request.
const DIGEST: usize = 100;

/// Everything that an explanation contains, as data.
pub fn view(explanation: &Explanation) -> View {
    let mut view = View::new(Subject::Explain);
    view.sections.push(Section::new("blame", blame(explanation)));
    view.sections.push(Section::new("groups", groups(explanation)));
    if !explanation.slowest.is_empty() {
        view.sections.push(Section::new("slowest", slowest(explanation)));
    }
    let mut known: Vec<Block> = joined(explanation).into_iter().chain(surroundings(explanation)).collect();
    let notes = explanation.notes.iter().map(|note| Phrase::text(note.as_str()));
    known.extend(notes.map(|note| Block::labelled(Role::Note, "note", note)));
    view.sections.push(Section::new("known", known));
    view
}

/// Who is to blame and the sentence that shows it, then the other sentences.
fn blame(explanation: &Explanation) -> Vec<Block> {
    let blame = &explanation.blame;
    let advice = |rule: &str, finding: Phrase| {
        Block::Advice(Advice { rule: rule.to_owned(), finding, reason: Phrase::default() })
    };
    let head = phrase("blame: {place}", [("place", blame.place.name().into())]);
    let (first, others): (Vec<_>, Vec<_>) =
        explanation.sentences.iter().partition(|sentence| sentence.text == blame.sentence);
    let first = match first.first() {
        Some(sentence) => advice(sentence.rule, sentence.finding.clone()),
        None => advice("undecided", Phrase::text(blame.sentence.as_str())),
    };
    let others = others.into_iter().map(|sentence| advice(sentence.rule, sentence.finding.clone()));
    [Block::line(Role::Title, head), first].into_iter().chain(others).collect()
}

/// The mean of each group of requests, segment by segment.
fn groups(explanation: &Explanation) -> Vec<Block> {
    let groups = &explanation.groups;
    let column = |id: &str, title: &str, unit: &str, meaning: &str| Column {
        id: id.to_owned(),
        title: title.to_owned(),
        unit: unit.to_owned(),
        meaning: meaning.to_owned(),
    };
    let mut columns = vec![column("segment", "mean per request", "text", "a part of the request")];
    columns.extend(groups.iter().map(|group| column(group.name, group.name, "ns", &group.means)));
    columns.push(column("meaning", "", "text", "the segment in other words"));
    let row = |name: &str, means: Vec<u64>, meaning: &str| {
        let means = means.into_iter().map(|ns| Cell::from(Value::Ns(ns)));
        Row::new([Cell::from(name)].into_iter().chain(means).chain([meaning.into()]).collect())
    };
    let response = groups.iter().map(|group| group.sum_ns.checked_div(group.rows).unwrap_or(0));
    let mut rows = vec![Row { key: true, ..row("response", response.collect(), "") }];
    let mut rest = vec![0u64; groups.len()];
    for segment in Segment::ALL {
        if groups.iter().all(|group| (group.sums.get(segment) as f64) < group.sum_ns as f64 * WORTH_A_ROW) {
            let means = groups.iter().map(|group| group.mean(segment).0);
            rest.iter_mut().zip(means).for_each(|(rest, mean)| *rest = rest.saturating_add(mean));
        } else {
            let means = groups.iter().map(|group| group.mean(segment).0);
            rows.push(row(segment.name(), means.collect(), segment.meaning()));
        }
    }
    if rest.iter().any(|&rest| rest > 0) {
        rows.push(row("rest", rest, "less than 0.1 % each"));
    }
    let mut blocks = vec![Block::Table(Table { id: "groups".to_owned(), columns, rows })];
    for group in groups {
        let mut text = phrase(
            "{means}: {rows} requests",
            [("means", group.means.as_str().into()), ("rows", Value::Count(group.rows).into())],
        );
        if group.to_ns > 0 {
            let range = [("from", Nanos(group.from_ns).into()), ("to", Nanos(group.to_ns).into())];
            text = text.then(", ", phrase("{from} to {to}", range));
        }
        if group.joined > 0 {
            let found = [("found", Value::Count(group.joined).into())];
            text = text.then(", ", phrase("{found} found at the server", found));
        }
        blocks.push(Block::labelled(Role::Note, group.name, text));
    }
    blocks
}

fn slowest(explanation: &Explanation) -> Vec<Block> {
    let mut blocks = vec![Block::line(Role::Title, Phrase::new("The slowest requests"))];
    let first = explanation.slowest.first().and_then(|slow| slow.digest.as_ref());
    let differ = explanation.slowest.iter().any(|slow| slow.digest.as_ref() != first);
    for slow in &explanation.slowest {
        blocks.push(Block::Waterfall(waterfall(slow)));
        if let Some(digest) = slow.digest.as_ref().filter(|_| differ) {
            let digest: String = digest.chars().take(DIGEST).collect();
            blocks.push(Block::labelled(Role::Note, "at the server:", Phrase::text(digest)));
        }
    }
    blocks
}

fn waterfall(slow: &Slow) -> Waterfall {
    let figures = [
        ("n", Value::Id(slow.n).into()),
        ("target", slow.target.as_str().into()),
        ("at", Nanos(slow.intended_ns).into()),
        ("response", Nanos(slow.response_ns).into()),
    ];
    let mut head = phrase("request {n} {target}, due at {at}: {response}", figures);
    if slow.outcome != "ok" {
        head = head.then(", ", phrase("{outcome}", [("outcome", slow.outcome.into())]));
    }
    if !slow.joined {
        head = head.then(", ", Phrase::new("not found at a server"));
    }
    // Shown once: where it waited longest for a CPU.
    let contended =
        [Segment::RunQueue, Segment::QueueRunQueue].into_iter().max_by_key(|&one| slow.ledger.get(one));
    let mut before = 0u64;
    let mut parts = Vec::new();
    for segment in Segment::ALL {
        let length_ns = slow.ledger.get(segment);
        let start_ns = before;
        before = before.saturating_add(length_ns);
        if (length_ns as f64) < slow.response_ns.max(1) as f64 * SHOWN {
            continue;
        }
        let who = slow.culprit.as_ref().filter(|_| Some(segment) == contended);
        let who = who.cloned().unwrap_or_default();
        parts.push(Part { name: segment.name().to_owned(), start_ns, length_ns, who });
    }
    Waterfall { id: format!("request-{}", slow.n), head, total_ns: slow.response_ns, parts }
}

/// How many requests were found at a server, and why the others were not.
fn joined(explanation: &Explanation) -> Option<Block> {
    let join = &explanation.join;
    if join.rows == 0 || explanation.servers.is_empty() {
        return None;
    }
    let found = (join.by_ends + join.by_time) as f64 / join.rows as f64;
    let parts = [
        (join.by_ends, "by their connection"),
        (join.by_time, "by time alone"),
        (join.unanswered, "without a response"),
        (join.no_connection, "without a known TCP connection"),
        (join.connection_not_seen, "on connections that were not observed"),
        (join.request_not_seen, "not found on their connection"),
    ];
    let parts = parts.iter().filter(|(rows, _)| *rows > 0);
    let parts = parts.map(|&(rows, what)| {
        phrase("{rows} ", [("rows", Value::Count(rows).into())]).then(what, Phrase::default())
    });
    let head = [("found", Value::Share(found).into()), ("all", Value::Count(join.rows).into())];
    let mut text = phrase("{found} of {all} requests were found at the server: ", head)
        .then("", Phrase::join(parts, ", "))
        .then(".", Phrase::default());
    if join.others_at_servers > 0 {
        let others = [("others", Value::Count(join.others_at_servers).into())];
        text = text.then(" ", phrase("{others} requests at the server came from other clients.", others));
    }
    Some(Block::labelled(Role::Text, "join", text))
}

/// What else the records contain about the hosts.
fn surroundings(explanation: &Explanation) -> Option<Block> {
    let around = &explanation.surroundings;
    let mut facts = Vec::new();
    if around.stalls > 0 {
        let figures = [
            ("stalls", Value::Count(around.stalls).into()),
            ("longest", Nanos(around.longest_stall_ns).into()),
        ];
        facts.push(phrase("the host was stalled {stalls} times, for up to {longest}", figures));
    }
    for planted in &around.planted {
        let mut text = phrase(
            "deliberate disturbance for {length} of the run",
            [("length", Nanos(planted.in_effect_ns).into())],
        );
        if planted.times != 1 {
            text =
                text.then("", phrase(" in {times} times", [("times", Value::Count(planted.times).into())]));
        }
        let what = [("what", planted.what.as_str().into()), ("means", planted.means.as_str().into())];
        facts.push(text.then(": ", phrase("{what} ({means})", what)));
    }
    facts.extend(around.runtimes.iter().map(Runtime::summary).map(Phrase::text));
    let busy = around.busiest.iter().map(|busy| {
        let figures = [
            ("name", busy.name.as_str().into()),
            ("pid", Value::Id(busy.pid).into()),
            ("cpu", Nanos(busy.cpu_ns).into()),
        ];
        phrase("{name} (pid {pid}) {cpu}", figures)
    });
    if !around.busiest.is_empty() {
        facts.push(Phrase::new("most CPU time: ").then("", Phrase::join(busy, ", ")));
    }
    (!facts.is_empty())
        .then(|| Block::labelled(Role::Text, "host", Phrase::join(facts, "; ").then(".", Phrase::default())))
}
