//! Whether anything is left to search for after the first probe. Pure.

use record::Outcome;
use record::document::Results;
use units::percent;

/// From this share of failed responses on, nearly all of them fail: the requests are wrong, not the rate.
const NEARLY_ALL: f64 = 0.9;

/// Statuses with which a server refuses load: at a lower rate it may respond otherwise.
const OF_LOAD: [&str; 2] = ["429", "503"];

/// Why no rate can hold, with the status, if nearly every response failed because of what was requested and not because
/// of the rate.
pub fn nearly_all_failed(results: &Results) -> Option<String> {
    let count = |outcome: Outcome| -> u64 {
        let rows = results.outcomes.iter().filter(|row| row.outcome == outcome.name());
        rows.map(|row| row.count).sum()
    };
    let [ok, errors, unexpected] = [Outcome::Ok, Outcome::AppError, Outcome::CheckFailed].map(count);
    let (failed, responses) = (errors + unexpected, ok + errors + unexpected);
    if failed == 0 || (failed as f64) < responses as f64 * NEARLY_ALL {
        return None;
    }
    let statuses = results.codes.iter().map(|row| (row.count, row.code.to_string()));
    let texts = results.text_codes.iter().map(|row| (row.count, row.code.clone()));
    let code = statuses.chain(texts).max_by_key(|(count, _)| *count).map(|(_, code)| code);
    if ok > 0 && code.as_deref().is_some_and(|code| OF_LOAD.contains(&code)) {
        return None;
    }
    let check = || {
        let mut reasons = results.reasons.iter().filter(|row| row.outcome == Outcome::CheckFailed.name());
        reasons.next().map(|row| format!("failed check {}", row.reason))
    };
    let what = match code {
        Some(code) if errors >= unexpected => format!("status {code}"),
        code => check().or(code.map(|code| format!("status {code}"))).unwrap_or("a failed check".to_owned()),
    };
    Some(format!(
        "{} of responses failed, most with {what}: no rate can hold; send a single request (-n 1) and correct it first",
        percent(failed as f64 / responses as f64)
    ))
}

#[cfg(test)]
mod tests {
    use record::document::{CodeCount, OutcomeCount, ReasonCount, TextCodeCount};

    use super::*;

    fn results(ok: u64, failed: (Outcome, u64), code: &str) -> Results {
        let golden = include_str!("../../../../formats/golden/run/run.json");
        let golden: record::document::Document = serde_json::from_str(golden).unwrap();
        let mut results = golden.results.unwrap();
        let row = |outcome: Outcome, count| OutcomeCount {
            outcome: outcome.name().to_owned(),
            phase: None,
            blame: None,
            count,
        };
        results.outcomes = vec![row(Outcome::Ok, ok), row(failed.0, failed.1)];
        results.codes = code.parse().map(|code| CodeCount { code, count: failed.1 }).into_iter().collect();
        let is_text = results.codes.is_empty();
        results.text_codes =
            is_text.then(|| TextCodeCount { code: code.to_owned(), count: failed.1 }).into_iter().collect();
        results.reasons = vec![ReasonCount {
            outcome: "check_failed".to_owned(),
            reason: "body-contains".to_owned(),
            count: 1,
        }];
        results
    }

    /// If this fails, a search makes a dozen probes of a page that does not exist, or gives up on a server that only
    /// refuses excess load.
    #[test]
    fn only_a_first_probe_of_wrong_requests_ends_the_search() {
        for (ok, failed, code, ends) in [
            (0, (Outcome::AppError, 100), "404", Some("100 % of responses failed, most with status 404")),
            (10, (Outcome::AppError, 90), "401", Some("90.0 % of responses failed, most with status 401")),
            (11, (Outcome::AppError, 89), "401", None),
            (1, (Outcome::AppError, 999), "503", None),
            (0, (Outcome::AppError, 999), "503", Some("status 503")),
            (0, (Outcome::AppError, 9), "42P01", Some("status 42P01")),
            (0, (Outcome::CheckFailed, 9), "200", Some("most with failed check body-contains")),
            (0, (Outcome::ConnectRefused, 9), "", None),
            (100, (Outcome::AppError, 0), "200", None),
        ] {
            let found = nearly_all_failed(&results(ok, failed, code));
            match ends {
                Some(says) => {
                    assert!(found.as_ref().is_some_and(|why| why.contains(says)), "{code}: {found:?}")
                }
                None => assert_eq!(found, None, "{code}"),
            }
        }
    }
}
