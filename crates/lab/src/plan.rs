//! The variants of an experiment, and the order of its runs: fixed before the first one begins.
//!
//! Randomised complete blocks: each block runs every arm once, in an order that the seed decides. The arms
//! of a block are neighbours in time, so a machine that drifts does so for all of them (Abedi and Brecht, ICPE 2017).

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use database::without_password;

use crate::command::{Parameter, TrialCommand, filled};

/// Commands around the runs; texts with parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hooks {
    /// Once, before the first run of a variant.
    pub setup: Option<String>,
    /// Before every run, warm-up runs included.
    pub prepare: Option<String>,
    /// Once, after the last run, also if the experiment was ended.
    pub cleanup: Option<String>,
}

/// One thing that is compared: a command with the values of its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    /// As in the report: `A`, `threads=4`, `B threads=4`.
    pub name: String,
    pub command: TrialCommand,
    pub(crate) values: Vec<(String, String)>,
}

/// An experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The base first; at least two.
    pub variants: Vec<Variant>,
    pub hooks: Hooks,
    pub blocks: usize,
    /// Runs of each variant before the first block, which are not measured.
    pub warmup: usize,
    pub seed: u64,
    /// Whether a second, hidden base runs in each block.
    pub twin: bool,
}

/// Every command with every combination of values, in the order in which they were given; the first is the base.
///
/// # Errors
///
/// One line for an empty command, fewer than two variants, and a parameter that no command uses.
pub fn variants(
    commands: &[String],
    names: &[String],
    parameters: &[Parameter],
) -> Result<Vec<Variant>, String> {
    if let Some(unused) =
        parameters.iter().find(|one| !commands.iter().any(|text| text.contains(&one.open())))
    {
        return Err(format!("no command contains {}; write it where its values belong", unused.open()));
    }
    if names.len() > commands.len() {
        return Err(format!("{} names for {} commands", names.len(), commands.len()));
    }
    let mut combinations = vec![Vec::new()];
    for parameter in parameters {
        let with = |values: &Vec<(String, String)>| {
            let all = parameter.values.iter().map(|value| (parameter.name.clone(), value.clone()));
            all.map(|one| values.iter().cloned().chain([one]).collect()).collect::<Vec<_>>()
        };
        combinations = combinations.iter().flat_map(with).collect();
        if combinations.len() > MOST_VARIANTS {
            return Err(format!("more than {MOST_VARIANTS} variants"));
        }
    }
    let mut found = Vec::new();
    for (place, text) in commands.iter().enumerate() {
        let is_alone = commands.len() == 1 && names.is_empty() && !parameters.is_empty();
        let name =
            if is_alone { String::new() } else { names.get(place).cloned().unwrap_or_else(|| letter(place)) };
        for values in &combinations {
            let shown = values.iter().map(|(name, value)| format!("{name}={}", without_password(value)));
            let words: Vec<String> =
                [name.clone()].into_iter().filter(|name| !name.is_empty()).chain(shown).collect();
            let command = TrialCommand::new(&filled(text, values))?;
            found.push(Variant { name: words.join(" "), command, values: values.clone() });
        }
    }
    let plain = |name: &str| name.replace(|c: char| !c.is_ascii_alphanumeric() && !".-".contains(c), "_");
    let mut names = std::collections::BTreeSet::new();
    if let Some(twice) = found.iter().find(|one| !names.insert(plain(&one.name))) {
        return Err(format!(
            "two commands have the name `{}`; give each its own --name, or other values",
            twice.name
        ));
    }
    if found.len() < 2 {
        return Err(
            "one command has nothing to be compared with: give a second --run, or -L NAME=VALUE,VALUE"
                .to_owned(),
        );
    }
    if found.len() > MOST_VARIANTS {
        return Err(format!("more than {MOST_VARIANTS} variants"));
    }
    Ok(found)
}

/// More variants than this are a mistake in a list.
const MOST_VARIANTS: usize = 100;

/// `A` to `Z`, then `27`.
fn letter(place: usize) -> String {
    u8::try_from(place)
        .ok()
        .filter(|place| *place < 26)
        .map_or((place + 1).to_string(), |place| char::from(b'A' + place).to_string())
}

impl Parameter {
    fn open(&self) -> String {
        format!("{{{}}}", self.name)
    }
}

/// An arm of the plan: a variant, or the twin of the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlanArm {
    Variant(usize),
    Twin,
}

