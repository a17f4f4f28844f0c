//! The options that select what a report of `watch` shows.

use findings::{SortBy, WatchQuery, Where};
use units::Nanos;

/// Which rows of a watch's tables are shown, and how.
#[derive(Debug, Clone, clap::Args)]
pub struct WatchQueryArgs {
    /// Maximum number of rows per table [default: 10; 12 preemptors, 5 individual slow requests].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Report")]
    top: Option<u32>,

    /// Order of statements and routes: total, count, mean, p99, max or rows [default: total].
    #[arg(long, value_name = "FIGURE", help_heading = "Report")]
    sort: Option<SortBy>,

    /// Show only statements and routes for which this holds: 'p99 > 5ms and count > 100'. The figures are count, rate,
    /// total, share, mean, p50, p95, p99, max, and rows and affected per request.
    #[arg(long = "where", value_name = "CONDITION", help_heading = "Report")]
    condition: Option<Where>,

    /// Draw histograms with bins of this width instead of powers of two: 40 at most, the last with all that is longer.
    #[arg(long, value_name = "TIME", help_heading = "Report")]
    bucket: Option<Nanos>,
}

impl WatchQueryArgs {
    /// The query.
    ///
    /// # Errors
    ///
    /// For bins without a width, in one line.
    pub fn query(&self) -> anyhow::Result<WatchQuery> {
        anyhow::ensure!(
            self.bucket != Some(Nanos::ZERO),
            "--bucket 0s has no width; write for example --bucket 500us"
        );
        Ok(WatchQuery {
            top: self.top.and_then(|top| usize::try_from(top).ok()),
            sort: self.sort.unwrap_or_default(),
            condition: self.condition.clone(),
            bucket: self.bucket,
        })
    }

    /// Whether one of these options was given.
    pub fn is_given(&self) -> bool {
        self.top.is_some() || self.sort.is_some() || self.condition.is_some() || self.bucket.is_some()
    }
}
