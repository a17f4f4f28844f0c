//! The release binary, run as a user runs it, against servers and tools of other projects.
//!
//! What the binary reports about a run is compared with the other side: nginx's access log, the bodies that it serves,
//! the Python reader of histogram logs. Every run that [`support::run`] makes is also checked for what must hold in
//! every record. Tests that need a planted truth, such as a known freeze, belong to the package `calibration`.
//!
//! nginx, nghttpd, Node and Python come with `scripts/setup test`. The first run fetches httpbin; later ones need no network.

#![expect(clippy::unwrap_used, reason = "all of this is test code: a panic is the test failing")]

mod accounts;
mod bodies;
mod comparisons;
mod databases;
mod datasets;
mod demo;
mod disk;
mod exporting;
mod failures;
mod histograms;
mod http2;
mod httpbin;
mod interrupts;
mod kills;
mod labs;
mod live;
mod outputs;
mod postgres;
mod preparing;
mod records;
mod redis;
mod requests;
mod responses;
mod scenarios;
mod schemas;
mod secure;
mod specs;
mod strangers;
mod support;
mod targets;
mod trials;
mod usage;
