//! The instrument against planted truth: `parallax drive` as everybody runs it, against a server that delays,
//! freezes and fails in a way that is known beforehand.
//!
//! Everything here is a test. Tests start the release binary and read the record it leaves; they link no engine.
//! Those that measure time run alone, those that count run side by side (`quiet.rs`).

#[cfg(test)]
mod binary;
#[cfg(test)]
mod connecting;
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
mod partial;
#[cfg(test)]
mod pool_trap;
#[cfg(test)]
mod quiet;
#[cfg(test)]
mod serve;
#[cfg(test)]
mod stall;
#[cfg(test)]
mod theory;
#[cfg(test)]
mod truth;
