//! The SQL part of a step: its statement, the values of its parameters, and what its response must satisfy.

use codec::FailedCheck;
use database::sql::{Column, Parameters, Rows, Statement};

use crate::distribution::Distribution;
use crate::journey::Filling;
use crate::plan::{Scenario, Step};
use crate::template::{Moment, Template};
use crate::web::Wanted;

/// One statement, executed once or several times.
#[derive(Debug)]
pub(crate) struct SqlStep {
    /// The index of its statement; of the first one, if it has variants.
    pub first: u16,
    /// The draw that chooses one of several statements, which follow each other.
    pub variant: Option<(Distribution, u64)>,
    pub parameters: Vec<Parameter>,
    pub repeat: u32,
    /// Draws from this one on differ between its repetitions.
    pub own_draws: u64,
    /// Its name follows from the statement.
    pub is_unnamed: bool,
    pub rows: Option<Bounds>,
    pub affected: Option<Bounds>,
    pub looks: Vec<ColumnLook>,
    pub captures: Vec<ColumnCapture>,
}

/// The source of a parameter's value.
#[derive(Debug)]
pub(crate) enum Parameter {
    /// The journey's number in the run.
    Number,
    Drawn {
        distribution: Distribution,
        id: u64,
        plus: i64,
    },
    /// A text that is a whole number.
    Integer(Template),
    Text(Template),
}

/// How many rows there may be, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub low: u64,
    pub high: u64,
}

/// A condition on a column of the first row.
#[derive(Debug)]
pub(crate) struct ColumnLook {
    pub column: String,
    pub wanted: Wanted,
}

/// A column of the first row whose value later steps use.
#[derive(Debug)]
pub(crate) struct ColumnCapture {
    pub slot: u16,
    pub column: String,
    pub default: Option<String>,
}

impl SqlStep {
    /// All texts of its parameters.
    pub(crate) fn templates(&self) -> impl Iterator<Item = &Template> {
        self.parameters.iter().filter_map(|parameter| match parameter {
            Parameter::Integer(template) | Parameter::Text(template) => Some(template),
            Parameter::Number | Parameter::Drawn { .. } => None,
        })
    }

    /// Whether its checks and captures need the first row.
    pub(crate) fn reads_row(&self) -> bool {
        !self.looks.is_empty() || !self.captures.is_empty()
    }

    /// Whether it has checks of the number of rows.
    pub(crate) fn counts_rows(&self) -> bool {
        self.rows.is_some() || self.affected.is_some()
    }

    /// Adds the values of its parameters.
    ///
    /// # Cost
    ///
    /// Hot path: once per statement.
    pub(crate) fn fill_in(&self, filling: &Filling<'_>, out: &mut Parameters) {
        for parameter in &self.parameters {
            match parameter {
                Parameter::Number => out.integer(filling.n().cast_signed()),
                Parameter::Drawn { distribution, id, plus } => {
                    let drawn = distribution.value(filling.seed(), filling.n(), filling.draw_id(*id));
                    out.integer(drawn.cast_signed().saturating_add(*plus));
                }
                Parameter::Integer(template) => match template.render(filling).trim().parse() {
                    Ok(number) => out.integer(number),
                    // The server says what is wrong with it.
                    Err(_) => out.text(|text| template.render_into(filling, text)),
                },
                Parameter::Text(template) => out.text(|text| template.render_into(filling, text)),
            }
        }
    }

    /// The index of the statement to execute.
    pub(crate) fn statement(&self, filling: &Filling<'_>) -> u16 {
        let Some((distribution, id)) = self.variant else { return self.first };
        let drawn = distribution.value(filling.seed(), filling.n(), filling.draw_id(id));
        // Below the number of variants, which were counted.
        self.first + (drawn - distribution.low) as u16
    }

    /// Checks a response, and takes the values that are captured.
    pub(crate) fn take(&self, rows: &Rows) -> Result<Vec<String>, FailedCheck> {
        for (what, bounds, count) in
            [("rows", self.rows, rows.count), ("affected", self.affected, rows.affected)]
        {
            if let Some(bounds) = bounds.filter(|bounds| !(bounds.low..=bounds.high).contains(&count)) {
                let check = format!("{what}: expected {bounds}");
                return Err(FailedCheck::new(check, count.to_string().as_bytes()));
            }
        }
        for look in &self.looks {
            let value = rows.value(&look.column).flatten();
            if !look.wanted.holds_for(value) {
                let check = format!("column {}: expected {}", look.column, look.wanted);
                let got = value
                    .map_or_else(|| absent(&look.column, rows), |value| format!("{}: {value}", look.column));
                return Err(FailedCheck::new(check, got.as_bytes()));
            }
        }
        let capture = |capture: &ColumnCapture| {
            let value = rows.value(&capture.column).flatten().map(str::to_owned);
            value.or_else(|| capture.default.clone()).ok_or_else(|| {
                let check = format!("column {}: expected a value to capture", capture.column);
                FailedCheck::new(check, absent(&capture.column, rows).as_bytes())
            })
        };
        self.captures.iter().map(capture).collect()
    }
}

/// Why the first row has no value of this column.
fn absent(column: &str, rows: &Rows) -> String {
    let names: Vec<&str> = rows.columns.iter().map(|Column { name, .. }| name.as_str()).collect();
    match rows.value(column) {
        Some(_) => "NULL".to_owned(),
        None if rows.count == 0 => "no row".to_owned(),
        None => format!("no such column; there are {}", names.join(", ")),
    }
}

impl std::fmt::Display for Bounds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Bounds { low, high } if low == high => write!(f, "{low}"),
            Bounds { low, high: u64::MAX } => write!(f, "{low} or more"),
            Bounds { low, high } => write!(f, "{low} to {high}"),
        }
    }
}

impl Bounds {
    /// Reads `1`, `1..10`, `1..` or `..10`.
    pub(crate) fn parse(text: &str) -> Option<Bounds> {
        let number = |text: &str| text.trim().parse::<u64>().ok();
        let Some((low, high)) = text.split_once("..") else {
            return number(text).map(|count| Bounds { low: count, high: count });
        };
        let low = if low.trim().is_empty() { 0 } else { number(low)? };
        let high = if high.trim().is_empty() { u64::MAX } else { number(high)? };
        (low <= high).then_some(Bounds { low, high })
    }
}

impl Scenario {
    /// The statements of all steps, in the codec's form.
    pub fn statements(&self) -> &[Statement] {
        &self.statements
    }

    /// The statement of a step, with its kind of database's marks for its parameters.
    pub(crate) fn statement_of(&self, sql: &SqlStep) -> String {
        let kind = self.database_kind().expect("statements are for databases");
        self.statements[usize::from(sql.first)].with_marks(kind)
    }
}

/// The statement that undoes a transaction.
pub(crate) fn rollback_step(index: u16) -> Step {
    let sql = SqlStep {
        first: index,
        variant: None,
        parameters: Vec::new(),
        repeat: 1,
        own_draws: 0,
        is_unnamed: false,
        rows: None,
        affected: None,
        looks: Vec::new(),
        captures: Vec::new(),
    };
    Step {
        name: "rollback before a retry".to_owned(),
        target: 0,
        think: crate::think::Think::None,
        think_draw: 0,
        action: crate::plan::Action::Sql(sql),
    }
}
