//! The runs of an experiment in their order: fixed before the first one begins.
//!
//! Randomised complete blocks: each block has every combination once. The arms of a comparison are neighbours in time,
//! because pairing is worth what they share (Abedi and Brecht, ICPE 2017); a factor that takes long to change is
//! constant over a part of each block.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::format::Order;
use super::spec::Experiment;
use crate::plan::shuffled;

/// One run of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedRun {
    /// From 1, in the order of the plan.
    pub number: usize,
    /// From 1.
    pub block: usize,
    /// The place of the level of each factor.
    pub levels: Vec<usize>,
    /// Whether it is the second, hidden base.
    pub is_twin: bool,
}

/// More runs than this are a mistake in a list.
const MOST_RUNS: usize = 100_000;

/// A run without its place in the order.
type Item = (Vec<usize>, bool);

impl Experiment {
    /// All runs, in their order.
    ///
    /// # Errors
    ///
    /// One line if there are none, or too many.
    pub fn runs(&self) -> Result<Vec<PlannedRun>, String> {
        let combinations: usize = self.factors.iter().map(|factor| factor.levels.len()).product();
        if combinations.saturating_mul(self.blocks) > MOST_RUNS {
            return Err(format!("more than {MOST_RUNS} runs"));
        }
        let items = self.items();
        if items.is_empty() {
            return Err("`skip` leaves no run".to_owned());
        }
        let keys = self.keys();
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(self.seed);
        let mut runs: Vec<PlannedRun> = Vec::new();
        for block in 1..=self.blocks {
            for (levels, is_twin) in self.ordered(items.clone(), &keys, &mut generator) {
                runs.push(PlannedRun { number: runs.len() + 1, block, levels, is_twin });
            }
        }
        Ok(runs)
    }

    /// The combinations of one block as they are written: the last factor changes first, twins follow their base.
    fn items(&self) -> Vec<Item> {
        let mut all: Vec<Vec<usize>> = vec![Vec::new()];
        for factor in &self.factors {
            let with = |levels: &Vec<usize>| {
                let levels = levels.clone();
                (0..factor.levels.len()).map(move |level| [levels.clone(), vec![level]].concat())
            };
            all = all.iter().flat_map(with).collect();
        }
        all.retain(|levels| !self.is_skipped(levels));
        let with_twin = |levels: Vec<usize>| {
            let has_twin = self.twin && self.compared.is_some_and(|place| levels[place] == 0);
            let twin = has_twin.then(|| (levels.clone(), true));
            [Some((levels, false)), twin].into_iter().flatten()
        };
        all.into_iter().flat_map(with_twin).collect()
    }

    fn is_skipped(&self, levels: &[usize]) -> bool {
        let has =
            |(place, label): &(usize, String)| self.factors[*place].levels[levels[*place]].label == *label;
        self.skip.iter().any(|entry| entry.iter().all(has))
    }

    /// What runs have in common that stay together, the longest neighbourhood first.
    fn keys(&self) -> Vec<Key> {
        let rare = self.factors.iter().enumerate().filter(|(_, factor)| factor.changes_rarely);
        let rare =
            rare.map(|(place, _)| if Some(place) == self.compared { Key::Arm } else { Key::Level(place) });
        rare.chain([Key::Cell, Key::Arm]).collect()
    }

    fn ordered(&self, items: Vec<Item>, keys: &[Key], generator: &mut Xoshiro256PlusPlus) -> Vec<Item> {
        let Some((key, rest)) = keys.split_first() else { return items };
        let mut groups: Vec<(Vec<usize>, Vec<Item>)> = Vec::new();
        for item in items {
            let value = self.value(*key, &item);
            match groups.iter_mut().find(|(known, _)| *known == value) {
                Some((_, group)) => group.push(item),
                None => groups.push((value, vec![item])),
            }
        }
        if self.order == Order::RandomInBlock {
            groups = shuffled(groups, generator);
        }
        groups.into_iter().flat_map(|(_, group)| self.ordered(group, rest, generator)).collect()
    }

    fn value(&self, key: Key, (levels, is_twin): &Item) -> Vec<usize> {
        match key {
            Key::Level(place) => vec![levels[place]],
            Key::Cell => self.cell(levels),
            Key::Arm => vec![self.compared.map_or(0, |place| levels[place]), usize::from(*is_twin)],
        }
    }

    /// The levels of all factors but the one that is compared: the runs of a comparison have the same.
    pub fn cell(&self, levels: &[usize]) -> Vec<usize> {
        let others = levels.iter().enumerate().filter(|(place, _)| Some(*place) != self.compared);
        others.map(|(_, level)| *level).collect()
    }

    /// `concurrency=16 endpoint=plaintext`; empty if nothing but the compared factor varies.
    pub fn cell_name(&self, levels: &[usize]) -> String {
        let named = self.factors.iter().zip(levels).enumerate();
        let others = named.filter(|(place, _)| Some(*place) != self.compared);
        let texts =
            others.map(|(_, (factor, level))| format!("{}={}", factor.name, factor.levels[*level].label));
        texts.collect::<Vec<_>>().join(" ")
    }

    /// The label of the compared value; empty if none is compared.
    pub fn arm_name(&self, run: &PlannedRun) -> String {
        let Some(place) = self.compared else { return String::new() };
        let label = &self.factors[place].levels[run.levels[place]].label;
        if run.is_twin { format!("{label} (twin)") } else { label.clone() }
    }

    /// The values that fill in the names of factors for a run.
    pub(crate) fn values(&self, levels: &[usize]) -> Vec<(String, String)> {
        let named = self.factors.iter().zip(levels);
        let pair = |(factor, level): (&super::spec::ExperimentFactor, &usize)| {
            let level = &factor.levels[*level];
            [
                (factor.name.clone(), level.value.clone()),
                (format!("{}.label", factor.name), level.label.clone()),
            ]
        };
        named.flat_map(pair).collect()
    }
}

#[derive(Debug, Clone, Copy)]
enum Key {
    Level(usize),
    Cell,
    /// The compared value, or the twin.
    Arm,
}
