//! Scripts of pgbench: what each becomes, that it is a scenario, and what cannot be one.

use expect_test::{Expect, expect};

use super::compile;
use crate::pgbench::{PgbenchScript, scenario, variable, weighted};

const URL: &str = "postgres://app@127.0.0.1/bench";

fn script(text: &str) -> PgbenchScript {
    PgbenchScript { name: "script.sql".to_owned(), text: text.to_owned(), weight: 1 }
}

/// The journeys and variables of `text`, which has to be a scenario.
#[track_caller]
fn check(text: &str, wanted: &Expect) {
    let made = scenario(&[script(text)], URL, &[("scale".to_owned(), 3)], true).unwrap();
    compile(&made, &[], &[]).unwrap_or_else(|mistake| panic!("{mistake}\n{made}"));
    wanted.assert_eq(made.split_once("prepared = true\n").unwrap().1);
}

#[track_caller]
fn check_error(text: &str, wanted: &str) {
    let error = scenario(&[script(text)], URL, &[("scale".to_owned(), 3)], true).expect_err("an error");
    assert_eq!(error.to_string(), wanted);
}

#[test]
fn a_transaction_with_drawn_numbers() {
    check(
        "\\set aid random(1, 100000 * :scale)
-- from -5000 to 5000
\\set delta random(-5000, 5000)
\\set later :aid + 7
BEGIN;
UPDATE accounts SET balance = balance + :delta -- why
  WHERE aid = :aid; SELECT :later::int, ':x ; --', 12 AS \"a;b\";
\\sleep 250 us
END;
",
        &expect![[r#"

            # One value of each per transaction.
            [vars]
            aid = "{{random 1 300000}}"
            delta = "{{random 0 10000}}"

            [[journey]]
            name = "script.sql"
            weight = 1

            [[journey.step]]
            sql = "BEGIN"
            prepared = false

            [[journey.step]]
            sql = "UPDATE accounts SET balance = balance + {{delta|plus -5000}}    WHERE aid = {{aid}}"

            [[journey.step]]
            sql = """SELECT {{aid|plus 7}}::int, ':x ; --', 12 AS "a;b""""
            think = "250us"

            [[journey.step]]
            sql = "END"
            prepared = false
        "#]],
    );
}

/// If this fails, a variable that a script sets again has its first value everywhere, or two scripts share one.
#[test]
fn a_variable_that_is_set_again_is_another_one() {
    let text = "\\set k random_zipfian(1, 10, 1.1)\nSELECT :k;\n\\set k random_gaussian(-1, 10, 3)\nSELECT :k;\n\\set n random(1, 2)\nSELECT :n;";
    let other = |text: &str| PgbenchScript { name: "other".to_owned(), weight: 3, ..script(text) };
    let unfinished = other("\\set k random(1, 2)\nSELECT :k");
    let error = scenario(&[unfinished], URL, &[], true).unwrap_err();
    assert_eq!(error.to_string(), "other:2: the statement does not end with a semicolon");
    let made = scenario(&[script(text), other("\\set k random(1, 2)\nSELECT :k;")], URL, &[], false).unwrap();
    compile(&made, &[], &[]).unwrap();
    expect![[r#"
        [targets.db]
        url = "postgres://app@127.0.0.1/bench"

        [defaults]
        prepared = false

        # One value of each per transaction.
        [vars]
        k = "{{zipf 1 10 1.1}}"
        k_2 = "{{gaussian 0 11 3}}"
        n_2 = "{{random 1 2}}"
        k_3 = "{{random 1 2}}"

        [[journey]]
        name = "script.sql"
        weight = 1

        [[journey.step]]
        sql = "SELECT {{k}}"

        [[journey.step]]
        sql = "SELECT {{k_2|plus -1}}"

        [[journey.step]]
        sql = "SELECT {{n_2}}"

        [[journey]]
        name = "other"
        weight = 3

        [[journey.step]]
        sql = "SELECT {{k_3}}"
    "#]]
    .assert_eq(&made);
}

#[test]
fn weights_and_variables_are_those_of_pgbench() {
    assert_eq!(weighted("a@b.sql"), Ok(PgbenchScript { name: "a@b.sql".to_owned(), ..script("") }));
    assert_eq!(weighted("a.sql@9"), Ok(PgbenchScript { name: "a.sql".to_owned(), weight: 9, ..script("") }));
    assert!(weighted("a.sql@0").is_err() && variable("a").is_err() && variable("a=x").is_err());
    assert_eq!(variable("a=-3"), Ok(("a".to_owned(), -3)));
}

#[test]
fn texts_within_quotes_are_not_read() {
    let text = "SELECT $a$ ; :scale $a$, E'it\\'s ;', '{{n}}', ':scale', x[1:2] /* ; /* ; */ ; */ FROM t;";
    let made = scenario(&[script(text)], URL, &[("scale".to_owned(), 3)], true).unwrap();
    let sql = made.lines().find(|line| line.starts_with("sql")).unwrap();
    assert_eq!(sql, r#"sql = '''SELECT $a$ ; 3 $a$, E'it\'s ;', '\{{n}}', '3', x[1:2]   FROM t'''"#);
    compile(&made, &[], &[]).unwrap();
}

#[test]
fn what_cannot_be_converted_has_its_line() {
    for (text, wanted) in [
        ("SELECT 1;\n\\if 1", "script.sql:2: \\if cannot be converted; \\set and \\sleep can"),
        ("SELECT 1 \\gset", "script.sql:1: the statement does not end with a semicolon"),
        ("\\set a\nSELECT 1;", "script.sql:1: \\set takes a name and a value"),
        ("\\set a-b 1\n", "script.sql:1: `a-b` is no name of a variable"),
        ("SELECT :aid;", "script.sql:1: `:aid` has no value; give it by \\set or -D aid=NUMBER"),
        ("\\set a :b", "script.sql:1: `:b` has no value; give it by -D b=NUMBER"),
        ("\\set a random(5, 1)", "script.sql:1: there are no numbers from 5 to 1"),
        (
            "\\set a random(-9223372036854775807, 9223372036854775807)",
            "script.sql:1: there are no numbers from -9223372036854775807 to 9223372036854775807",
        ),
        ("\\set a random(1, 5", "script.sql:1: `)` is missing before ``"),
        ("\\set a random_zipfian(1, 5)", "script.sql:1: `,` is missing before `)`"),
        ("\\set a sqrt(2)", "script.sql:1: `sqrt` cannot be converted; random functions can"),
        ("\\set a 1 / 0", "script.sql:1: 1 / 0 has no value"),
        ("\\set a random(1, 2) * 2", "script.sql:1: only fixed whole numbers can be multiplied or divided"),
        ("\\set a 1 - random(1, 2)", "script.sql:1: a drawn number cannot be subtracted"),
        ("\\set a 9223372036854775807 + 1", "script.sql:1: 9223372036854775807 + 1 is too large"),
        ("\\set a 1 2", "script.sql:1: `2` is not understood"),
        (
            "\\set a random(1, 2)\nSELECT ':a';",
            "script.sql:2: `:a` within quotes has a different value in each transaction; write it outside the quotes, with ||",
        ),
        ("\\sleep 1", "script.sql:1: \\sleep before the first statement cannot be converted"),
        ("SELECT 1;\n\\sleep a ms", "script.sql:2: \\sleep takes a number, then us, ms or s"),
        ("SELECT 1;\n\\sleep 1 h", "script.sql:2: `h` is not us, ms or s"),
        ("-- nothing\n", "script.sql:1: the script has no statement"),
    ] {
        check_error(text, wanted);
    }
    check_error(&format!("\\set a {}1", "(".repeat(100_000)), "script.sql:1: too many parentheses");
}
