//! The positions of each table's columns on a line.

use findings::view::Table;

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
    /// A share without decimal places.
    Whole,
    /// A bar of this many cells.
    Bar(usize),
    /// A figure followed by these words.
    With(&'static str),
    /// An error rounded up to two digits: it must not promise more than is known.
    Bound,
    /// A lower bound without a space after its sign.
    Tight,
    /// Text to the end of the line, with a mark if it was cut.
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
        id => observed(id).unwrap_or_else(|| any(table)),
    }
}

/// The tables of the observing verbs.
fn observed(id: &str) -> Option<Layout> {
    Some(match id {
        "watch_times" => {
            let mut places = vec![left("name", "", 18), right("requests", "", 12)];
            places.extend(times(&["mean", "p50", "p95", "p99", "p99.9", "max"], 11, 2));
            Layout::new(places)
        }
        "watch_parts" => Layout {
            has_titles: false,
            ..Layout::new(vec![
                left("part", "", 18),
                left("share", "", 30).form(Form::Bar(30)),
                right("share", " ", 8),
                right("mean", " ", 24).form(Form::With(" per request")),
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
        "digests" => Layout::new(vec![
            right("share", "", 8),
            right("count", " ", 10),
            right("mean", " ", 10).form(Form::Aligned),
            right("cpu", "  ", 6).form(Form::Whole),
            right("queue", " ", 6).form(Form::Whole),
            right("block", " ", 6).form(Form::Whole),
            right("loop", " ", 6).form(Form::Whole),
            left("text", "  ", 0).form(Form::Clipped),
        ]),
        "frames" | "waits" | "sleepers" | "frame_changes" => return profiled(id),
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

/// The tables of profiles.
fn profiled(id: &str) -> Option<Layout> {
    Some(match id {
        "frames" => Layout::new(vec![
            right("own", "", 8),
            right("total", "  ", 8),
            left("frame", "  ", 0).form(Form::Cut),
        ]),
        "waits" => Layout::new(vec![
            left("kind", "", 8),
            right("time", " ", 13),
            right("share", "  ", 8),
            right("share_of_busy", "  ", 8),
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
            right("change", "  ", 9),
            right("own_change", "  ", 7),
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

fn hiccups() -> Layout {
    let mut places = vec![right("meter", "", 10), right("ticks", " ", 10)];
    let times = ["p50", "p99", "p99.9", "p99.99", "max"];
    places.extend(times.map(|id| right(id, " ", 9).form(Form::Dash)));
    places.extend([right("over_1ms", " ", 6), right("over_10ms", " ", 6), right("over_100ms", " ", 7)]);
    Layout { indent: "", ..Layout::new(places) }
}

/// The columns of both ways to split the time, in order: those that a table does not have are left out.
fn cpu() -> Layout {
    let figure = |id| right(id, "", 9).form(Form::Tight);
    Layout {
        indent: "",
        ..Layout::new(vec![
            right("user", "", 8),
            right("pid", "", 8),
            figure("in_user"),
            figure("in_system"),
            right("split_error", "", 8).form(Form::Bound),
            right("ticks", "", 6),
            figure("interrupts"),
            figure("stolen"),
            figure("total"),
            right("error", "", 8).form(Form::Bound),
            figure("wait"),
            right("voluntary", "", 7).form(Form::Tight),
            right("involuntary", "", 7).form(Form::Tight),
            left("command", "  ", 0).form(Form::Clipped),
        ])
    }
}

fn phases() -> Layout {
    let mut places = vec![
        left("phase", "", 12),
        left("owner", " ", 18),
        left("share", " ", 7).form(Form::Bar(7)).wider_than(100),
        right("share", " ", 8).form(Form::Blank).title_pad(1),
    ];
    places.extend(times(&["p50", "p90", "p99"], 10, 3));
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
