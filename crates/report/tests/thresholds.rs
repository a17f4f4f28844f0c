//! Thresholds in reports.

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
    let subject = run.document.subject.clone();
    let window = Nanos::from_secs(30);
    let figures = Figures { total: &run.total, results: &results, subject: &subject, window };
    let conditions = ["error_share > 1%", "tls.p50 > 1ms", "response.p99 > 20ms"];
    let conditions = conditions.map(|text| text.parse::<Condition>().unwrap());
    run.document.thresholds = conditions.iter().map(|condition| condition.threshold(&figures)).collect();
    let text = run.text(Style::PLAIN);
    let lines = text.lines().skip_while(|line| !line.contains("thresholds"));
    let head: String = lines.take(4).map(|line| format!("{line}\n")).collect();
    let expected = expect![[r#"
        1 of 3 thresholds FAILED, 1 NO DATA
          FAIL      response.p99 21.3 ms (fail if > 20ms)
          NO DATA   tls.p50 no figure (fail if > 1ms); tls is absent: no TLS
          PASS      error_share 0 % (fail if > 1%)
    "#]];
    expected.assert_eq(&head);
}
