//! Requests over a limit, with the reason of each.

use record::Part;
use record::observation::watch::{SlowReason, SlowRequest, WatchResults};
use units::Nanos;

use super::part_words;
use super::usage::who;
use crate::arithmetic::share;
use crate::view::{Block, Cell, Role, Row, Section, Table, Value, phrase};
use crate::watch_query::WatchQuery;

/// Individual requests that are shown unless `--top` says otherwise.
const SHOWN: usize = 5;

/// The section of slow requests; `None` in records that do not have it.
pub(super) fn slow(results: &WatchResults, query: &WatchQuery) -> Option<Section> {
    let slow = results.slow.as_ref()?;
    let title = phrase!(
        "requests over {over}: {*requests} of {all} ({share})",
        over = Nanos(slow.over_ns),
        requests = Value::Count(slow.requests),
        all = Value::Count(results.requests),
        share = Value::Share(share(slow.requests, results.requests).unwrap_or(0.0))
    );
    let mut blocks = vec![Block::line(Role::Title, title)];
    if slow.requests > 0 {
        let columns = [
            ("requests", "requests", "count", "requests whose largest part this is"),
            ("time", "time", "ns", "their time at the server, summed"),
            ("share", "of it", "share", "of that time, this part"),
            ("part", "mostly", "text", "their largest part"),
            ("what", "who, or what", "text", "who ran instead, or what it was blocked on"),
        ];
        let (listed, rest) = slow.reasons.split_at(slow.reasons.len().min(query.top()));
        let rows = listed.iter().map(reason).collect();
        blocks.push(Block::Table(Table::new("slow_reasons", &columns, rows)));
        if !rest.is_empty() {
            let text = phrase!(
                "and {more} more reasons, of {requests}: --top shows them",
                more = Value::Id(rest.len() as u64),
                requests = Value::items(rest.iter().map(|reason| reason.requests).sum(), "request")
            );
            blocks.push(Block::line(Role::Note, text));
        }
        let columns = [
            ("at", "at", "ns", "when the server had read it, from the start of the record"),
            ("took", "took", "ns", "its time at the server"),
            ("part", "mostly", "text", "its largest part"),
            ("share", "of it", "share", "of its time, this part"),
            ("what", "who, or what", "text", "who ran instead, or what it was blocked on"),
            ("user", "user@schema", "text", "who sent it"),
            ("peer", "client", "text", "the client's address"),
            ("text", "statement or route", "text", "the statement or route"),
        ];
        let rows =
            slow.slowest.iter().take(query.top.unwrap_or(SHOWN)).map(|one| request(one, results)).collect();
        blocks.push(Block::Table(Table::new("slowest", &columns, rows)));
    }
    Some(Section::new("slow", blocks))
}

/// The part in words; `all other reasons` for what is no part.
fn words(part: &str) -> &'static str {
    Part::from_name(part).map_or("all other reasons", part_words)
}

fn reason(reason: &SlowReason) -> Row {
    Row::new(vec![
        Value::Count(reason.requests).into(),
        Value::Ns(reason.sum_ns).into(),
        Value::Share(share(reason.part_ns, reason.sum_ns).unwrap_or(0.0)).into(),
        words(&reason.part).into(),
        reason.what.as_deref().map_or_else(Cell::absent, Cell::from),
    ])
}

fn request(one: &SlowRequest, results: &WatchResults) -> Row {
    let parts: [Nanos; Part::COUNT] = one.parts_ns.into();
    let part = Part::from_name(&one.part).map(|part| parts[part as usize].0);
    let text = results.digests.get(one.digest as usize).map(|digest| digest.text.as_str());
    let maybe = |text: Option<&str>| text.map_or_else(Cell::absent, Cell::from);
    let user = results.sessions.get(one.session as usize).and_then(who);
    Row::new(vec![
        Value::Ns(one.at_ns).into(),
        Value::Ns(one.response_ns).into(),
        words(&one.part).into(),
        Cell::maybe(part.and_then(|part| share(part, one.response_ns)).map(Value::Share)),
        maybe(one.what.as_deref()),
        maybe(user.as_deref()),
        maybe(one.peer.as_deref()),
        maybe(text),
    ])
}
