//! The conditions of a view as JUnit XML, which continuous integration shows as tests.
//!
//! One test case per condition; a view without conditions has one that passes. What is undecided is an error, not a
//! skipped test: it is not known to be met. The schema is that of Jenkins' xunit plugin (junit-10.xsd).

use std::io::{self, Write};

use findings::view::{Outcome, Threshold, View};

/// Writes the conditions of `view`.
///
/// # Errors
///
/// When `out` fails.
pub fn junit(view: &View, out: &mut dyn Write) -> io::Result<()> {
    let count = |result| view.thresholds.iter().filter(|one| one.result == result).count();
    let (failures, errors) = (count(Outcome::Missed), count(Outcome::Undecided));
    let tests = view.thresholds.len().max(1);
    let name = escaped(&format!("parallax {}", view.kind.name()));
    let sentence = view.verdict.as_ref().map(|verdict| format!("{}: {}", verdict.head, verdict.summary));
    let sentence = escaped(&sentence.unwrap_or_default());
    writeln!(out, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
    writeln!(out, "<testsuites>")?;
    writeln!(
        out,
        r#"  <testsuite name="{name}" tests="{tests}" failures="{failures}" errors="{errors}" skipped="0">"#
    )?;
    if view.thresholds.is_empty() {
        writeln!(out, r#"    <testcase classname="{name}" name="{}"/>"#, escaped(view.kind.name()))?;
    }
    view.thresholds.iter().try_for_each(|threshold| case(&name, threshold, &sentence, out))?;
    writeln!(out, "    <system-out>{sentence}</system-out>")?;
    writeln!(out, "  </testsuite>\n</testsuites>")
}

fn case(class: &str, threshold: &Threshold, sentence: &str, out: &mut dyn Write) -> io::Result<()> {
    let begin = format!(r#"    <testcase classname="{class}" name="{}""#, escaped(&threshold.fail_if));
    let because = escaped(threshold.because.as_deref().unwrap_or_default());
    let measured = escaped(&threshold.measured.to_string());
    let (element, message) = match threshold.result {
        Outcome::Met => return writeln!(out, "{begin}/>"),
        Outcome::Missed => ("failure", format!("{measured}; {because}")),
        Outcome::Undecided => ("error", format!("NO DATA: {because}")),
    };
    writeln!(out, r#"{begin}><{element} message="{message}">{sentence}</{element}></testcase>"#)
}

/// Text in XML; control characters, which XML forbids, are shown as escapes.
fn escaped(text: &str) -> String {
    let text = findings::escape_text(text);
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use findings::view::{Cell, Phrase, Subject, Value, Verdict, Word};

    use super::*;

    fn threshold(result: Outcome, because: &str) -> Threshold {
        Threshold {
            fail_if: "p99 worse".to_owned(),
            result,
            measured: if result == Outcome::Undecided {
                Cell::absent()
            } else {
                Value::RatioChange(0.1).into()
            },
            limit: Value::RatioChange(0.1),
            because: Some(because.to_owned()),
        }
    }

    fn written(thresholds: Vec<Threshold>) -> String {
        let mut view = View::new(Subject::Compare);
        view.verdict = Some(Verdict {
            word: Word::Valid,
            head: Phrase::new("worse"),
            summary: Phrase::new("p99 of <\"new\"&>"),
            reasons: Vec::new(),
            not_made: Vec::new(),
        });
        view.thresholds = thresholds;
        let mut out = Vec::new();
        junit(&view, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// If this fails, a condition without data passes in a pipeline.
    #[test]
    fn a_condition_is_a_test_case() {
        let text = written(vec![
            threshold(Outcome::Missed, "worse"),
            threshold(Outcome::Undecided, "a verdict needs 6 records per arm"),
            threshold(Outcome::Met, "same within 10 %"),
        ]);
        expect![[r#"
            <?xml version="1.0" encoding="UTF-8"?>
            <testsuites>
              <testsuite name="parallax compare" tests="3" failures="1" errors="1" skipped="0">
                <testcase classname="parallax compare" name="p99 worse"><failure message="+10.0%; worse">worse: p99 of &lt;&quot;new&quot;&amp;&gt;</failure></testcase>
                <testcase classname="parallax compare" name="p99 worse"><error message="NO DATA: a verdict needs 6 records per arm">worse: p99 of &lt;&quot;new&quot;&amp;&gt;</error></testcase>
                <testcase classname="parallax compare" name="p99 worse"/>
                <system-out>worse: p99 of &lt;&quot;new&quot;&amp;&gt;</system-out>
              </testsuite>
            </testsuites>
        "#]]
        .assert_eq(&text);
        assert!(written(Vec::new()).contains(r#"tests="1" failures="0" errors="0""#));
    }
}
