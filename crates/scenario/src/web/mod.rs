//! HTTP's part of a scenario: requests, checks, captures and cookies, and the script that the codec asks.
//!
//! The steps of another protocol get a module of their own next to this one. What they share is above: journeys, data,
//! texts, waits.

mod capture;
mod compile;
mod cookie_date;
mod cookies;
mod preview;
mod script;
mod step;

pub(crate) use compile::{compile, headers};
pub use script::{Journey, Taken};
pub(crate) use step::WebStep;
