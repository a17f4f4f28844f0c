//! What was measured: the subject, the load, the host.

use record::document::{
    Document, Host, IdleFacts, Load, LoadChange, LoadOrder, Model, State, ThinkFacts, WarmUpFacts,
};
use units::Nanos;

use crate::view::{Block, Phrase, Role, Value, phrase};

/// What was requested, and with which load.
pub(super) fn subject(document: &Document) -> Vec<Block> {
    let subject = &document.subject;
    let mut what = phrase!("{*url}", url = subject.url.as_str());
    if subject.request_kinds > 1 {
        let more = Value::Count(subject.request_kinds - 1);
        what = what.then("", phrase!(" and {more} more in turn", more = more));
    }
    let mut protocol = phrase!("{protocol}", protocol = subject.protocol.as_str());
    if let Some(address) = &subject.address {
        protocol = protocol.then("", phrase!(", at {address}", address = address.as_str()));
    }
    let mut blocks = vec![
        Block::labelled(Role::Title, "subject", what),
        Block::labelled(Role::Line, "protocol", protocol),
        Block::line(Role::Text, load_line(document)),
    ];
    blocks.extend(replay(&document.load));
    blocks.extend(document.load.warmup.as_ref().map(warm_up));
    blocks.extend(document.load.idle_connections.as_ref().map(idle_connections));
    blocks.extend(changes(&document.load).map(|all| Block::labelled(Role::Text, "changed by hand:", all)));
    blocks
}

/// What preceded the run, and that no figure contains it.
fn warm_up(facts: &WarmUpFacts) -> Block {
    let (ok, failed) = (facts.ok(), facts.ended().saturating_sub(facts.ok()));
    let mut text = phrase!(
        "{length} before the run, in none of its figures: {scheduled}, {ok} ok",
        length = Nanos(facts.window_ns),
        scheduled = Value::items(facts.scheduled, "request"),
        ok = Value::Count(ok),
    );
    if failed > 0 {
        text = text.then("", phrase!(", {!failed} failed", failed = Value::Count(failed)));
    }
    let backlog = facts.elapsed_ns.saturating_sub(facts.window_ns);
    text = text.then("; ", phrase!("its last response took {backlog} more", backlog = Nanos(backlog)));
    let unfinished =
        facts.outcomes.iter().filter(|row| matches!(row.outcome.as_str(), "in_flight" | "not_sent"));
    let unfinished: u64 = unfinished.map(|row| row.count).sum();
    if unfinished > 0 {
        let count = Value::items(unfinished, "request");
        text =
            text.then("; ", phrase!("{unfinished} had no response when the run began", unfinished = count));
    }
    Block::labelled(Role::Text, "warm-up", text)
}

/// Connections that carry nothing.
fn idle_connections(facts: &IdleFacts) -> Block {
    let mut text = if facts.opened == facts.wanted {
        phrase!("{opened} opened before the run", opened = Value::items(facts.opened, "connection"))
    } else {
        phrase!(
            "{opened} of {wanted} opened before the run",
            opened = Value::Count(facts.opened),
            wanted = Value::items(facts.wanted, "connection"),
        )
    };
    if let Some(failure) = &facts.failure {
        text = text.then(" (", phrase!("{failure}", failure = failure.as_str())).then(")", Phrase::default());
    }
    if facts.lost > 0 {
        text = text.then("; ", phrase!("{lost} closed by the server since", lost = Value::Count(facts.lost)));
    }
    Block::labelled(Role::Text, "idle", text)
}

/// Which requests of a recording were sent, and which were left out.
fn replay(load: &Load) -> Option<Block> {
    let arrivals = load.arrivals.as_ref()?;
    arrivals.stages.iter().find(|stage| stage.process == "replay")?;
    let Some(replay) = &arrivals.replay else {
        return Some(Block::labelled(Role::Text, "replay", Phrase::new("times only, not the requests")));
    };
    let mut facts = vec![phrase!("{requests} recorded", requests = Value::items(replay.requests, "request"))];
    let left_out: u64 = replay.left_out.values().sum();
    if left_out > 0 {
        let reasons = replay
            .left_out
            .iter()
            .map(|(why, &count)| phrase!("{count} {why}", count = Value::Count(count), why = why.as_str()));
        let all = phrase!("{left_out} left out", left_out = Value::Count(left_out));
        facts.push(all.then(" (", Phrase::join(reasons, ", ")).then(")", Phrase::default()));
    }
    let counts = [
        (replay.without_credentials, "{n} sent without Cookie or Authorization"),
        (replay.of_other_servers, "{n} recorded for another server"),
    ];
    for (count, words) in counts.into_iter().filter(|(count, _)| *count > 0) {
        facts.push(phrase!(words, n = Value::Count(count)));
    }
    Some(Block::labelled(Role::Text, "replay", Phrase::join(facts, "; ")))
}

/// When and where it ran, and what the host did not report.
pub(super) fn host(document: &Document) -> Vec<Block> {
    let facts = host_facts(&document.time.started, &document.host, &document.parallax_version);
    let mut blocks = vec![Block::line(Role::Note, facts)];
    for fact in &document.host.missing {
        let text = phrase!("{what} ({why})", what = fact.what.as_str(), why = fact.why.as_str());
        blocks.push(Block::labelled(Role::Text, "not reported by this host:", text));
    }
    blocks
}

