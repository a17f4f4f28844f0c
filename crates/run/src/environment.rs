//! What a run needs to know about the process that it runs in. This crate reads no environment variables and prints
//! nothing: the caller fills this in.

use std::path::{Path, PathBuf};

/// The process around a run.
pub struct Environment<'a> {
    /// The command line as the record keeps it, after credentials are removed.
    pub command: Vec<String>,
    /// The executable to start companion observers with.
    pub program: Option<&'a Path>,
    /// Directory of the ceilings measured by earlier calibrations.
    pub cache: Option<PathBuf>,
    /// Looks up an environment variable that a scenario names.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Called with a line for the user while a run waits or goes on.
    pub notice: &'a dyn Fn(&str),
}

impl Environment<'_> {
    /// A process without a command line, variables or a user.
    pub fn none() -> Environment<'static> {
        Environment { command: Vec::new(), program: None, cache: None, variable: &|_| None, notice: &|_| {} }
    }
}
