//! One plain line a second, for pipes and logs.

use record::Second;
use record::document::{Load, Model};
use units::Nanos;

use crate::style::{count, rate};

/// `  3s  asked 1000/s  ok 998/s  p50 1.02 ms  p99 1.31 ms  failed 0  outstanding 2`.
///
/// The quantiles are those of this second alone, of the sample itself; the report merges the histograms.
pub fn second_line(second: &Second, load: &Load) -> String {
    let per_s = |count: u64| {
        if second.length_ns == 0 { 0.0 } else { count as f64 * 1e9 / second.length_ns as f64 }
    };
    let ends = (second.start_ns + second.length_ns).div_ceil(1_000_000_000);
    let asked = match load.model {
        Model::Open => format!("  asked {:<9}", rate(per_s(second.scheduled))),
        Model::Closed => String::new(),
    };
    let quantile = |ns: Option<u64>| ns.map_or_else(|| "none".to_owned(), |ns| Nanos(ns).to_string());
    format!(
        "{ends:>4}s{asked}  ok {:<9}  p50 {:<8} p99 {:<8} failed {}  outstanding {}",
        rate(per_s(second.ok)),
        quantile(second.response_ns.map(|response| response.p50)),
        quantile(second.response_ns.map(|response| response.p99)),
        count(second.failed),
        count(second.outstanding),
    )
}
