//! Scenario files: what a run sends, read from TOML and checked before anything is sent.
//!
//! [`Draft::read`] parses, [`Draft::compile`] works out the meaning, and [`Scenario`] is the script of a run. Nothing
//! here sends, reads a clock or opens a file: files are read through a closure of the caller.

mod compile;
mod distribution;
mod document;
mod escape;
mod format;
mod journey;
pub mod pgbench;
mod place;
mod plan;
mod pointer;
mod random;
#[cfg(test)]
mod schema;
mod scope;
mod settings;
mod sql;
mod steps;
mod table;
mod template;
#[cfg(test)]
mod tests;
mod think;
mod values;
mod web;
pub mod workloads;

pub use compile::Surroundings;
pub use place::Mistake;
pub use plan::{Address, Limit, RequestKind, Scenario, Server, Tls};
pub use settings::{Setting, SettingOrigin};
pub use sql::Transaction;
pub use web::{Journey, Taken};

use crate::place::{Sources, Span};
use crate::settings::Key;

/// A scenario file of the right form, with `--set` applied.
pub struct Draft {
    sources: Sources,
    file: format::File,
}

impl Draft {
    /// Parses `text`, which is called `name` in errors, and applies `sets` (`key=value`).
    ///
    /// # Errors
    ///
    /// [`Mistake`] at the first thing that does not have the right form.
    pub fn read(name: &str, text: &str, sets: &[String]) -> Result<Draft, Mistake> {
        let mut sources = Sources::new(name, text);
        match document::read(text, sets, &mut sources) {
            Ok(file) => Ok(Draft { sources, file }),
            Err(slip) => Err(sources.mistake(&slip)),
        }
    }

    /// The options that the file sets.
    ///
    /// # Errors
    ///
    /// [`Mistake`] for an unknown key or a value of the wrong form.
    pub fn settings(&self) -> Result<Vec<Setting>, Mistake> {
        let mut found = Vec::new();
        let mut add = |key: &'static Key, values: Vec<String>, span: Span| {
            let origin = if self.sources.is_set(&span) { SettingOrigin::Set } else { SettingOrigin::File };
            found.push(Setting { option: key.option, values, place: self.sources.place(&span), origin });
        };
        let tables = [(&self.file.run.0, settings::RUN), (&self.file.output.0, settings::OUTPUT)];
        for (given, known) in tables {
            settings::read(given, known, &mut add).map_err(|slip| self.sources.mistake(&slip))?;
        }
        if let Some(conditions) = &self.file.thresholds.fail_if {
            add(&settings::FAIL_IF, conditions.get_ref().0.clone(), conditions.span());
        }
        Ok(found)
    }

    /// Values that the file sets besides options: its variables, and the addresses of its servers.
    pub fn values(&self) -> Vec<(String, String, SettingOrigin)> {
        let origin =
            |span: &Span| if self.sources.is_set(span) { SettingOrigin::Set } else { SettingOrigin::File };
        let vars = self.file.vars.iter();
        let vars = vars
            .map(|(name, value)| (format!("vars.{name}"), value.get_ref().0.clone(), origin(&value.span())));
        let urls = self.file.targets.iter().filter_map(|(name, target)| {
            let url = target.get_ref().url.as_ref()?;
            Some((format!("targets.{name}.url"), url.get_ref().clone(), origin(&url.span())))
        });
        vars.chain(urls).collect()
    }

    /// Compiles the file.
    ///
    /// # Errors
    ///
    /// [`Mistake`] at the first thing that cannot be done as it is written.
    pub fn compile(&self, around: &Surroundings<'_>) -> Result<Scenario, Mistake> {
        compile::compile(&self.file, &self.sources, around)
    }
}

/// The JSON Schema of the format as text, for editors.
pub const SCHEMA: &str = include_str!("../../../formats/scenario.schema.json");
