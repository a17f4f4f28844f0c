//! The sums of some requests: counts, times, bytes, rows.

use record::observation::watch::{RowCounts, Times, Usage};
use record::{Compact, Rows, Served};
use watch::Summed;

/// Makes percentiles of times: where the sample is too small is not for this crate to decide.
pub type MakeTimes<'a> = &'a dyn Fn(&Compact) -> Times;

/// The sums of some requests.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    times: Compact,
    request_bytes: u64,
    response_bytes: u64,
    rows: Option<RowCounts>,
}

impl Tally {
    /// Adds one request.
    pub fn add(&mut self, served: &Served) {
        self.times.record(served.response());
        self.request_bytes = self.request_bytes.saturating_add(served.request_bytes);
        self.response_bytes = self.response_bytes.saturating_add(served.response_bytes);
        add_rows(&mut self.rows, served.rows);
    }

    /// The response times of the requests.
    pub fn times(&self) -> &Compact {
        &self.times
    }

    /// The sums in the record's form.
    pub fn usage(&self, times: MakeTimes<'_>) -> Usage {
        Usage {
            requests: self.times.count(),
            sum_ns: self.times.sum_ns(),
            times: times(&self.times),
            request_bytes: self.request_bytes,
            response_bytes: self.response_bytes,
            rows: self.rows,
        }
    }
}

impl Summed for Tally {
    fn weight(&self) -> u64 {
        self.times.sum_ns()
    }

    fn merge(&mut self, other: &Tally) {
        self.times.merge(&other.times);
        self.request_bytes = self.request_bytes.saturating_add(other.request_bytes);
        self.response_bytes = self.response_bytes.saturating_add(other.response_bytes);
        if let Some(other) = other.rows {
            let rows = self.rows.get_or_insert_default();
            rows.requests += other.requests;
            rows.sent = rows.sent.saturating_add(other.sent);
            rows.affected = rows.affected.saturating_add(other.affected);
        }
    }
}

/// Adds the rows of a request, if they are known.
pub fn add_rows(counts: &mut Option<RowCounts>, rows: Option<Rows>) {
    if let Some(rows) = rows {
        let counts = counts.get_or_insert_default();
        counts.requests += 1;
        counts.sent = counts.sent.saturating_add(rows.sent);
        counts.affected = counts.affected.saturating_add(rows.affected);
    }
}
