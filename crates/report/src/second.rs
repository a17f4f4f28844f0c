//! One plain line a second, for pipes and logs.

use record::Second;
use record::document::{Load, Model};
use units::Nanos;

use units::{count, rate};

/// `   3s  ok     998/s of 1000/s   p50 1.02 ms  p99 1.31 ms  failed 0  open 2`.
///
/// `of` is what became due in an open loop, `open` what was outstanding at the end. At most 80 columns as long as
/// the counts have no more than three digits each.
/// The quantiles are those of this second alone, of the sample itself; the report merges the histograms. A second
/// of too few requests for a p99 tells its `max` instead.
pub fn second_line(second: &Second, load: &Load) -> String {
    let per_s = |count: u64| {
        if second.length_ns == 0 { 0.0 } else { count as f64 * 1e9 / second.length_ns as f64 }
    };
    let ends = (second.start_ns + second.length_ns).div_ceil(1_000_000_000);
    let asked = match load.model {
        Model::Open => format!(" of {:<9}", rate(per_s(second.scheduled))),
        Model::Closed => String::new(),
    };
    let quantile = |ns: Option<u64>| ns.map_or_else(|| "none".to_owned(), |ns| Nanos(ns).to_string());
    let (high_name, high) = if second.ok >= FEWEST_FOR_P99 {
        ("p99", second.response_ns.map(|response| response.p99))
    } else {
        ("max", second.response_ns.map(|response| response.max))
    };
    format!(
        "{ends:>4}s  ok {:>9}{asked}  p50 {:<7}  {high_name} {:<7}  failed {}  open {}",
        rate(per_s(second.ok)),
        quantile(second.response_ns.map(|response| response.p50)),
        quantile(high),
        count(second.failed),
        count(second.outstanding),
    )
}

/// The fewest requests whose p99 has a finite 95 % interval, as in the report.
const FEWEST_FOR_P99: u64 = 368;
