//! A view as Markdown, for a pull request, a ticket or the summary of a job.
//!
//! Text of a view can come from a stranger: what Markdown or HTML would read as markup is escaped. Drawings are code
//! blocks.

use std::io::{self, Write};

use findings::view::{Block, Cell, Outcome, Phrase, Piece, Role, Section, Table, Threshold, Value, View};

use crate::layout::section;
use crate::style::Style;

/// Drawings have this width: the lines of a code block do not wrap.
const WIDTH: usize = 100;

/// Writes a view that has no headline: the verdict, the conditions, then one section after another.
///
/// # Errors
///
/// When `out` fails.
pub fn markdown(view: &View, out: &mut dyn Write) -> io::Result<()> {
    if let Some(verdict) = &view.verdict {
        writeln!(out, "**{}**: {}", text(&verdict.head), text(&verdict.summary))?;
    }
    if !view.thresholds.is_empty() {
        writeln!(out, "\n| | fail if | measured | verdict |\n|---|---|---:|---|")?;
        view.thresholds.iter().try_for_each(|one| threshold(one, out))?;
    }
    for section in view.sections.iter().filter(|section| !section.detail) {
        section.blocks.iter().try_for_each(|block| self::block(view, block, out))?;
    }
    Ok(())
}

fn threshold(threshold: &Threshold, out: &mut dyn Write) -> io::Result<()> {
    let word = match threshold.result {
        Outcome::Missed => "FAIL",
        Outcome::Undecided => "NO DATA",
        Outcome::Met => "PASS",
    };
    let because = threshold.because.as_deref().unwrap_or_default();
    let fail_if = escaped(&threshold.fail_if);
    writeln!(out, "| {word} | {fail_if} | {} | {} |", cell(&threshold.measured), escaped(because))
}

fn block(view: &View, block: &Block, out: &mut dyn Write) -> io::Result<()> {
    match block {
        Block::Line(line) => {
            let label =
                if line.label.is_empty() { String::new() } else { format!("{}: ", escaped(&line.label)) };
            let words = text(&line.text);
            match line.role {
                Role::Title => writeln!(out, "\n### {label}{words}"),
                Role::Line | Role::Text => writeln!(out, "\n{label}{words}"),
                Role::Note => writeln!(out, "\n_{label}{words}_"),
                Role::Warning => writeln!(out, "\n**{label}{words}**"),
            }
        }
        Block::Advice(advice) => writeln!(out, "\n{}\n{}", text(&advice.finding), text(&advice.reason)),
        Block::Table(table) => self::table(table, out),
        drawing => {
            let drawn = Section::new("drawing", vec![drawing.clone()]);
            let style = Style { colour: false, unicode: true, width: WIDTH, details: false };
            writeln!(out, "\n```text")?;
            section(view.kind, &drawn, out, style)?;
            writeln!(out, "```")
        }
    }
}

/// Text on the left, figures on the right; the most important rows are bold.
fn table(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    let titles: Vec<String> = table.columns.iter().map(|column| escaped(&column.title)).collect();
    let sides = table.columns.iter().map(|column| if column.unit == "text" { "---" } else { "---:" });
    writeln!(out, "\n| {} |\n|{}|", titles.join(" | "), sides.collect::<Vec<_>>().join("|"))?;
    for row in &table.rows {
        let cells = row.cells.iter().map(|one| match cell(one) {
            text if row.key && !text.is_empty() => format!("**{text}**"),
            text => text,
        });
        writeln!(out, "| {} |", cells.collect::<Vec<_>>().join(" | "))?;
    }
    Ok(())
}

fn cell(cell: &Cell) -> String {
    match cell {
        Cell::Figure(Value::Text(text)) => escaped(text),
        cell => escaped(&cell.to_string()),
    }
}

fn text(phrase: &Phrase) -> String {
    let pieces = phrase.pieces().into_iter().map(|piece| match piece {
        Piece::Words(words) => escaped(words),
        Piece::Figure { cell: figure, .. } => cell(figure),
    });
    pieces.collect()
}

/// No character of `text` begins markup, and none is a control character.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in findings::escape_text(text).chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            '|' | '`' | '*' | '_' | '[' | ']' | '\\' | '#' | '~' | '!' | '@' => {
                escaped.push('\\');
                escaped.push(c);
            }
            _ => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use findings::view::{Row, Subject, Verdict, Word};

    use super::*;

    /// If this fails, the name of a directory runs as HTML or mentions a stranger in a pull request.
    #[test]
    fn a_view_is_markdown_and_its_text_is_only_text() {
        let mut view = View::new(Subject::Compare);
        view.verdict = Some(Verdict {
            word: Word::Valid,
            head: Phrase::new("worse"),
            summary: Phrase::new("response p95 of <b>|new_1 @all"),
            reasons: Vec::new(),
            not_made: Vec::new(),
        });
        view.thresholds = vec![Threshold {
            fail_if: "response.p95 worse".to_owned(),
            result: Outcome::Missed,
            measured: Value::RatioChange(0.1).into(),
            limit: Value::RatioChange(0.05),
            because: Some("worse".to_owned()),
        }];
        let columns = [("metric", "metric", "text", ""), ("arm", "a|b", "", "")];
        let rows = vec![Row::key(vec![Cell::from("p95"), Value::Ns(2_000_000).into()])];
        let blocks = vec![
            Block::Table(Table::new("comparison", &columns, rows)),
            Block::line(Role::Warning, Phrase::new("take turns")),
        ];
        view.sections.push(Section::new("figures", blocks));
        let mut out = Vec::new();
        markdown(&view, &mut out).unwrap();
        expect![[r#"
            **worse**: response p95 of &lt;b>\|new\_1 \@all

            | | fail if | measured | verdict |
            |---|---|---:|---|
            | FAIL | response.p95 worse | +10.0% | worse |

            | metric | a\|b |
            |---|---:|
            | **p95** | **2.00 ms** |

            **take turns**
        "#]]
        .assert_eq(&String::from_utf8(out).unwrap());
    }
}
