//! Which runs of an experiment are looked at: `--where client=go,java`, `--without servers=slow`.

use std::fmt;
use std::str::FromStr;

use anyhow::{bail, ensure};

use super::order::PlannedRun;
use super::spec::Experiment;

/// Values of a factor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    factor: String,
    /// Labels, one at least.
    labels: Vec<String>,
}

/// The runs that have one of the values of each choice in `only`, and none of those in `without`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    pub only: Vec<Choice>,
    pub without: Vec<Choice>,
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Choice, String> {
        let labels = |text: &str| text.split(',').map(|label| label.trim().to_owned()).collect::<Vec<_>>();
        match text.split_once('=') {
            Some((factor, values)) if !labels(values).contains(&String::new()) => {
                Ok(Choice { factor: factor.trim().to_owned(), labels: labels(values) })
            }
            _ => Err("write FACTOR=VALUE, or FACTOR=VALUE,VALUE".to_owned()),
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.factor, self.labels.join(","))
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.only.iter().try_for_each(|choice| write!(f, ", where {choice}"))?;
        self.without.iter().try_for_each(|choice| write!(f, ", without {choice}"))
    }
}

impl Selection {
    /// The runs of the plan that are looked at.
    ///
    /// # Errors
    ///
    /// For a factor or a value that the experiment does not have, where no run is left, and where the value is left out
    /// that the others are compared with.
    pub(super) fn of(
        &self,
        experiment: &Experiment,
        plan: Vec<PlannedRun>,
    ) -> anyhow::Result<Vec<PlannedRun>> {
        let places = |choices: &[Choice]| {
            choices.iter().map(|choice| choice.places(experiment)).collect::<anyhow::Result<Vec<_>>>()
        };
        let (only, without) = (places(&self.only)?, places(&self.without)?);
        let is_kept = |levels: &[usize]| {
            only.iter().all(|(factor, chosen)| chosen.contains(&levels[*factor]))
                && !without.iter().any(|(factor, chosen)| chosen.contains(&levels[*factor]))
        };
        let kept: Vec<PlannedRun> = plan.into_iter().filter(|run| is_kept(&run.levels)).collect();
        ensure!(!kept.is_empty(), "no run is left{self}");
        if let Some(place) = experiment.compared
            && !kept.iter().any(|run| run.levels[place] == 0)
        {
            let factor = &experiment.factors[place];
            let base = &factor.levels[0].label;
            bail!("`{}={base}` is left out, with which the others are compared", factor.name);
        }
        Ok(kept)
    }
}

impl Choice {
    /// The places of the factor and of its chosen levels.
    fn places(&self, experiment: &Experiment) -> anyhow::Result<(usize, Vec<usize>)> {
        let names: Vec<&str> = experiment.factors.iter().map(|factor| factor.name.as_str()).collect();
        let Some(place) = names.iter().position(|name| *name == self.factor) else {
            bail!("there is no factor `{}`; there are: {}", self.factor, names.join(", "));
        };
        let labels: Vec<&str> =
            experiment.factors[place].levels.iter().map(|level| level.label.as_str()).collect();
        let level = |wanted: &String| match labels.iter().position(|label| label == wanted) {
            Some(level) => Ok(level),
            None => bail!("`{}` has no value `{wanted}`; it has: {}", self.factor, labels.join(", ")),
        };
        Ok((place, self.labels.iter().map(level).collect::<anyhow::Result<_>>()?))
    }
}
