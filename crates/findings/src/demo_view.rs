//! The view of the pool trap: what a timer around a pooled client reports, next to what the request took.

use record::Phase;
use record::document::{Distribution, Document, Load, QuantileValue, Results};
use units::Nanos;

use crate::run_view::{RunRecord, advice_section, record_line};
use crate::verdict::verdict_so_far;
use crate::view::{
    Block, Cell, Part, Phrase, Role, Row, Section, Subject, Table, Value, View, Waterfall, phrase,
};
use crate::words::{phase, typical, value_of};

/// Three numbers for one request. Each is a median if there are enough samples, otherwise a mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trap {
    /// What an interceptor around the pooled client reports: from picked up to read.
    ///
    /// This is the response time, which begins at the intended start. In a closed loop, the request is picked up
    /// `schedule_lag` later; [`Trap::lag`] says by how much this number is too large at most.
    pub interceptor: Nanos,
    /// The service time: from the first byte sent to the last byte of the response arrived.
    pub service: Nanos,
    /// How long it waited for a connection.
    pub pool_wait: Nanos,
    /// The mean time from the intended start to picked up, which no interceptor sees.
    pub lag: Nanos,
    /// All three are medians.
    pub is_median: bool,
}

/// The three numbers of a run, or `None` if no request ended ok.
pub fn trap(results: &Results) -> Option<Trap> {
    let of = |of: Phase| phase(results, of).and_then(|result| result.distribution.as_ref());
    let pool_wait = of(Phase::PoolWait);
    let has_median = |distribution: &Distribution| {
        matches!(value_of(distribution, 0.5), Some(QuantileValue::Known { .. }))
    };
    Some(Trap {
        interceptor: typical(&results.response)?,
        service: typical(&results.service)?,
        pool_wait: pool_wait.and_then(typical).unwrap_or_default(),
        lag: of(Phase::ScheduleLag).and_then(|lag| lag.mean_ns).map(Nanos).unwrap_or_default(),
        is_median: [Some(&results.response), Some(&results.service), pool_wait]
            .into_iter()
            .flatten()
            .all(has_median),
    })
}

/// The demonstration of the trap: the three numbers, one request drawn, what to do, where the record is.
pub fn demo_view(run: &RunRecord<'_>) -> View {
    let Document { results, load, .. } = run.document;
    let mut view = View::new(Subject::Demo);
    view.verdict = Some(verdict_so_far(run.document));
    let Some((results, trap)) = results.as_ref().and_then(|results| Some((results, trap(results)?))) else {
        let text = Phrase::new("No request ended ok, so there is nothing to show.");
        let blocks = vec![Block::line(Role::Line, text), record_line(run.folder)];
        view.sections.push(Section::new("details", blocks));
        return view;
    };
    let subject = phrase!(
        "{users} share {connections} to {url}",
        users = Value::items(load.callers, "virtual user"),
        connections = Value::items(load.connections, "connection"),
        url = run.document.subject.url.as_str()
    );
    view.sections.push(Section::new("subject", vec![Block::line(Role::Line, subject)]));
    view.sections.push(Section::new("numbers", vec![numbers(&trap, results, load)]));
    view.sections.push(Section::new("one_request", vec![Block::Waterfall(one_request(&trap))]));
    view.sections.extend(advice_section(results, run.document, run.seconds));
    view.sections.push(Section::new("details", vec![record_line(run.folder)]));
    view
}

fn numbers(trap: &Trap, results: &Results, load: &Load) -> Block {
    let wait = format!("waiting for one of {}", Value::items(load.connections, "connection"));
    let row = |value: Nanos, what: &str| Row::key(vec![Cell::from(value), what.into()]);
    let basis =
        if trap.is_median { "medians" } else { "medians if there are enough samples, otherwise means" };
    let note = phrase!(
        " of {ok}; the timer starts when a request is picked up, {lag} after its intended start",
        ok = Value::items(results.totals.ok, "ok request"),
        lag = trap.lag
    );
    let rows = vec![
        row(trap.interceptor, "reported by an interceptor: a timer around the pooled client"),
        row(trap.service, "the request itself: first byte sent to last byte arrived"),
        Row { note: Some(Phrase::new(basis).then("", note)), ..row(trap.pool_wait, &wait) },
    ];
    let columns =
        [("value", "", "ns", "of one request"), ("what", "", "text", "who measures it, from where to where")];
    Block::Table(Table::new("trap", &columns, rows))
}

/// One request from left to right: the wait for the pool, then the request.
fn one_request(trap: &Trap) -> Waterfall {
    let part = |name: &str, start: Nanos, length: Nanos| Part {
        name: name.to_owned(),
        start_ns: start.0,
        length_ns: length.0,
        who: String::new(),
    };
    Waterfall {
        id: "one_request".to_owned(),
        head: Phrase::new("one request"),
        total_ns: trap.pool_wait.saturating_add(trap.service).0,
        parts: vec![
            part("pool wait", Nanos::ZERO, trap.pool_wait),
            part("request", trap.pool_wait, trap.service),
        ],
    }
}
