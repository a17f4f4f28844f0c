//! The line of one second, as it appears in a log during a run.

mod fixture;

use expect_test::expect;
use fixture::{failing, good, pool};
use record::Second;

#[test]
fn lines_for_logs_keep_their_columns() {
    let (good, failing, pool) = (good(), failing(), pool());
    let lines = [
        findings::second_line(&good.seconds[2], &good.document.load),
        findings::second_line(&failing.seconds[12], &failing.document.load),
        findings::second_line(&pool.seconds[2], &pool.document.load),
        findings::second_line(&pool.seconds[3], &pool.document.load),
        // The remainder of a run has counts and no rates.
        findings::second_line(
            &Second { length_ns: 300_000_000, ..good.seconds[2].clone() },
            &good.document.load,
        ),
    ];
    let text = format!("a log\n{}\n", lines.join("\n"));
    expect![[r#"
        a log
           3s  ok    1000/s of 1000/s     p50 1.09 ms  p99 2.85 ms  failed 0  open 0
          13s  ok     487/s of 500/s      p50 5.53 ms  p99 7.00 ms  failed 13  open 0
           3s  ok       0/s  p50 none     max none     failed 0  open 4
           4s  ok       2/s  p50 4.00 s   max 4.00 s   failed 0  open 4
           3s  ok      1000 of 1000       p50 1.09 ms  p99 2.85 ms  failed 0  open 0
    "#]]
    .assert_eq(&text);
}
