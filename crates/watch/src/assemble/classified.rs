//! Classes of a connection's requests: what a function of the server returned for each.
//!
//! A cache that has the response writes it within the function that looks it up, so a request can be answered before
//! its class is known. Such requests are held back until the function has returned, or cannot any more: the connection
//! is read again or ends, or its thread polls.

use std::collections::VecDeque;

use record::Served;
use units::Nanos;

use crate::kernel::Class;

/// Requests held back at once on one connection: the oldest are passed on without a class.
const HELD: usize = 64;

/// The classes of the requests of one connection.
#[derive(Debug)]
pub struct Classified {
    /// Whether a function classifies requests.
    is_on: bool,
    /// Answered, and not classified so far.
    held: VecDeque<Served>,
    /// When the function returned, for a request that was not complete then, and its class.
    early: Option<(Nanos, i64)>,
    /// Until when the requests so far are classified: a second call for one of them does not count.
    until: Nanos,
}

impl Classified {
    /// None so far. `is_on`: whether a function classifies requests; if not, nothing is held back.
    pub fn new(is_on: bool) -> Classified {
        Classified { is_on, held: VecDeque::new(), early: None, until: Nanos::ZERO }
    }

    /// The class of a request whose last byte was read at `read`, if the function had returned by then.
    pub fn of_next(&mut self, read: Nanos) -> Option<i64> {
        self.early.take().filter(|&(returned, _)| read <= returned).map(|(_, class)| class)
    }

    /// The function returned. `pending` is the class of the oldest request that has no response yet.
    pub fn classify(
        &mut self,
        returned: Nanos,
        class: Class,
        pending: Option<&mut Option<i64>>,
        give: &mut dyn FnMut(Served),
    ) {
        // The first call for a request counts: a packet of several statements makes several.
        if class.since < self.until {
            return;
        }
        if let Some(n) = self.held.iter().position(|served| served.done >= class.since) {
            self.held.drain(..n).for_each(&mut *give);
            let mut served = self.held.pop_front().expect("its position was found");
            served.class = Some(class.value);
            self.until = served.done;
            give(served);
        } else if let Some(pending) = pending {
            pending.get_or_insert(class.value);
        } else {
            self.early = Some((returned, class.value));
        }
    }

    /// A request is answered.
    pub fn give(&mut self, served: Served, give: &mut dyn FnMut(Served)) {
        if !self.is_on {
            return give(served);
        }
        if served.class.is_some() {
            self.until = served.done;
            self.release(give);
            return give(served);
        }
        self.held.push_back(served);
        if self.held.len() > HELD {
            self.held.pop_front().into_iter().for_each(give);
        }
    }

    /// Whether nothing is held back.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Passes on what is held back: no class will come any more.
    pub fn release(&mut self, give: &mut dyn FnMut(Served)) {
        self.held.drain(..).for_each(give);
    }
}
