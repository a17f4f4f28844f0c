//! The process around a run, read once: only this crate reads the environment.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use run::effective::EffectiveOptions;
use run::environment::Environment;
use run::observe::Setting;

/// This process.
pub struct Process {
    program: Option<PathBuf>,
}

impl Process {
    /// Looks up this program.
    pub fn new() -> Process {
        Process { program: std::env::current_exe().ok() }
    }

    /// What a run needs to know about this process.
    pub fn environment(&self) -> Environment<'_> {
        Environment {
            command: command(),
            program: self.program.as_deref(),
            cache: cache(),
            variable: &|name| std::env::var(name).ok(),
            notice: &|line| crate::output::report_line(line),
        }
    }

    /// What an observation needs from this process: the options that took effect, the directory of its record, and the
    /// flag that ends it.
    pub fn setting<'a>(
        &'a self,
        options: EffectiveOptions,
        folder: Option<&'a Path>,
        stop: &'a Arc<AtomicBool>,
    ) -> Setting<'a> {
        Setting { environment: self.environment(), options, folder, stop }
    }
}

/// The command line.
pub fn command() -> Vec<String> {
    std::env::args_os().map(|text| text.to_string_lossy().into_owned()).collect()
}

/// `$XDG_CACHE_HOME/parallax`, or below the home directory.
fn cache() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(base.join("parallax"))
}
