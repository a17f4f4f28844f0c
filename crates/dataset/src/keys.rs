//! The keys of the workload `redis-get-set`: `key:1` to `key:N`, each with a value of 3 bytes.
//!
//! The key [`MARK`] holds their number: without it, none of them was made here, and none is changed or removed.

use anyhow::{Context, ensure};
use codec::{Protocol, StatementIndex};
use database::sql::Statement;

use crate::client::Client;
use crate::load::{Loaded, Progress};
use crate::script::Task;

/// The key whose value is the number of keys that were made.
pub const MARK: &str = "parallax:prepared:redis-get-set";

/// Keys of one command.
const BATCH: u64 = 1_000;

const READ_MARK: StatementIndex = 0;
const SET_MARK: StatementIndex = 1;
const REMOVE_MARK: StatementIndex = 2;
/// Three commands for a whole batch, then the same for the rest.
const EXIST: StatementIndex = 3;
const SET: StatementIndex = 4;
const REMOVE: StatementIndex = 5;
const OF_REST: StatementIndex = 3;

/// The commands for `keys` keys.
pub fn parts(keys: u64) -> Vec<Statement> {
    let mut all = vec![
        Statement::text(format!("GET {MARK}")),
        Statement { pieces: vec![format!("SET {MARK} "), String::new()], prepared: false },
        Statement::text(format!("DEL {MARK}")),
    ];
    for count in [BATCH, (keys % BATCH).max(1)] {
        all.extend([("EXISTS", ""), ("MSET", " xxx"), ("UNLINK", "")].map(|(name, value)| {
            let mut pieces = vec![format!("{name} key:")];
            pieces.extend((1..count).map(|_| format!("{value} key:")));
            pieces.push(value.to_owned());
            Statement { pieces, prepared: false }
        }));
    }
    all
}

/// The keys `first` to the last one of its command, and which commands are for so many.
fn batches(keys: u64) -> impl Iterator<Item = (u64, u64, StatementIndex)> {
    (0..keys.div_ceil(BATCH)).map(move |n| {
        let first = 1 + n * BATCH;
        let count = BATCH.min(keys - n * BATCH);
        (first, count, if count == BATCH { 0 } else { OF_REST })
    })
}

/// Makes the keys that are missing. The statements of `client` are [`parts`] of the same number of keys.
///
/// # Errors
///
/// One line: for keys that were not made by this function, or another number of them, before anything is changed; when
/// the server refuses something.
pub fn prepare<P: Protocol<Journey = Task>>(
    client: &mut Client<P>,
    keys: u64,
    tell: &mut dyn FnMut(Progress),
) -> anyhow::Result<Loaded> {
    match marked(client)? {
        Some(found) => ensure!(
            found == keys,
            "there are {found} keys that `parallax prepare` made, not {keys}; use --rows with their number, or remove \
             them with `parallax clean`"
        ),
        None => {
            for (first, count, more) in batches(keys) {
                let there = existing(client, first, count, more)?;
                ensure!(
                    there == 0,
                    "{there} of the keys key:{first} to key:{} were not made by `parallax prepare`, and are left as \
                     they are; use another database",
                    first + count - 1
                );
            }
            client.run(Task::Numbers { statement: SET_MARK, first: keys, count: 1 })?;
        }
    }
    let mut progress = Progress { found: 0, added: 0, all: keys };
    for (first, count, more) in batches(keys) {
        if existing(client, first, count, more)? == count {
            progress.found += count;
        } else {
            client.run(Task::Numbers { statement: SET + more, first, count })?;
            progress.added += count;
        }
        tell(progress);
    }
    Ok(Loaded { tables_made: 0, rows: progress, indexes_made: 0 })
}

/// How many keys [`prepare`] made; `None` if it made none. `client` has the [`parts`] of any number of keys.
///
/// # Errors
///
/// When the server refuses it.
pub fn marked<P: Protocol<Journey = Task>>(client: &mut Client<P>) -> anyhow::Result<Option<u64>> {
    let row = client.run(Task::Plain(READ_MARK))?;
    let Some(text) = row.into_iter().next().flatten() else { return Ok(None) };
    let keys = text.parse().ok().filter(|keys| *keys > 0);
    Ok(Some(keys.with_context(|| format!("{MARK} is not a number of keys; remove it"))?))
}

/// Removes the `keys` keys that [`prepare`] made. The statements of `client` are [`parts`] of that number.
///
/// # Errors
///
/// When the server refuses it.
pub fn clean<P: Protocol<Journey = Task>>(client: &mut Client<P>, keys: u64) -> anyhow::Result<()> {
    for (first, count, more) in batches(keys) {
        client.run(Task::Numbers { statement: REMOVE + more, first, count })?;
    }
    client.run(Task::Plain(REMOVE_MARK)).map(|_| ())
}

fn existing<P: Protocol<Journey = Task>>(
    client: &mut Client<P>,
    first: u64,
    count: u64,
    more: StatementIndex,
) -> anyhow::Result<u64> {
    let row = client.run(Task::Numbers { statement: EXIST + more, first, count })?;
    let number = row.into_iter().next().flatten().and_then(|text| text.parse().ok());
    number.context("the server does not say which keys it has")
}

#[cfg(test)]
mod tests {
    use super::*;
    use database::DatabaseKind;

    #[test]
    fn a_command_has_as_many_keys_as_its_batch() {
        let all = parts(2_500);
        let text = |at: StatementIndex| all[usize::from(at)].with_marks(DatabaseKind::Redis);
        assert_eq!(text(SET).matches("key:0 xxx").count(), 1_000);
        assert_eq!(text(EXIST + OF_REST).matches("key:0").count(), 500);
        assert_eq!(all[usize::from(REMOVE)].parameters(), 1_000);
        let last = batches(2_500).last();
        assert_eq!(last, Some((2_001, 500, OF_REST)));
        assert_eq!(parts(1_000).len(), 9);
    }
}
