//! The positions of each table's columns on a line.

use findings::view::{Cell, Table};

/// How a figure is formatted in its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As in running text.
    Plain,
    /// Blank if there is no figure.
    Blank,
    /// `-` if there is no figure, or the sample cannot carry it.
    Dash,
    /// `-` if it is zero.
    DashZero,
    /// A duration whose unit is two characters wide, so that numbers in a column line up.
    Aligned,
    /// As `Aligned`; `none` if there is no figure.
    AlignedOrNone,
    /// As `Aligned`; blank if there is no figure.
    AlignedOrBlank,
    /// A figure and its interval, where it has one.
    WithInterval,
    /// A share without decimal places.
    Whole,
    /// A bar of this many cells.
    Bar(usize),
    /// A figure followed by these words.
    With(&'static str),
    /// An error rounded up to two digits: it must not promise more than is known.
    Bound,
    /// A figure that may be missing, in few columns.
    Compact,
    /// A lower bound without a space after its sign.
    Tight,
    /// Text within its column, or to the end of the line if that has no width, with a mark if it was cut.
    Cut,
    /// Text to the end of the line, cut without a mark.
    Clipped,
    /// Text on its own line if it is as wide as its column.
    OwnLine,
    /// Text that is wrapped.
    Wrapped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

/// The position and format of a column.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// The id of the column in the view.
    pub(super) column: String,
    /// The text before it.
    pub(super) gap: &'static str,
    pub(super) width: usize,
    pub(super) side: Side,
    pub(super) form: Form,
    /// Spaces after the title, so that it ends where the numbers do.
    pub(super) title_pad: usize,
    /// The column is left out on a narrower terminal.
    pub(super) from_width: usize,
}

/// The positions of a table's columns.
pub(super) struct Layout {
    pub(super) indent: &'static str,
    pub(super) note_indent: &'static str,
    pub(super) has_titles: bool,
    /// The reason why a figure is absent is written over the columns that follow.
    pub(super) runs_on: bool,
    pub(super) places: Vec<Place>,
}

impl Layout {
    fn new(places: Vec<Place>) -> Layout {
        Layout { indent: "  ", note_indent: "  ", has_titles: true, runs_on: false, places }
    }
}

fn left(column: &str, gap: &'static str, width: usize) -> Place {
    Place {
        column: column.to_owned(),
        gap,
        width,
        side: Side::Left,
        form: Form::Plain,
        title_pad: 0,
        from_width: 0,
    }
}

fn right(column: &str, gap: &'static str, width: usize) -> Place {
    Place { side: Side::Right, ..left(column, gap, width) }
}

impl Place {
    fn form(self, form: Form) -> Place {
        Place { form, ..self }
    }

    fn title_pad(self, title_pad: usize) -> Place {
        Place { title_pad, ..self }
    }

    fn wider_than(self, from_width: usize) -> Place {
        Place { from_width, ..self }
    }
}

/// Columns of durations, each of `width`.
fn times(columns: &[&str], width: usize, title_pad: usize) -> Vec<Place> {
    let place = |column: &&str| right(column, "", width).form(Form::Aligned).title_pad(title_pad);
    columns.iter().map(place).collect()
}

