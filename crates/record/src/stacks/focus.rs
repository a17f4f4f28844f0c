//! One function's place in a profile: its share, who calls it, and what it calls.
//!
//! Pure arithmetic on [`Stacks`]. Which frames are meant is the caller's predicate; several may match, as with the name
//! of a library. Each stack through a match counts once: it is entered from the frame before its outermost match, and
//! left to the frame after its innermost one.

use std::collections::BTreeMap;

use super::{FrameWeight, Stacks};

/// The stacks through the frames that match.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Focus {
    /// The weight of all stacks of the picture.
    pub whole: u64,
    /// Of the stacks in which a match is the leaf.
    pub own: u64,
    /// Of the stacks with a match anywhere.
    pub total: u64,
    /// The frames that matched, the largest total first.
    pub matched: Vec<FrameWeight>,
    /// The frames that lead to the outermost match, the largest weight first: they sum to `total`. A thread that begins
    /// in a match is its own caller.
    pub callers: Vec<Neighbor>,
    /// The frames called by the innermost match, the largest weight first: with `own` they sum to `total`.
    pub callees: Vec<Neighbor>,
    /// The stacks with a match, as they are.
    pub through: Stacks,
    /// The same from the outermost match back to the thread.
    pub to_root: Stacks,
    /// The same from the outermost match to the leaf.
    pub to_leaf: Stacks,
}

/// A caller or a callee.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbor {
    pub frame: String,
    pub weight: u64,
}

impl Focus {
    /// The place of the frames that match. The root of a stack names the thread and is not matched.
    ///
    /// # Cost
    ///
    /// One call of `is_match` per frame of each stack.
    pub fn of(stacks: &Stacks, is_match: impl Fn(&str) -> bool) -> Focus {
        let mut focus = Focus { whole: stacks.total(), ..Focus::default() };
        let (mut callers, mut callees) = (BTreeMap::new(), BTreeMap::new());
        for (frames, weight) in stacks.iter() {
            let frames: Vec<_> = frames.collect();
            let matches = |&n: &usize| is_match(frames[n]);
            let Some(first) = (1..frames.len()).find(matches) else { continue };
            let last = (first..frames.len()).rev().find(matches).unwrap_or(first);
            focus.total += weight;
            *callers.entry(frames[first - 1].to_owned()).or_default() += weight;
            match frames.get(last + 1) {
                Some(callee) => *callees.entry((*callee).to_owned()).or_default() += weight,
                None => focus.own += weight,
            }
            focus.through.add(frames.iter().copied(), weight);
            focus.to_root.add(frames[..=first].iter().rev().copied(), weight);
            focus.to_leaf.add(frames[first..].iter().copied(), weight);
        }
        focus.callers = largest_first(callers);
        focus.callees = largest_first(callees);
        focus.matched = focus.through.frames().into_iter().filter(|frame| is_match(&frame.frame)).collect();
        focus.matched.sort_by(|a, b| (b.total, b.own, &a.frame).cmp(&(a.total, a.own, &b.frame)));
        focus
    }
}

fn largest_first(weights: BTreeMap<String, u64>) -> Vec<Neighbor> {
    let mut all: Vec<_> = weights.into_iter().map(|(frame, weight)| Neighbor { frame, weight }).collect();
    all.sort_by(|a, b| (b.weight, &a.frame).cmp(&(a.weight, &b.frame)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn focus(text: &str, on: &str) -> Focus {
        Focus::of(&Stacks::parse(text).unwrap(), |frame| frame.contains(on))
    }

    fn shown(neighbors: &[Neighbor]) -> Vec<(&str, u64)> {
        neighbors.iter().map(|neighbor| (neighbor.frame.as_str(), neighbor.weight)).collect()
    }

    const SHOP: &str =
        "t;main;order;price;load 30\nt;main;order;price 10\nt;main;cart;price;load 20\nt;main;idle 40";

    #[test]
    fn callers_and_callees_add_up_to_the_frame() {
        let focus = focus(SHOP, "price");
        assert_eq!((focus.whole, focus.total, focus.own), (100, 60, 10));
        assert_eq!(shown(&focus.callers), [("order", 40), ("cart", 20)]);
        assert_eq!(shown(&focus.callees), [("load", 50)]);
        let lines = |stacks: &Stacks| stacks.lines().collect::<Vec<_>>().join(",");
        assert_eq!(lines(&focus.to_leaf), "price 10,price;load 50");
        assert_eq!(lines(&focus.to_root), "price;cart;main;t 20,price;order;main;t 40");
        assert_eq!(focus.through.total(), 60);
    }

    /// If this fails, a recursive function or a library with several functions in a stack has more than all the time.
    #[test]
    fn a_stack_counts_once_however_many_frames_match() {
        let focus = focus("t;main;lib_a;lib_b;lib_a;copy 5\nt;lib_b 3", "lib_");
        assert_eq!((focus.total, focus.own), (8, 3));
        assert_eq!(shown(&focus.callers), [("main", 5), ("t", 3)]);
        assert_eq!(shown(&focus.callees), [("copy", 5)]);
        let matched: Vec<_> = focus.matched.iter().map(|f| (f.frame.as_str(), f.own, f.total)).collect();
        assert_eq!(matched, [("lib_b", 3, 8), ("lib_a", 0, 5)]);
    }

    #[test]
    fn a_thread_is_no_frame() {
        assert_eq!(focus("price;main;f 3", "price").total, 0);
    }
}
