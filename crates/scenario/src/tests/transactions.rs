//! Scenarios of databases: statements, their values, what follows a response, and mistakes.

use codec::{ConnectionUse, Next};
use database::DatabaseKind;
use database::sql::{After, Ask, Column, Keep, Parameters, Rows, Script, Value};
use expect_test::{Expect, expect};

use super::compile;
use crate::{Scenario, Transaction};

const TARGET: &str = "[targets.db]\nurl = \"mysql://app@127.0.0.1/shop\"\n";

fn scenario(text: &str) -> Scenario {
    compile(&format!("{TARGET}{text}"), &[], &[]).unwrap_or_else(|mistake| panic!("{mistake}"))
}

#[track_caller]
fn check_mistake(text: &str, wanted: &Expect) {
    let mistake = compile(&format!("{TARGET}{text}"), &[], &[]).expect_err("a mistake").to_string();
    wanted.assert_eq(&mistake);
}

/// The text of the current statement with its values.
fn sent(scenario: &Scenario, transaction: &Transaction) -> (String, Ask) {
    let mut parameters = Parameters::default();
    let ask = scenario.ask(transaction, &mut parameters);
    let statement = &scenario.statements()[usize::from(ask.statement)];
    assert_eq!(statement.parameters(), parameters.len());
    let values: Vec<String> = parameters
        .values()
        .map(|value| match value {
            Value::Null => "NULL".to_owned(),
            Value::Integer(number) => number.to_string(),
            Value::Text(text) => format!("'{text}'"),
        })
        .collect();
    (format!("{} <- {}", statement.with_marks(DatabaseKind::MySql), values.join(", ")), ask)
}

/// All statements of unit `n`, each answered with `rows`.
fn all(scenario: &Scenario, n: u64, rows: &Rows) -> Vec<String> {
    let (mut transaction, mut texts) = (scenario.begin(n), Vec::new());
    loop {
        let (text, ask) = sent(scenario, &transaction);
        texts.push(text);
        let taken = match ask.keep {
            Keep::Nothing => None,
            Keep::Counts | Keep::FirstRow => Some(scenario.take(ask.step, rows).unwrap()),
        };
        match scenario.advance(transaction, After::Good(taken)) {
            Next::End => return texts,
            Next::Then { journey, .. } | Next::Retry { journey, .. } => transaction = journey,
        }
    }
}

fn one_row() -> Rows {
    let columns = vec![
        Column { name: "id".into(), is_integer: true },
        Column { name: "name".into(), is_integer: false },
    ];
    Rows { count: 1, affected: 1, columns, first: vec![Some("42".into()), Some("ann's".into())] }
}

const ORDER: &str = r#"
[vars]
shop = "{{random 1 3}}"
[[journey]]
name = "order"
retries = 2
[[journey.step]]
sql = "BEGIN"
prepared = false
[[journey.step]]
name = "find"
sql = "SELECT id, name FROM shop{{shop|name}} WHERE id BETWEEN {{shop}} AND {{shop|plus 99}}"
expect = { rows = 1, columns = { id = 42, name = { matches = "^a" } } }
capture = { customer = "id", name = { column = "name" } }
[[journey.step]]
name = "buy"
repeat = 2
sql = "INSERT INTO orders VALUES ({{random 1 1000000000}}, {{customer}}, {{customer|int}}, {{name}}, {{n}}, {{shop}});"
expect.affected = "1.."
[[journey.step]]
sql = "COMMIT"
"#;

/// If this fails, values are not those of their transaction, or each repetition has the same ones.
#[test]
fn each_placeholder_is_a_parameter() {
    let scenario = scenario(ORDER);
    let texts = all(&scenario, 5, &one_row());
    assert_eq!(texts.len(), 5);
    let shop = texts[1].rsplit("<- ").next().unwrap().split(", ").next().unwrap();
    let number: u64 = shop.parse().unwrap();
    assert_eq!(
        texts[1],
        format!("SELECT id, name FROM shop{shop} WHERE id BETWEEN ? AND ? <- {shop}, {}", number + 99)
    );
    let drawn: Vec<&str> = texts[2..4]
        .iter()
        .map(|text| {
            let values = text.strip_prefix("INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?) <- ").unwrap();
            let (drawn, rest) = values.split_once(", ").unwrap();
            assert_eq!(rest, format!("'42', 42, 'ann's', 5, {shop}"));
            drawn
        })
        .collect();
    assert_ne!(drawn[0], drawn[1]);
    // Each of three shops has its own statement; ROLLBACK comes after all others.
    assert_eq!(scenario.statements().len(), 1 + 3 + 1 + 1 + 1);
    let kinds: Vec<String> = scenario.kinds_named().into_iter().map(|kind| kind.name).collect();
    assert_eq!(
        kinds,
        ["order: BEGIN", "order: find", "order: buy", "order: COMMIT", "rollback before a retry"]
    );
    let route = scenario.route(&scenario.begin(0));
    assert_eq!((route.connection, route.journey), (ConnectionUse::Leased, Some(0)));
}

