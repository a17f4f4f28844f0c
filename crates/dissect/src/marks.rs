//! Where in a stream what happened: the caller's stamps by byte position.

use std::collections::VecDeque;

/// The marks of one direction of one connection: each piece's end, and what the caller knows of that piece.
#[derive(Debug)]
pub struct Marks<T> {
    marks: VecDeque<(u64, T)>,
    end: u64,
    most: usize,
}

impl<T> Marks<T> {
    /// At most `most` marks are kept; more than that, and the oldest go.
    pub fn new(most: usize) -> Marks<T> {
        Marks { marks: VecDeque::new(), end: 0, most: most.max(1) }
    }

    /// The next piece of the stream.
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

    /// The piece that byte `position` was in. `None` if it is still to come, or its mark has gone.
    pub fn holding(&self, position: u64) -> Option<&T> {
        let index = self.marks.partition_point(|(end, _)| *end <= position);
        // The oldest mark holds what lies before it, too, once its predecessors have gone.
        self.marks.get(index).map(|(_, mark)| mark)
    }

    /// The piece that ends a range which ends behind byte `end - 1`.
    pub fn ending(&self, end: u64) -> Option<&T> {
        self.holding(end.checked_sub(1)?)
    }

    /// Forgets pieces that end at `position` or before.
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
    fn a_position_finds_the_piece_that_held_it() {
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
