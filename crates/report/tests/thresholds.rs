//! Thresholds as people see them.

mod fixture;

use expect_test::expect;
use findings::{Condition, Figures};
use fixture::good;
use report::Style;
use units::Nanos;

#[test]
fn thresholds_stand_beneath_the_verdict_the_missed_ones_first() {
    let mut run = good();
    let results = run.document.results.clone().unwrap();
    let figures = Figures { total: &run.total, results: &results, window: Nanos::from_secs(30) };
    let conditions = ["error_share > 1%", "tls.p50 > 1ms", "response.p99 > 20ms"];
    let conditions = conditions.map(|text| text.parse::<Condition>().unwrap());
    run.document.thresholds = conditions.iter().map(|condition| condition.threshold(&figures)).collect();
    let text = run.text(Style::PLAIN);
    let lines = text.lines().skip_while(|line| !line.starts_with("thresholds"));
    let head: String = lines.take(4).map(|line| format!("{line}\n")).collect();
    let expected = expect![[r#"
        thresholds: 2 of 3 missed
          missed      fail if response.p99 > 20ms: 21.3 ms
          cannot tell fail if tls.p50 > 1ms: no figure; tls is absent: no TLS
          met         fail if error_share > 1%: 0 %
    "#]];
    expected.assert_eq(&head);
}