/// The layout of `table`. A table that is unknown here has its columns side by side, each as wide as needed.
pub(super) fn layout_of(table: &Table) -> Layout {
    match table.id.as_str() {
        "phases" => phases(),
        "outcomes" => Layout::new(vec![
            right("requests", "", 9),
            right("share", " ", 8),
            left("outcome", "  ", 22),
            left("blame", " ", 9),
            left("phase", " ", 12),
            left("meaning", " ", 0).wider_than(100),
        ]),
        "targets" => targets(),
        "journeys" => Layout::new(vec![
            right("started", "", 9),
            right("completed", " ", 9),
            right("failed", " ", 9),
            right("cut", " ", 9),
            right("retries", " ", 9),
            right("response_p50", " ", 10).form(Form::Aligned),
            right("response_p99", " ", 10).form(Form::Aligned),
            left("journey", "  ", 0),
        ]),
        "groups" => groups(table),
        "trap" => Layout {
            has_titles: false,
            note_indent: "             ",
            ..Layout::new(vec![right("value", "", 9).form(Form::Aligned), left("what", "  ", 0)])
        },
        "imported_times" => {
            let mut places = vec![left("name", "", 28)];
            places.extend(times(&["p50", "p90", "p99", "p99.9", "max", "mean"], 10, 3));
            Layout::new(places)
        }
        "probes" => probes(),
        "load_curve" => Layout {
            has_titles: false,
            ..Layout::new(vec![
                right("rate", "", 9),
                left("height", "  ", 30).form(Form::Bar(30)),
                right("p99", "  ", 10).form(Form::Aligned),
                left("says", "  ", 0),
            ])
        },
        "events" | "disturbances" => Layout {
            indent: if table.id == "events" { "" } else { "  " },
            has_titles: false,
            ..Layout::new(vec![
                right("at", "", 10),
                left("text", "  ", 0).form(if table.id == "events" { Form::Wrapped } else { Form::Plain }),
            ])
        },
        _ => observed(table).unwrap_or_else(|| any(table)),
    }
}

/// The tables of the observing verbs.
fn observed(table: &Table) -> Option<Layout> {
    Some(match table.id.as_str() {
        "watch_times" => {
            let mut places = vec![left("name", "", 20), right("requests", "", 8)];
            places.extend(times(&["mean", "p50", "p95", "p99"], 10, 3));
            places.extend(times(&["p99.9"], 10, 3).into_iter().map(|place| place.wider_than(92)));
            places.extend(times(&["max"], 10, 3));
            Layout::new(places)
        }
        "watch_parts" => Layout {
            has_titles: false,
            ..Layout::new(vec![
                left("part", "", 18),
                left("share", "", 26).form(Form::Bar(26)),
                right("share", " ", 8),
                right("mean", " ", 22).form(Form::With(" per request")),
            ])
        },
        "watch_cost" => Layout {
            has_titles: false,
            ..Layout::new(vec![
                left("program", "", 14),
                right("runs", " ", 19).form(Form::With(" runs")),
                right("each", " ", 13).form(Form::With(" each")),
            ])
        },
        "preemptors" => Layout::new(vec![
            right("time", "", 12).form(Form::Aligned),
            right("times", " ", 10),
            left("name", "  ", 16),
            right("pid", " ", 9).form(Form::Blank),
            left("cgroup", "  ", 0),
        ]),
        "digests" | "digest_texts" | "sessions" | "peers" | "connections" | "sleeps" | "slow_reasons"
        | "slowest" => return watched(table.id.as_str()),
        "frames" | "matches" | "callers" | "callees" | "spins" | "waits" | "sleepers" | "frame_changes" => {
            return profiled(table);
        }
        "hiccups" => hiccups(),
        "jvm_series" => {
            let mut places = vec![left("series", "", 32).form(Form::OwnLine)];
            places.push(right("count", "", 9).form(Form::Blank));
            let columns = ["sum", "p50", "p90", "p99", "p99.9", "max"];
            places.extend(columns.map(|id| right(id, "", 10).form(Form::AlignedOrBlank).title_pad(3)));
            Layout { indent: "", ..Layout::new(places) }
        }
        "cpu_by_ticks" | "cpu_by_boundaries" => cpu(),
        _ => return None,
    })
}

