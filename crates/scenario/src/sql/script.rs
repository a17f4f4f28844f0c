//! One transaction in progress, and the scenario as the script of a run against a database.

use codec::{ConnectionUse, FailedCheck, Next, Origin, Route};
use database::sql::{After, Ask, Keep, Parameters, Rows, Script};
use units::Nanos;

use super::step::SqlStep;
use crate::journey::{Filling, Position, Repetition};
use crate::plan::Scenario;

/// One unit of demand, about to send a statement.
#[derive(Debug)]
pub struct Transaction {
    at: Position,
    /// Which repetition of the current step it is, from 0.
    nth: u32,
    /// Retries so far.
    retries: u32,
    /// It is about to undo what it did, and then to begin again.
    undoes: bool,
    captured: Vec<String>,
}

impl Transaction {
    fn new(at: Position) -> Transaction {
        Transaction { at, nth: 0, retries: 0, undoes: false, captured: Vec::new() }
    }
}

impl Scenario {
    /// The number of the current step: that of the transaction, or the one that undoes it.
    fn step_number(&self, transaction: &Transaction) -> u16 {
        match self.rollback {
            Some(rollback) if transaction.undoes => rollback,
            _ => transaction.at.step,
        }
    }

    fn filling<'a>(&'a self, transaction: &'a Transaction, sql: &SqlStep) -> Filling<'a> {
        Filling {
            scenario: self,
            n: transaction.at.n,
            captured: &transaction.captured,
            repetition: Repetition { nth: transaction.nth, own_draws: sql.own_draws },
        }
    }

    /// What follows a statement that was answered as expected.
    fn go_on(&self, mut transaction: Transaction, taken: Option<Vec<String>>) -> Next<Transaction> {
        if transaction.undoes {
            let (retries, at) = (transaction.retries, self.position(transaction.at.n));
            let journey = Transaction { retries, ..Transaction::new(at) };
            return Next::Then { journey, think: Nanos::ZERO };
        }
        let step = self.step(transaction.at);
        let sql = step.sql();
        if let Some(values) = taken.filter(|values| !values.is_empty()) {
            transaction.captured.resize(self.play(transaction.at).slots.len(), String::new());
            for (capture, value) in sql.captures.iter().zip(values) {
                transaction.captured[usize::from(capture.slot)] = value;
            }
        }
        transaction.nth += 1;
        if transaction.nth < sql.repeat {
            return Next::Then { journey: transaction, think: Nanos::ZERO };
        }
        if self.is_last(transaction.at) {
            return Next::End;
        }
        let think = self.think(transaction.at);
        transaction.at.step += 1;
        transaction.nth = 0;
        Next::Then { journey: transaction, think }
    }

    /// What follows a statement that may succeed if its transaction is tried again.
    fn try_again(&self, transaction: &Transaction, has_ended: bool) -> Next<Transaction> {
        if transaction.undoes || transaction.retries >= self.play(transaction.at).retries {
            return Next::End;
        }
        let at = self.position(transaction.at.n);
        let retries = transaction.retries + 1;
        let journey = Transaction { retries, undoes: !has_ended, ..Transaction::new(at) };
        Next::Retry { journey, think: Nanos::ZERO }
    }
}

impl Script for Scenario {
    type Journey = Transaction;
    type Taken = Vec<String>;

    fn begin(&self, n: u64) -> Transaction {
        Transaction::new(self.position(n))
    }

    fn route(&self, transaction: &Transaction) -> Route {
        let kind = self.step_number(transaction);
        let journey = self.play(transaction.at).number;
        let origin = Origin(self.step(transaction.at).target);
        // A transaction lives on one connection, and so does what is around it.
        let connection = if journey.is_some() { ConnectionUse::Leased } else { ConnectionUse::Any };
        Route { origin, kind, journey, connection }
    }

    fn kinds(&self) -> usize {
        self.steps.len()
    }

    fn journeys(&self) -> usize {
        self.plays.iter().filter(|play| play.number.is_some()).count()
    }

    fn ask(&self, transaction: &Transaction, parameters: &mut Parameters) -> Ask {
        let step = self.step_number(transaction);
        let sql = self.steps[usize::from(step)].sql();
        let filling = self.filling(transaction, sql);
        sql.fill_in(&filling, parameters);
        let keep = match sql {
            sql if sql.reads_row() => Keep::FirstRow,
            sql if sql.counts_rows() => Keep::Counts,
            _ => Keep::Nothing,
        };
        Ask { statement: sql.statement(&filling), step, keep }
    }

    fn take(&self, step: u16, rows: &Rows) -> Result<Vec<String>, FailedCheck> {
        self.steps[usize::from(step)].sql().take(rows)
    }

    fn advance(&self, transaction: Transaction, after: After<Vec<String>>) -> Next<Transaction> {
        match after {
            After::Good(taken) => self.go_on(transaction, taken),
            After::Retryable { has_ended } => self.try_again(&transaction, has_ended),
            // The engine closes the connection of a transaction that is still open, and the server rolls back.
            After::Failed | After::Unanswered => Next::End,
        }
    }
}
