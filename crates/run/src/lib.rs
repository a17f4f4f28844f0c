//! Carrying out a run: a [`spec::RunSpec`] is prepared, conducted and kept as a record.
//!
//! [`prepare::prepare`] refuses what cannot be done before anything is sent. [`conduct::conduct`] drives, keeps the
//! record and attaches observers. A search and a calibration make specs and conduct them. [`observe`] carries out what
//! observes this host without sending anything. Nothing here knows a command line, prints, ends the process or reads its
//! environment: the caller passes in what is needed.

pub mod calibrate;
pub mod ceiling;
pub mod companion;
pub mod conduct;
pub mod databases;
pub mod date;
pub mod effective;
pub mod environment;
pub mod folder;
pub mod load;
pub mod mode;
pub mod observe;
pub mod options;
mod parts;
pub mod prepare;
pub mod record_lock;
pub mod records;
pub mod replay;
pub mod requests_file;
pub mod scenario_file;
pub mod search;
pub mod secrets;
mod servers;
mod sinks;
pub mod spec;
pub mod statements;
#[cfg(test)]
mod testing;
mod unreachable;
pub mod values;
mod web_requests;
pub mod workload;