#[test]
fn a_transaction_is_tried_again_from_its_beginning() {
    let scenario = scenario(ORDER);
    let second = |after| match scenario.advance(scenario.begin(0), after) {
        Next::Then { journey, .. } | Next::Retry { journey, .. } => journey,
        Next::End => panic!("it ends"),
    };
    // After a deadlock the server has rolled back; after a lock wait timeout it has not.
    let again = second(After::Retryable { has_ended: true });
    assert_eq!(sent(&scenario, &again).0, "BEGIN <- ");
    let undoes = second(After::Retryable { has_ended: false });
    assert_eq!(sent(&scenario, &undoes).0, "ROLLBACK <- ");
    assert_eq!(scenario.route(&undoes).kind, 4);
    let Next::Then { journey, .. } = scenario.advance(undoes, After::Good(None)) else { panic!("it ends") };
    assert_eq!(sent(&scenario, &journey).0, "BEGIN <- ");
    // Two retries, and no more.
    let Next::Retry { journey, .. } = scenario.advance(journey, After::Retryable { has_ended: true }) else {
        panic!("it ends")
    };
    assert!(matches!(scenario.advance(journey, After::Retryable { has_ended: true }), Next::End));
    for after in [After::Failed, After::Unanswered] {
        assert!(matches!(scenario.advance(scenario.begin(0), after), Next::End));
    }
}

#[test]
fn a_row_that_is_not_as_expected_fails_its_check() {
    let scenario = scenario(ORDER);
    let failed = |rows: Rows| {
        let failed = scenario.take(1, &rows).unwrap_err();
        format!("{} / {}", failed.check, failed.got)
    };
    assert_eq!(failed(Rows { count: 2, ..one_row() }), "rows: expected 1 / 2");
    let other = |at: usize, value: Option<&str>| {
        let mut rows = one_row();
        rows.first[at] = value.map(str::to_owned);
        rows
    };
    assert_eq!(failed(other(0, Some("7"))), "column id: expected 42 / id: 7");
    assert_eq!(failed(other(1, None)), "column name: expected to match `^a` / NULL");
    let none = scenario.take(2, &Rows { affected: 0, ..one_row() }).unwrap_err();
    assert_eq!((none.check.as_str(), none.got.as_str()), ("affected: expected 1 or more", "0"));
}

#[test]
fn a_preview_shows_statements_with_their_values() {
    let scenario = scenario("[[request]]\nsql = \"SELECT {{n}}, {{random 5 5}}\"\nrepeat = 4");
    expect![[r#"
        # 0: SELECT ?, ?
        SELECT 0, 5;
        # 0: SELECT ?, ?
        SELECT 0, 5;
        # 0: SELECT ?, ?
        SELECT 0, 5;
        # … 4 times

    "#]]
    .assert_eq(&scenario.preview(1, &|line| line.to_owned()));
}

#[test]
fn mistakes_have_a_place_and_a_cure() {
    check_mistake(
        "[[request]]\npath = \"/\"",
        &expect!["s.toml:4:8: this is for HTTP; a database has sql, expect.rows and expect.columns"],
    );
    check_mistake(
        "[[request]]\nname = \"a\"",
        &expect![[r#"s.toml:3:1: no statement; add for example sql = "SELECT 1""#]],
    );
    check_mistake(
        "[[request]]\nsql = \"SELECT 1\"\nexpect.rows = \"many\"",
        &expect![[r#"s.toml:5:15: `many` is not a number of rows; write 1, "1..10" or "1..""#]],
    );
    check_mistake(
        "[[request]]\nsql = \"SELECT {{random 1 9000|name}}\"",
        &expect!["s.toml:4:17: this stands for more than 1000 statements; use fewer"],
    );
    check_mistake(
        "[[request]]\nsql = \"SELECT {{n|upper}}\"",
        &expect!["s.toml:4:17: `upper` is not a filter here; filters are int, plus N and name"],
    );
    check_mistake(
        "[targets.web]\nurl = \"http://h/\"\n[[request]]\ntarget = \"db\"\nsql = \"SELECT 1\"",
        &expect![
            "s.toml:3:1: a scenario speaks one protocol with all its servers; write a scenario for each"
        ],
    );
    let web = "[targets.web]\nurl = \"http://h/\"\n[[request]]\npath = \"/\"\nsql = \"SELECT 1\"";
    let mistake = compile(web, &[], &[]).unwrap_err().to_string();
    assert_eq!(
        mistake,
        "s.toml:5:7: this is for a database, whose url begins with mysql://, postgres:// or redis://"
    );
}