/// The tables of profiles. Shares of samples have their intervals next to them.
fn profiled(table: &Table) -> Option<Layout> {
    let is_interval = |cell: &Cell| matches!(cell, Cell::Interval { .. });
    let is_sampled = table.rows.iter().flat_map(|row| &row.cells).any(is_interval);
    let (width, form) = if is_sampled { (20, Form::WithInterval) } else { (8, Form::Plain) };
    Some(match table.id.as_str() {
        "frames" | "matches" => Layout::new(vec![
            right("own", "", width).form(form),
            right("total", "  ", width).form(form),
            left("frame", "  ", 0).form(Form::Cut),
        ]),
        "callers" | "callees" => Layout::new(vec![
            right("of_focus", "", width).form(form),
            right("of_all", "  ", 8),
            left("frame", "  ", 0).form(Form::Cut),
        ]),
        "spins" => Layout::new(vec![right("share", "", width).form(form), left("what", "  ", 0)]),
        "waits" => Layout::new(vec![
            left("kind", "", 8),
            right("time", " ", 13),
            right("share", "  ", 8),
            right("share_of_busy", "  ", 19),
            left("what", "  ", 0),
        ]),
        "sleepers" => Layout::new(vec![
            left("thread", "", 16),
            right("threads", "  ", 8),
            right("asleep", "  ", 12),
            right("sleeps", "  ", 10),
            left("what", "  ", 0),
        ]),
        "frame_changes" => Layout::new(vec![
            right("before", "", 8),
            right("after", "  ", 8),
            right("change", "  ", width.max(9)).form(form),
            right("own_change", "  ", width.max(7)).form(form),
            left("frame", "  ", 0).form(Form::Cut),
        ]),
        _ => return None,
    })
}

/// A column for each group of requests.
fn groups(table: &Table) -> Layout {
    let places = table.columns.iter().map(|column| match column.id.as_str() {
        "segment" => left("segment", "", 20),
        "meaning" => left("meaning", "  ", 0).wider_than(100),
        id => right(id, "", 10).form(Form::DashZero),
    });
    Layout::new(places.collect())
}

fn probes() -> Layout {
    Layout {
        note_indent: "         ",
        ..Layout::new(vec![
            right("probe", "", 5),
            right("asked", "  ", 8),
            right("sent", "  ", 8),
            right("done", "  ", 8),
            right("p50", " ", 10).form(Form::Aligned),
            right("p99", " ", 10).form(Form::Aligned),
            right("errors", "  ", 7),
            right("client", "  ", 7),
            left("says", "  ", 0),
        ])
    }
}

/// As wide as the lines of `findings::hiccup_line`: 79 columns.
fn hiccups() -> Layout {
    let mut places = vec![right("meter", "", 10), right("ticks", " ", 7)];
    let times = ["p50", "p99", "p99.9", "p99.99", "max"];
    places.extend(times.map(|id| right(id, " ", 7).form(Form::Dash)));
    places.extend([right("over_1ms", " ", 5), right("over_10ms", " ", 6), right("over_100ms", " ", 7)]);
    Layout { indent: "", ..Layout::new(places) }
}

/// The columns of both ways to split the time, in order: those that a table does not have are left out. Without those
/// that only a wide terminal shows, the figures take 66 to 68 of 80 columns, and the command has the rest.
fn cpu() -> Layout {
    let figure = |id, width| right(id, "", width).form(Form::Tight);
    Layout {
        indent: "",
        ..Layout::new(vec![
            right("user", "", 8).wider_than(100),
            right("pid", "", 8),
            figure("in_user", 9),
            figure("in_system", 9),
            right("split_error", "", 8).form(Form::Bound),
            right("ticks", "", 6),
            figure("interrupts", 8).wider_than(100),
            figure("stolen", 8),
            figure("total", 8),
            right("error", "", 8).form(Form::Bound),
            figure("wait", 8),
            figure("voluntary", 7).wider_than(100),
            figure("involuntary", 7).wider_than(100),
            left("command", "  ", 0).form(Form::Clipped),
        ])
    }
}