/// When and where the record was made, and by which version.
pub(crate) fn host_facts(started: &str, host: &Host, version: &str) -> Phrase {
    let mut facts = vec![phrase!("{started}", started = started)];
    facts.extend(host.name.as_deref().map(|name| phrase!("on {host}", host = name)));
    facts.extend(host.kernel.as_deref().map(|kernel| phrase!("Linux {kernel}", kernel = kernel)));
    facts.extend(host.cpus.map(|cpus| phrase!("{cpus}", cpus = Value::items(cpus, "CPU"))));
    facts.push(phrase!("parallax {version}", version = version));
    Phrase::join(facts, ", ")
}

fn load_line(document: &Document) -> Phrase {
    let load = &document.load;
    let connections = Value::items(load.connections, "connection");
    // Even spacing at one rate is the default, and needs no words.
    let arrivals = load.arrivals.as_ref().filter(|facts| load.rate_per_s.is_none() || facts.seed.is_some());
    let how = match (load.model, load.rate_per_s, arrivals) {
        (Model::Open, _, Some(facts)) => {
            phrase!("open loop, {arrivals} over ", arrivals = facts.words.as_str())
        }
        (Model::Open, Some(per_s), None) => {
            phrase!("open loop, {rate} requested over ", rate = Value::PerSecond(per_s))
        }
        (Model::Open, None, None) => Phrase::new("open loop over "),
        (Model::Closed, ..) => {
            let users = Value::items(load.callers, "virtual user");
            let users = phrase!("closed loop, {users}", users = users);
            users
                .then("", load.think.as_ref().map(think).unwrap_or_default())
                .then(" over ", Phrase::default())
        }
    };
    let mut how = how.then("", phrase!("{connections}", connections = connections));
    if load.pipeline > 1 {
        let each = Value::Id(load.pipeline);
        how = how.then("", phrase!(" with {pipeline} requests each", pipeline = each));
    }
    if let Some(limit) = load.requests_per_connection {
        let each = Value::items(limit, "request");
        how = how.then(", ", phrase!("each replaced after {limit}", limit = each));
    }
    let workers = phrase!("{workers}", workers = Value::items(load.workers, "worker"));
    how.then(", ", workers).then(", ", how_long(document))
}

/// Manual changes of the load during the run, in order.
fn changes(load: &Load) -> Option<Phrase> {
    let change = |change: &LoadChange| {
        let what = match (change.change, change.rate_per_s) {
            (LoadOrder::Paused, _) => Phrase::new("paused"),
            (LoadOrder::Resumed, _) => Phrase::new("resumed"),
            (LoadOrder::Rate, Some(per_s)) => phrase!("{rate}", rate = Value::PerSecond(per_s)),
            (LoadOrder::Rate, None) => Phrase::new("rate change"),
            (LoadOrder::Ended, _) => Phrase::new("ended"),
        };
        what.then(" at ", phrase!("{at}", at = Nanos(change.at_ns)))
    };
    // A key that is held down makes dozens of changes: the first and the last show where they began and ended.
    let (first, last) = match load.changes.len() {
        0 => return None,
        few @ 1..=8 => (few, 0),
        _ => (4, 3),
    };
    let mut all: Vec<Phrase> = load.changes[..first].iter().map(change).collect();
    if last > 0 {
        let more = Value::Count((load.changes.len() - first - last) as u64);
        all.push(phrase!("{more} more", more = more));
        all.extend(load.changes[load.changes.len() - last..].iter().map(change));
    }
    Some(Phrase::join(all, ", "))
}

fn think(think: &ThinkFacts) -> Phrase {
    let thinking = phrase!(" thinking {think}", think = think.words.as_str());
    match think.seed {
        Some(seed) => thinking.then("", phrase!(" (seed {seed})", seed = Value::Id(seed))),
        None => thinking,
    }
}

fn how_long(document: &Document) -> Phrase {
    let load = &document.load;
    let duration = load.duration_ns.map(|ns| phrase!("{duration}", duration = Nanos(ns)));
    let limit = load.request_limit.map(|limit| phrase!("{limit}", limit = Value::items(limit, "request")));
    let asked = match (duration, limit) {
        (Some(duration), Some(limit)) => duration.then(" or ", limit),
        (Some(only), None) | (None, Some(only)) => only,
        (None, None) => Phrase::new("no end set"),
    };
    let took = match document.time.elapsed_ns {
        Some(ns) => phrase!("{took}", took = Nanos(ns)),
        None => Phrase::new("unknown duration"),
    };
    let after = |how: &str| {
        Phrase::new(how)
            .then(" after ", took.clone())
            .then(" (", asked.clone())
            .then(" requested)", Phrase::default())
    };
    match document.state {
        State::Finished if load.changes.iter().any(|change| change.change == LoadOrder::Ended) => {
            after("ended by the user")
        }
        State::Finished if load.duration_ns.is_some() && load.request_limit.is_none() => {
            Phrase::new("for ").then("", asked)
        }
        State::Finished => asked.then(" in ", took),
        State::Interrupted => after("interrupted"),
        State::Broken => after("ended by an error"),
        State::Recovered => after("cut off"),
        State::Running if document.time.elapsed_ns.is_none() => {
            Phrase::new("running, ").then("", asked).then(" requested", Phrase::default())
        }
        State::Running => after("still running"),
    }
}