impl Plan {
    /// All arms, the base first, the twin last.
    pub(crate) fn arms(&self) -> Vec<PlanArm> {
        let variants = (0..self.variants.len()).map(PlanArm::Variant);
        variants.chain(self.twin.then_some(PlanArm::Twin)).collect()
    }

    /// The variant that an arm runs.
    pub(crate) fn variant(&self, arm: PlanArm) -> &Variant {
        match arm {
            PlanArm::Variant(index) => &self.variants[index],
            PlanArm::Twin => &self.variants[0],
        }
    }

    /// The arms of each block in the order in which they run; after the planned blocks come those that may replace
    /// blocks with an invalid run, one for two.
    pub(crate) fn order(&self) -> Vec<Vec<PlanArm>> {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(self.seed);
        (0..self.blocks + self.blocks.div_ceil(2)).map(|_| shuffled(self.arms(), &mut generator)).collect()
    }

    /// The runs that are measured.
    pub fn runs(&self) -> usize {
        self.blocks * self.arms().len()
    }
}

/// Fisher and Yates; the remainder of 64 bits by a few arms is uniform enough.
pub(crate) fn shuffled<T>(mut arms: Vec<T>, generator: &mut Xoshiro256PlusPlus) -> Vec<T> {
    for last in (1..arms.len()).rev() {
        let other = (generator.next_u64() % (last as u64 + 1)) as usize;
        arms.swap(last, other);
    }
    arms
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(commands: &[&str], names: &[&str], parameters: &[&str]) -> Result<Vec<String>, String> {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let parameters: Vec<Parameter> = parameters.iter().map(|text| text.parse().unwrap()).collect();
        let found = variants(&owned(commands), &owned(names), &parameters)?;
        Ok(found.into_iter().map(|one| format!("{}: {}", one.name, one.command.text())).collect())
    }

    #[test]
    fn variants_are_commands_with_values() {
        assert_eq!(named(&["x", "y"], &[], &[]).unwrap(), ["A: x", "B: y"]);
        assert_eq!(named(&["x", "y"], &["old", "new"], &[]).unwrap(), ["old: x", "new: y"]);
        assert_eq!(named(&["x {n}"], &[], &["n=1,2"]).unwrap(), ["n=1: x 1", "n=2: x 2"]);
        assert_eq!(
            named(&["x {n}", "y {n}"], &[], &["n=1,2"]).unwrap(),
            ["A n=1: x 1", "A n=2: x 2", "B n=1: y 1", "B n=2: y 2"]
        );
        // Both are part of records and reports.
        assert_eq!(
            named(&["x {u}"], &[], &["u=mysql://a:hunter2@h,mysql://a:hunter2@i"]).unwrap(),
            ["u=mysql://a@h: x mysql://a@h", "u=mysql://a@i: x mysql://a@i"]
        );
        assert!(named(&["x"], &[], &[]).unwrap_err().contains("nothing to be compared with"));
        assert!(named(&["x", "y"], &[], &["n=1,2"]).unwrap_err().contains("no command contains {n}"));
        assert!(named(&["x {n}"], &[], &["n=1"]).is_err());
        assert!(named(&["x", "y"], &["old", "old"], &[]).unwrap_err().contains("the name `old`"));
        assert!(named(&["x {n}"], &[], &["n=a/b,a_b"]).is_err(), "they would have one directory");
    }

    fn plan(blocks: usize, seed: u64) -> Plan {
        let commands = ["x".to_owned(), "y".to_owned()];
        let variants = variants(&commands, &[], &[]).unwrap();
        Plan { variants, hooks: Hooks::default(), blocks, warmup: 0, seed, twin: true }
    }

    /// If this fails, an arm that always runs first is compared with one that always runs second.
    #[test]
    fn each_block_has_every_arm_once_and_in_any_order() {
        let order = plan(600, 1).order();
        let mut counts = std::collections::BTreeMap::new();
        for block in &order {
            assert_eq!(block.len(), 3);
            assert!(plan(1, 1).arms().iter().all(|arm| block.contains(arm)));
            *counts.entry(format!("{block:?}")).or_insert(0) += 1;
        }
        // Six orders, 150 each; four standard errors of a count are 45.
        assert_eq!(counts.len(), 6);
        assert!(counts.values().all(|count| (105..=195).contains(count)), "{counts:?}");
        assert_eq!(order.len(), 900);
        assert_eq!(order, plan(600, 1).order());
        assert_ne!(order, plan(600, 2).order());
    }
}