/// The tables of statements, users, clients, waits and slow requests.
fn watched(id: &str) -> Option<Layout> {
    let time = |id: &str| right(id, "", 8).form(Form::Compact);
    Some(match id {
        "digests" => Layout::new(vec![
            right("n", "", 2),
            right("share", " ", 7),
            right("count", " ", 8),
            right("rate", " ", 10),
            time("mean"),
            time("p50"),
            time("p99"),
            time("max"),
            right("rows", " ", 6).form(Form::Dash),
            right("affected", " ", 9).form(Form::Dash).wider_than(92),
        ]),
        "digest_texts" => Layout::new(vec![
            right("n", "", 2),
            right("cpu", " ", 6).form(Form::Whole),
            right("queue", " ", 6).form(Form::Whole),
            right("block", " ", 6).form(Form::Whole),
            right("loop", " ", 6).form(Form::Whole).wider_than(92),
            left("user", "  ", 14).form(Form::Cut).wider_than(92),
            left("text", "  ", 0).form(Form::Cut),
        ]),
        "sessions" | "peers" | "connections" => {
            let mut places = vec![
                right("share", "", 7),
                right("requests", " ", 9),
                right("rate", " ", 10),
                time("mean"),
                time("p99"),
                time("max"),
                right("in", " ", 9).wider_than(110),
                right("out", " ", 9).wider_than(110),
                right("rows", " ", 6).form(Form::Dash).wider_than(92),
                left("name", "  ", 21),
            ];
            if id == "connections" {
                places.push(left("user", "  ", 0).form(Form::Dash).wider_than(92));
            }
            Layout::new(places)
        }
        "sleeps" => Layout::new(vec![
            right("time", "", 10).form(Form::Aligned),
            right("requests", " ", 9),
            right("max", " ", 10).form(Form::Aligned),
            left("call", "  ", 14),
            left("target", " ", 0).form(Form::Clipped),
        ]),
        "slow_reasons" => Layout::new(vec![
            right("requests", "", 9),
            right("time", " ", 10).form(Form::Aligned),
            right("share", " ", 6).form(Form::Whole),
            left("part", "  ", 17),
            left("what", " ", 0).form(Form::Clipped),
        ]),
        "slowest" => Layout::new(vec![
            right("at", "", 8),
            right("took", " ", 9).form(Form::Aligned),
            right("share", " ", 6).form(Form::Whole),
            left("part", "  ", 16),
            left("what", " ", 28).form(Form::Cut).wider_than(100),
            left("user", " ", 14).form(Form::Cut).wider_than(130),
            left("peer", " ", 21).form(Form::Cut).wider_than(130),
            left("text", " ", 0).form(Form::Cut),
        ]),
        _ => return None,
    })
}

fn phases() -> Layout {
    let mut places = vec![
        left("phase", "", 12),
        left("owner", " ", 18),
        left("share", " ", 7).form(Form::Bar(7)).wider_than(100),
        right("share", "", 8).form(Form::Blank).title_pad(1),
    ];
    // Exactly 80 columns with all that is shown at this width.
    places.extend(times(&["p50"], 9, 3));
    places.extend(times(&["p90", "p99"], 10, 3));
    places.extend(times(&["p99.9"], 10, 3).into_iter().map(|place| place.wider_than(92)));
    places.push(right("max", "", 10).form(Form::AlignedOrNone).title_pad(3));
    Layout { runs_on: true, ..Layout::new(places) }
}

fn targets() -> Layout {
    let mut places = vec![right("requests", "", 9), right("ok", " ", 9), right("failed", " ", 9)];
    places.push(right("response_p50", " ", 10).form(Form::Aligned));
    places.extend(times(&["response_p99", "service_p50", "service_p99"], 10, 0));
    places.push(left("target", "  ", 0));
    Layout::new(places)
}

/// Text on the left, figures on the right.
fn any(table: &Table) -> Layout {
    let places = table.columns.iter().enumerate().map(|(index, column)| {
        let cells = table.rows.iter().filter_map(|row| row.cells.get(index));
        let widest = cells.map(|cell| cell.to_string().chars().count()).max().unwrap_or(0);
        let width = widest.max(column.title.chars().count());
        if column.unit == "text" { left(&column.id, "  ", width) } else { right(&column.id, "  ", width) }
    });
    Layout { indent: "", ..Layout::new(places.collect()) }
}
