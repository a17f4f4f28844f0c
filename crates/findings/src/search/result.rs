//! The result of a search, from its probes. Pure.

use record::search::{Limit, ProbeOutcome, ProbeResult, SearchResult};
use stats::search::{Above, Search};

/// The result of `probes` together; at most `allowed` of them may be made.
pub fn result(search: &Search, probes: &[ProbeResult], allowed: usize) -> SearchResult {
    let result = search.result();
    let limit = match result.above {
        Above::Server => Limit::Server,
        Above::Client => Limit::Client,
        Above::Range => Limit::Range,
        Above::Untried => Limit::Unknown,
    };
    // The probes at that rate that decided the result.
    let says: &[ProbeOutcome] = if limit == Limit::Server {
        &[ProbeOutcome::Fails, ProbeOutcome::Unsettled]
    } else {
        &[ProbeOutcome::Client]
    };
    let at = |rate: f64| {
        let probes = probes.iter().filter(move |probe| probe.rate_per_s == Some(rate));
        probes.filter(|probe| says.contains(&probe.says)).map(|probe| probe.why.as_str()).next_back()
    };
    let why = result.fails.and_then(at).filter(|why| !why.is_empty());
    let reason = match (result.fails, why) {
        (Some(fails), Some(why)) if result.given_up && limit == Limit::Server => {
            format!("at {fails}/s {why}; {}", disturbance(probes))
        }
        _ if result.given_up => disturbance(probes),
        (Some(fails), Some(why)) => format!("at {fails}/s {why}"),
        _ if probes.last().is_some_and(|probe| probe.says == ProbeOutcome::Interrupted) => {
            "it was interrupted".to_owned()
        }
        (None, _) if result.holds.is_none() && probes.len() < allowed => {
            "too few requests succeeded at the first rate".to_owned()
        }
        _ if limit == Limit::Range => "it passed at the highest rate that --search-to allows".to_owned(),
        _ => "more probes are needed for a better result (--probes)".to_owned(),
    };
    SearchResult {
        holds_per_s: result.holds,
        fails_per_s: result.fails,
        confirmed: result.confirmed,
        limit,
        reason,
    }
}

/// Why the search was stopped: what disturbed the last probe.
fn disturbance(probes: &[ProbeResult]) -> String {
    let why = probes.last().map_or("", |probe| probe.why.as_str());
    format!("stopped: this host is too busy at any rate ({why}); stop other workloads, or use another host")
}

#[cfg(test)]
mod tests {
    use record::document::QuantileValue;
    use stats::search::Aim;

    use super::*;

    /// If this fails, a search that the user stopped blames its requests.
    #[test]
    fn an_interrupted_search_says_so() {
        let search = Search::new(Aim { from: 1.0, to: None, probes: 8, tolerance: 0.02 });
        assert_eq!(result(&search, &[], 8).reason, "too few requests succeeded at the first rate");
        let interrupted = ProbeResult {
            folder: String::new(),
            rate_per_s: Some(1.0),
            warmup_ns: 0,
            measured_ns: 0,
            sent_per_s: 0.0,
            ok_per_s: 0.0,
            error_share: 0.0,
            p50: QuantileValue::TooFew { needed: 1 },
            p99: QuantileValue::TooFew { needed: 1 },
            figures: Vec::new(),
            client_cpu_share: None,
            verdict: None,
            against_client: Vec::new(),
            says: ProbeOutcome::Interrupted,
            why: String::new(),
        };
        assert_eq!(result(&search, &[interrupted], 8).reason, "it was interrupted");
    }
}
