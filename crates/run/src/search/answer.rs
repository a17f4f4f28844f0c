//! The answer of a search, from its probes. Pure.

use record::search::{Limit, ProbeResult, Says, SearchAnswer};
use stats::search::{Above, Search};

/// What `probes` answer together; at most `allowed` of them may be made.
pub fn answer(search: &Search, probes: &[ProbeResult], allowed: usize) -> SearchAnswer {
    let answer = search.result();
    let limit = match answer.above {
        Above::Server => Limit::Server,
        Above::Client => Limit::Client,
        Above::Range => Limit::Range,
        Above::Untried => Limit::Unknown,
    };
    // Of the probes at that rate, those that decided it.
    let says: &[Says] =
        if limit == Limit::Server { &[Says::Fails, Says::Unsettled] } else { &[Says::Client] };
    let at = |rate: f64| {
        let probes = probes.iter().filter(move |probe| probe.rate_per_s == Some(rate));
        probes.filter(|probe| says.contains(&probe.says)).map(|probe| probe.why.as_str()).next_back()
    };
    let why = answer.fails.and_then(at).filter(|why| !why.is_empty());
    let reason = match (answer.fails, why) {
        (Some(fails), Some(why)) if answer.given_up && limit == Limit::Server => {
            format!("at {fails}/s {why}; {}", disturbance(probes))
        }
        _ if answer.given_up => disturbance(probes),
        (Some(fails), Some(why)) => format!("at {fails}/s {why}"),
        (None, _) if answer.holds.is_none() && probes.len() < allowed => {
            "too few requests succeeded at the first rate".to_owned()
        }
        _ if limit == Limit::Range => "it passed at the highest rate that --search-to allows".to_owned(),
        _ => "more probes are needed for a better result (--probes)".to_owned(),
    };
    SearchAnswer {
        holds_per_s: answer.holds,
        fails_per_s: answer.fails,
        confirmed: answer.confirmed,
        limit,
        reason,
    }
}

/// Why the search was given up: what the last probe met.
fn disturbance(probes: &[ProbeResult]) -> String {
    let why = probes.last().map_or("", |probe| probe.why.as_str());
    format!("stopped: this host is too busy at any rate ({why}); stop other workloads, or use another host")
}
