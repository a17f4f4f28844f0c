//! A table of what takes the most time, with bounded memory however many keys there are.

use std::collections::HashMap;
use std::hash::Hash;

use rustc_hash::FxBuildHasher;

/// Something that can be added to another of its kind.
pub trait Summed: Default {
    /// By which entries are compared: summed time.
    fn weight(&self) -> u64;
    /// Adds another sum.
    fn merge(&mut self, other: &Self);
}

/// At most twice `most` entries. When there are more, the `most` entries with the greatest weight stay, and the others
/// become one. An entry that comes back starts from zero: its figures are then a lower bound, and the sum over all
/// remains exact.
#[derive(Debug)]
pub struct Bounded<K, V> {
    most: usize,
    entries: HashMap<K, V, FxBuildHasher>,
    other: V,
    /// Entries that became part of `other`.
    folded: u64,
}

impl<K: Hash + Eq + Clone, V: Summed> Bounded<K, V> {
    /// An empty table that lists `most` entries.
    pub fn new(most: usize) -> Bounded<K, V> {
        Bounded { most: most.max(1), entries: HashMap::default(), other: V::default(), folded: 0 }
    }

    /// The sum of a key.
    ///
    /// # Cost
    ///
    /// One lookup; with ever new keys, one pass over the table per `most` of them.
    pub fn entry(&mut self, key: K) -> &mut V {
        if self.entries.len() >= 2 * self.most && !self.entries.contains_key(&key) {
            self.fold();
        }
        self.entries.entry(key).or_default()
    }

    fn fold(&mut self) {
        let mut weights: Vec<u64> = self.entries.values().map(V::weight).collect();
        let at = weights.len() - self.most;
        let (_, &mut least, _) = weights.select_nth_unstable(at);
        // Of equal ones, as many as there is room for.
        let mut room = self.most - weights[at..].iter().filter(|&&weight| weight > least).count();
        let (other, folded) = (&mut self.other, &mut self.folded);
        self.entries.retain(|_, entry| {
            let weight = entry.weight();
            let stays = weight > least || weight == least && room > 0;
            if weight == least {
                room = room.saturating_sub(1);
            }
            if !stays {
                other.merge(entry);
                *folded += 1;
            }
            stays
        });
    }

    /// The `most` entries with the greatest weight, the greatest first, and the sum of all others, if there are any.
    pub fn largest(&self) -> (Vec<(&K, &V)>, Option<V>) {
        let mut entries: Vec<(&K, &V)> = self.entries.iter().collect();
        entries.sort_by_key(|(_, entry)| std::cmp::Reverse(entry.weight()));
        let rest = entries.split_off(entries.len().min(self.most));
        if rest.is_empty() && self.folded == 0 {
            return (entries, None);
        }
        let mut other = V::default();
        other.merge(&self.other);
        rest.into_iter().for_each(|(_, entry)| other.merge(entry));
        (entries, Some(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Sum(u64);

    impl Summed for Sum {
        fn weight(&self) -> u64 {
            self.0
        }
        fn merge(&mut self, other: &Sum) {
            self.0 += other.0;
        }
    }

    /// If this fails, a watch that runs for days fills the memory, or loses requests from its tables.
    #[test]
    fn what_takes_the_most_stays_and_nothing_is_lost() {
        let mut table = Bounded::<u64, Sum>::new(10);
        let mut total = 0;
        for n in 0..100_000_u64 {
            for (key, more) in [(n, 1), (n % 5 + 1_000_000, 3)] {
                table.entry(key).0 += more;
                total += more;
            }
            assert!(table.entries.len() <= 20);
        }
        let (largest, other) = table.largest();
        assert!(largest[..5].iter().all(|(key, sum)| **key >= 1_000_000 && sum.0 == 60_000));
        let listed: u64 = largest.iter().map(|(_, sum)| sum.0).sum();
        assert_eq!((largest.len(), listed + other.unwrap().0), (10, total));
    }

    #[test]
    fn a_table_with_room_has_no_other_row() {
        let mut table = Bounded::<u64, Sum>::new(10);
        (0..10).for_each(|key| table.entry(key).0 = 10 - key);
        let (largest, other) = table.largest();
        assert!(other.is_none());
        assert_eq!(largest.iter().map(|(key, _)| **key).collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
    }
}
