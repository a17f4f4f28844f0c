//! The user's timestamps, or anything else, by byte position in a stream.

use std::collections::VecDeque;

/// The marks of one direction of one connection: the end of each piece, and a value for that piece.
#[derive(Debug)]
pub struct Marks<T> {
    marks: VecDeque<(u64, T)>,
    end: u64,
    most: usize,
}

impl<T> Marks<T> {
    /// Keeps at most `most` marks; the oldest are dropped beyond that.
    pub fn new(most: usize) -> Marks<T> {
        Marks { marks: VecDeque::new(), end: 0, most: most.max(1) }
    }

    /// Adds the next piece of the stream.
    pub fn push(&mut self, length: u64, mark: T) {
        if length == 0 {
            return;
        }
        if self.marks.len() == self.most {
            self.marks.pop_front();
        }
        self.end = self.end.saturating_add(length);
        self.marks.push_back((self.end, mark));
    }

    /// The mark of the piece that contained byte `position`; `None` if it is still to come, or its mark was dropped.
    pub fn holding(&self, position: u64) -> Option<&T> {
        let index = self.marks.partition_point(|(end, _)| *end <= position);
        // The oldest mark also covers what came before it, once its predecessors were dropped.
        self.marks.get(index).map(|(_, mark)| mark)
    }

    /// The mark of the piece with byte `end - 1`: the last piece of a range that ends at `end`.
    pub fn ending(&self, end: u64) -> Option<&T> {
        self.holding(end.checked_sub(1)?)
    }

    /// Drops the marks of pieces that end at `position` or before.
    pub fn forget(&mut self, position: u64) {
        while self.marks.front().is_some_and(|(end, _)| *end <= position) {
            self.marks.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_finds_the_piece_that_contained_it() {
        let mut marks = Marks::new(3);
        for (length, mark) in [(4, 'a'), (0, '-'), (1, 'b'), (5, 'c')] {
            marks.push(length, mark);
        }
        let found: String = (0..11).filter_map(|at| marks.holding(at)).collect();
        assert_eq!(found, "aaaabccccc");
        assert_eq!((marks.ending(4), marks.ending(5), marks.ending(0)), (Some(&'a'), Some(&'b'), None));
        marks.forget(5);
        assert_eq!(marks.ending(10), Some(&'c'));
        for _ in 0..9 {
            marks.push(1, 'd');
        }
        assert_eq!(marks.marks.len(), 3);
    }
}
