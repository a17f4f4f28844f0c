//! Tables of statements and their digests.

use proptest::prelude::*;

use super::*;

fn digest(dialect: Dialect, text: &str, cut: bool) -> String {
    let mut out = Vec::new();
    normalise(dialect, text.as_bytes(), cut, 256, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

#[track_caller]
fn both(text: &str, want: &str) {
    assert_eq!(digest(Dialect::Postgres, text, false), want, "postgres: {text}");
    assert_eq!(digest(Dialect::MySql, text, false), want, "mysql: {text}");
}

#[track_caller]
fn postgres(text: &str, want: &str) {
    assert_eq!(digest(Dialect::Postgres, text, false), want, "{text}");
}

#[track_caller]
fn mysql(text: &str, want: &str) {
    assert_eq!(digest(Dialect::MySql, text, false), want, "{text}");
}

#[test]
fn literals_become_question_marks() {
    both("SELECT 1", "select ?");
    both("select * from t where a = 'x' and b=-1.5e-3", "select * from t where a = ? and b = ?");
    both("select 'it''s'  ,  0xFF, .5, 1.", "select ?, ?, ?, ?");
    both("select a-1, a - -1, (-1), 5-3", "select a - ?, a - ?, (?), ? - ?");
    both("select x'1F', b'01', N'n'", "select ?, ?, ?");
    both(
        "update t set a = NULL where b is null and c is not NULL",
        "update t set a = ? where b is null and c is not null",
    );
    both("select t1.c2 from t1 where t1.c2=7", "select t1.c2 from t1 where t1.c2 = ?");
}

#[test]
fn quoting_is_that_of_the_dialect() {
    mysql(r#"select "it\"s", 'a\'b', `My Col` from T"#, "select ?, ?, `My Col` from t");
    mysql("select _utf8mb4'x', @@Version, @a := ?", "select ?, @@version, @a := ?");
    mysql("select a from t where b=? and c>?", "select a from t where b = ? and c > ?");
    postgres("select a from t where b ?| c and d=$1", "select a from t where b ?| c and d = ?");
    postgres(r#"select "My Col", 'a\', E'a\'b' from T"#, r#"select "My Col", ?, ? from t"#);
    postgres("select $1, $2::int, $$it's$$, $x$ $$ $x$", "select ?, ?::int, ?, ?");
    postgres("select U&'d\\0061t'", "select ?");
    postgres("select a[1], b ->> 'k', c::text[]", "select a[?], b ->> ?, c::text[]");
}

#[test]
fn comments_are_removed() {
    both("select /* c */ 1 -- end\n + 2", "select ? + ?");
    both("/* app=x */ select 1", "select ?");
    postgres("select /* a /* nested */ b */ 1", "select ?");
    postgres("select 5--1\n", "select ?");
    mysql("select 5--1", "select ? - ?");
    mysql("select 1 # c\n, 2", "select ?, ?");
    mysql("/*!40101 SET NAMES utf8 */", "set names utf8");
    mysql("select /*M!100100 straight_join */ 1", "select straight_join ?");
    both("select 1 /* open", "select ?");
}

#[test]
fn lists_and_rows_collapse() {
    both("select a from t where b in (1, 2,3)", "select a from t where b in (?+)");
    both("select a from t where b IN(1) and c in ('x')", "select a from t where b in (?+) and c in (?+)");
    both("select a from t where b in (select 1)", "select a from t where b in (select ?)");
    both("insert into t (a, b) values (1, 'x'), (2, 'y'),(3,NULL)", "insert into t(a, b) values (?+)");
    both("insert into t values (1, now()), (2, now())", "insert into t values (?, now())");
    both("insert into t values (1, now()), (2, 3)", "insert into t values (?, now()), (?+)");
    both(
        "insert into t values (1),(2) on duplicate key update a = values(a)",
        "insert into t values (?+) on duplicate key update a = values (a)",
    );
}

#[test]
fn spacing_and_case_are_normalised() {
    both("SELECT   COUNT( * )\n\tFROM  T ;", "select count(*) from t");
    both("select count (*) from t", "select count(*) from t");
    both("begin; select 1;", "begin; select ?");
    both("select a,b from c where(a=b)", "select a, b from c where (a = b)");
    both("", "");
    both(" ; ;", "");
}

#[test]
fn a_cut_statement_drops_the_list_that_its_values_cut() {
    let values = |text| digest(Dialect::MySql, text, true);
    assert_eq!(values("insert into t values (1, 'x'), (2, 'yyyy"), "insert into t values (?+)…");
    assert_eq!(values("insert into t values (1, 'x'), (22, 'y'),"), "insert into t values (?+)…");
    assert_eq!(values("select a from t where b in (1, 2"), "select a from t where b in …");
    assert_eq!(values("select a from t where b = 'xx"), "select a from t where b = ?…");
}

#[test]
fn a_digest_is_bounded() {
    let long = format!("select {}", "abcdefgh, ".repeat(1_000));
    let text = digest(Dialect::MySql, &long, false);
    assert!(text.len() == 256 + CUT_MARK.len() && text.ends_with('…'));
}

fn literal() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<u32>().prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|x| format!("{:e}", x.abs())),
        "[a-z ,()-]{0,12}".prop_map(|text| format!("'{text}'")),
        Just("NULL".to_owned()),
    ]
}

proptest! {
    /// If this fails, one statement has many rows in the table.
    #[test]
    fn values_and_spacing_change_no_digest(a in literal(), b in literal(), space in "[ \n\t]{1,3}") {
        let make = |a: &str, b: &str, s: &str| format!(
            "SELECT{s}x,{s}y FROM t WHERE a ={s}{a} AND b in{s}({a},{b}) OR f({b}){s}");
        for dialect in [Dialect::Postgres, Dialect::MySql] {
            prop_assert_eq!(
                digest(dialect, &make(&a, &b, &space), false),
                "select x, y from t where a = ? and b in (?+) or f(?)"
            );
        }
    }

    #[test]
    fn any_bytes_give_a_bounded_text(text in proptest::collection::vec(any::<u8>(), 0..300), cut in any::<bool>()) {
        for dialect in [Dialect::Postgres, Dialect::MySql] {
            let mut out = Vec::new();
            normalise(dialect, &text, cut, 64, &mut out);
            prop_assert!(out.len() <= 64 + CUT_MARK.len());
        }
    }

    #[test]
    fn any_sql_like_text_gives_a_bounded_text(text in "[-a-eEuUxX0-9'\"`$(),;.:*/!#& \\\\\n?=]{0,80}", cut in any::<bool>()) {
        for dialect in [Dialect::Postgres, Dialect::MySql] {
            let mut out = Vec::new();
            normalise(dialect, text.as_bytes(), cut, 64, &mut out);
            prop_assert!(out.len() <= 64 + CUT_MARK.len());
        }
    }
}
