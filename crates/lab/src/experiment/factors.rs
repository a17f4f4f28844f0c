//! The factors of an experiment: their values, the one that is compared, and the combinations that are left out.

use toml::Spanned;

use super::place::{Slip, meant_or_known};
use super::spec::{ExperimentFactor, Level};
use super::template::is_name;
use super::values::{Change, Factor, FactorTable, Named, Role, Scalar, Values};

/// The factors in the order of the file.
pub(super) fn factors(named: &Named<Factor>) -> Result<Vec<ExperimentFactor>, Slip> {
    let mut found = Vec::new();
    for (name, factor) in in_order(named) {
        if !is_name(name) || name.contains('.') || RESERVED.contains(&name.as_str()) {
            let what = format!("`{name}` cannot be the name of a factor: use letters, digits, - and _");
            return Err(Slip::new(factor.span(), what));
        }
        let (levels, changes_rarely) = match factor.get_ref() {
            Factor::List(values) => (of_list(values), false),
            Factor::Table(table) => (of_table(table, factor)?, table.change == Some(Change::Rarely)),
        };
        if levels.is_empty() {
            return Err(Slip::new(factor.span(), format!("`{name}` has no values")));
        }
        let mut labels: Vec<&str> = levels.iter().map(|level| level.label.as_str()).collect();
        labels.sort_unstable();
        if let Some(twice) = labels.windows(2).find(|two| two[0] == two[1]) {
            return Err(Slip::new(factor.span(), format!("`{name}` has the value `{}` twice", twice[0])));
        }
        found.push(ExperimentFactor { name: name.clone(), levels, changes_rarely });
    }
    Ok(found)
}

/// Names that are filled in by the lab.
const RESERVED: [&str; 5] = ["results", "port", "run", "block", "pid"];

fn in_order<T>(named: &Named<T>) -> Vec<(&String, &Spanned<T>)> {
    let mut all: Vec<_> = named.iter().collect();
    all.sort_by_key(|(_, value)| value.span().start);
    all
}

fn of_list(values: &[Scalar]) -> Vec<Level> {
    let level = |value: &Scalar| Level { label: value.0.clone(), value: value.0.clone() };
    values.iter().map(level).collect()
}

fn of_table(table: &FactorTable, place: &Spanned<Factor>) -> Result<Vec<Level>, Slip> {
    let mut levels = match (&table.values, &table.pow2) {
        (Some(Values::List(values)), None) => of_list(values),
        (Some(Values::Labelled(values)), None) => {
            let level = |(label, value): (&String, &Spanned<Scalar>)| Level {
                label: label.clone(),
                value: value.get_ref().0.clone(),
            };
            in_order(values).into_iter().map(level).collect()
        }
        (None, Some(range)) => powers(range)?,
        _ => return Err(Slip::new(place.span(), "give either `values` or `pow2`")),
    };
    let Some(base) = &table.base else { return Ok(levels) };
    let at = levels.iter().position(|level| level.label == base.get_ref().0);
    let labels: Vec<&str> = levels.iter().map(|level| level.label.as_str()).collect();
    let at = at.ok_or_else(|| {
        let meant = meant_or_known(&base.get_ref().0, &labels);
        Slip::new(base.span(), format!("there is no value `{}`{meant}", base.get_ref().0))
    })?;
    let base = levels.remove(at);
    levels.insert(0, base);
    Ok(levels)
}

fn powers(range: &Spanned<[u64; 2]>) -> Result<Vec<Level>, Slip> {
    let [first, last] = *range.get_ref();
    if !first.is_power_of_two() || !last.is_power_of_two() || first > last {
        return Err(Slip::new(range.span(), "give two powers of two, the smaller first: [1, 64]"));
    }
    let values = (first.ilog2()..=last.ilog2()).map(|power| Scalar((1_u64 << power).to_string()));
    Ok(of_list(&values.collect::<Vec<_>>()))
}

/// The place of the factor that is compared.
pub(super) fn compared(named: &Named<Factor>, factors: &[ExperimentFactor]) -> Result<Option<usize>, Slip> {
    let is_compared =
        |factor: &Factor| matches!(factor, Factor::Table(table) if table.role == Some(Role::Compare));
    let mut found = None;
    for (place, factor) in factors.iter().enumerate() {
        let written = &named[&factor.name];
        if !is_compared(written.get_ref()) {
            continue;
        }
        if found.is_some() {
            return Err(Slip::new(written.span(), "at most one factor has the role `compare`"));
        }
        if factor.levels.len() < 2 {
            let what = format!("`{}` has one value, and nothing to be compared with", factor.name);
            return Err(Slip::new(written.span(), what));
        }
        found = Some(place);
    }
    Ok(found)
}

/// The combinations that are left out.
pub(super) fn skipped(
    entries: &[Spanned<Named<Scalar>>],
    factors: &[ExperimentFactor],
) -> Result<Vec<Vec<(usize, String)>>, Slip> {
    let names: Vec<&str> = factors.iter().map(|factor| factor.name.as_str()).collect();
    let of_entry = |entry: &Spanned<Named<Scalar>>| {
        let one = |(name, label): (&String, &Spanned<Scalar>)| {
            let unknown = |what: &str, given: &str, known: &[&str]| {
                let meant = meant_or_known(given, known);
                Slip::new(label.span(), format!("there is no {what} `{given}`{meant}"))
            };
            let place = names.iter().position(|known| known == name);
            let place = place.ok_or_else(|| unknown("factor", name, &names))?;
            let label = label.get_ref().0.clone();
            let labels: Vec<&str> = factors[place].levels.iter().map(|level| level.label.as_str()).collect();
            if labels.contains(&label.as_str()) {
                Ok((place, label))
            } else {
                Err(unknown("value", &label, &labels))
            }
        };
        entry.get_ref().iter().map(one).collect::<Result<Vec<_>, Slip>>()
    };
    entries.iter().filter(|entry| !entry.get_ref().is_empty()).map(of_entry).collect()
}
