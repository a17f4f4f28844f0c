//! The HTTP part of a scenario: requests, checks, captures and cookies, and the script that the codec runs.
//!
//! The steps of another protocol would get their own module next to this one. What they share is one level up:
//! journeys, data, texts, think times.

mod capture;
mod compile;
mod cookie_date;
mod cookies;
mod preview;
mod script;
mod step;

pub(crate) use capture::Wanted;
pub(crate) use compile::{compile, headers, wanted};
pub use script::{Journey, Taken};
pub(crate) use step::WebStep;
