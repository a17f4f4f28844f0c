//! `parallax watch` on running servers: a planted one, whose own account of every request is the truth, and real ones,
//! whose counters are.
//!
//! Needs root, BTF and two CPUs; without them these tests fail and report what is missing. Tests that assert times run
//! alone, those that count run concurrently.

#[cfg(test)]
mod blame;
#[cfg(test)]
mod both_sides;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod far_side;
#[cfg(test)]
mod itself;
#[cfg(test)]
mod judge;
#[cfg(test)]
mod live;
#[cfg(test)]
mod models;
#[cfg(test)]
mod parts;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod servers;
#[cfg(test)]
mod support;
#[cfg(test)]
mod views;
#[cfg(test)]
mod windows;
