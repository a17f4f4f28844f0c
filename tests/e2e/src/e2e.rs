//! The release binary, run as a user runs it, against servers and tools that nobody here wrote.
//!
//! What the binary says of a run is held against what the other side says: nginx's access log, the bodies that it
//! serves, the Python reader of histogram logs. Every run that [`support::run`] makes is also held against the laws
//! of the record. What needs a planted truth, such as a known freeze, belongs to the package `calibration`.
//!
//! nginx, nghttpd, Node and Python come with `scripts/setup test`. The first run fetches httpbin; later ones need no network.

#![expect(clippy::unwrap_used, reason = "all of this is test code: a panic is the test failing")]

mod answers;
mod bodies;
mod demo;
mod disk;
mod failures;
mod histograms;
mod http2;
mod httpbin;
mod interrupts;
mod kills;
mod live;
mod records;
mod requests;
mod scenarios;
mod schemas;
mod secure;
mod support;
mod targets;
mod telling;
mod usage;
