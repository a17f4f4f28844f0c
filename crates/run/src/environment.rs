//! What a run needs to know of the process that it runs in. This crate reads no environment and prints nothing: the
//! caller fills this in.

use std::path::{Path, PathBuf};

/// The process around a run.
pub struct Environment<'a> {
    /// The command line, as it is kept in the record once credentials are taken out.
    pub command: Vec<String>,
    /// The program that companion observers are started with.
    pub program: Option<&'a Path>,
    /// The folder of ceilings that earlier calibrations measured.
    pub cache: Option<PathBuf>,
    /// An environment variable, for scenarios that name one.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Gets a line for the user while a run waits or goes on.
    pub notice: &'a dyn Fn(&str),
}

impl Environment<'_> {
    /// A process without a command line, variables or a user.
    pub fn none() -> Environment<'static> {
        Environment { command: Vec::new(), program: None, cache: None, variable: &|_| None, notice: &|_| {} }
    }
}
