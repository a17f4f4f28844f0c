//! The instrument compared with planted truth: `parallax drive` as users run it, against a server that delays, freezes
//! and fails in a known way.
//!
//! Everything here is a test. Tests start the release binary and read the record it leaves; they do not link the
//! engine. Tests that measure time run alone, those that count run concurrently (`quiet.rs`).

#[cfg(test)]
mod audit;
#[cfg(test)]
mod binary;
#[cfg(test)]
mod certificates;
#[cfg(test)]
mod connecting;
#[cfg(test)]
mod crowd;
#[cfg(test)]
mod disturb;
#[cfg(test)]
mod drive;
#[cfg(test)]
mod expect;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod freeze;
#[cfg(test)]
mod giving_up;
#[cfg(test)]
mod hiccup;
#[cfg(test)]
mod http2_faults;
#[cfg(test)]
mod pacing;
#[cfg(test)]
mod partial;
#[cfg(test)]
mod pool_trap;
#[cfg(test)]
mod quiet;
#[cfg(test)]
mod scripted;
#[cfg(test)]
mod scripted_http2;
#[cfg(test)]
mod search;
#[cfg(test)]
mod secure_faults;
#[cfg(test)]
mod serve;
#[cfg(test)]
mod stall;
#[cfg(test)]
mod theory;
#[cfg(test)]
mod truth;
