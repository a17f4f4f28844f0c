//! Why nothing is disturbed, or no longer: one line per error, with what to do.

use std::io;

use thiserror::Error;

/// Why a disturbance cannot begin, or had to end.
#[derive(Debug, Error)]
pub enum DisturbError {
    #[error("no process has the pid {pid}; find the right one with `pgrep -a NAME`")]
    NoSuchProcess { pid: u32 },
    #[error("{pid} is a thread of process {process}; name the process")]
    Thread { pid: u32, process: u32 },
    #[error("pid {pid} ({name}) belongs to another user; run as that user, or with CAP_KILL (sudo)")]
    NotYours { pid: u32, name: String },
    #[error("pid {pid} ({name}) is {what}, which is never disturbed; choose another process")]
    Never { pid: u32, name: String, what: &'static str },
    #[error("pid {pid} ({name}) is {what}; add --force to disturb it anyway")]
    Guarded { pid: u32, name: String, what: &'static str },
    #[error("pid {pid} has ended")]
    Gone { pid: u32 },
    #[error("this host has no {what}; {instead}")]
    Lacking { what: &'static str, instead: &'static str },
    #[error("{0}")]
    Unwise(String),
    #[error("the guard process has ended, so nothing would undo a disturbance; stopped disturbing")]
    NoGuard,
    #[error("the guard process cannot undo this, so it was not done: {why}")]
    GuardRefused { why: String },
    #[error("a disturbance was not fully undone: {what}; undo that by hand")]
    Left { what: String },
    #[error(
        "the guard process did not end properly ({why}), so a disturbance may not be fully undone; check by hand"
    )]
    Unguarded { why: String },
    #[error(
        "cannot start a process that disturbs ({work}): {source}; start fewer, or raise `ulimit -n` or `ulimit -u`"
    )]
    Start { work: &'static str, source: io::Error },
    #[error("cannot disturb by {work}, or no longer: {why}")]
    Refused { work: &'static str, why: String },
    #[error("a process that disturbs has ended: {what}")]
    WorkerGone { what: String },
    #[error("cannot {what}: {source}")]
    System { what: String, source: io::Error },
}

impl DisturbError {
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> DisturbError {
        move |source| DisturbError::System { what: what.into(), source }
    }
}
