//! `parallax watch` beside a running server: one that is planted, whose own account of every request is the truth,
//! and real ones, whose counters are.
//!
//! Needs root, BTF and two CPUs; without them these tests fail and say what is missing. Tests that assert lengths of
//! time run alone, those that count run side by side.

mod itself;
mod support;
