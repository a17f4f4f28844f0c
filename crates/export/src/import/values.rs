//! Durations that a tool lists individually, collected by the second in which they ended.

use std::collections::BTreeMap;

use record::Durations;
use record::import::{ImportedQuantile, ImportedTime};
use stats::quantile_ranks;
use units::Nanos;

/// Over half an hour; each second uses a histogram of 270 KiB for every column of the file.
const MOST_SECONDS: usize = 2_000;

const SECOND_NS: u64 = 1_000_000_000;

const QUANTILES: [f64; 7] = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999];

/// Histograms by second.
#[derive(Debug, Clone, Default)]
pub struct Values {
    seconds: BTreeMap<u64, Durations>,
}

impl Values {
    /// Adds a duration that ended `at` after the start of the run. `Err` when the run would span too many seconds.
    pub(super) fn add(&mut self, at: Nanos, duration: Nanos) -> Result<(), String> {
        let second = at.0 / SECOND_NS;
        let is_new = !self.seconds.contains_key(&second);
        if is_new && self.seconds.len() >= MOST_SECONDS {
            return Err(format!(
                "its requests end in over {MOST_SECONDS} different seconds; cut the file into parts"
            ));
        }
        self.seconds.entry(second).or_default().record(duration);
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.seconds.is_empty()
    }

    /// Start, length and histogram of every second in which something ended.
    pub(super) fn intervals(&self) -> impl Iterator<Item = (Nanos, Nanos, &Durations)> {
        let second = Nanos(SECOND_NS);
        self.seconds.iter().map(move |(index, durations)| (Nanos(index * SECOND_NS), second, durations))
    }

    /// The distribution, with its quantiles and their confidence intervals.
    pub(super) fn time(&self, name: &str, original: &str, meaning: &str) -> ImportedTime {
        let mut all = Durations::new();
        self.seconds.values().for_each(|durations| all.merge(durations));
        let at = |rank| all.at_rank(rank).map(|value| value.0);
        let quantile = |q| {
            let ranks = quantile_ranks(all.count(), q)?;
            let ns = at(ranks.estimate)?;
            Some(ImportedQuantile { q, ns, low_ns: at(ranks.low), high_ns: at(ranks.high) })
        };
        ImportedTime {
            name: name.to_owned(),
            original: original.to_owned(),
            meaning: meaning.to_owned(),
            count: Some(all.count()),
            min_ns: all.min().map(|ns| ns.0),
            mean_ns: all.mean().map(|ns| ns.0),
            max_ns: all.max().map(|ns| ns.0),
            quantiles: QUANTILES.into_iter().filter_map(quantile).collect(),
            log: None,
        }
    }
}
