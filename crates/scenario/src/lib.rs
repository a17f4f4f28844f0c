//! Scenario files: what a run sends, read from TOML and checked before anything is sent.
//!
//! [`Draft::read`] reads the form, [`Draft::compile`] works out what it means, and [`Scenario`] is the script of a run.
//! Nothing here sends, reads a clock or opens a file: files come through a closure of the caller's.

mod compile;
mod distribution;
mod document;
mod escape;
mod format;
mod journey;
mod place;
mod plan;
mod pointer;
mod random;
#[cfg(test)]
mod schema;
mod scope;
mod settings;
mod steps;
mod table;
mod template;
#[cfg(test)]
mod tests;
mod think;
mod values;
mod web;

pub use compile::Surroundings;
pub use place::Mistake;
pub use plan::{Limit, RequestKind, Scenario, Server, Tls};
pub use settings::{Setting, SettingOrigin};
pub use web::{Journey, Taken};

use crate::place::{Sources, Span};
use crate::settings::Key;

/// A scenario file that is of the form, with what `--set` laid over it.
pub struct Draft {
    sources: Sources,
    file: format::File,
}

impl Draft {
    /// Reads `text`, which is called `name` in errors, and lays `sets` (`key=value`) over it.
    ///
    /// # Errors
    ///
    /// [`Mistake`] at the first thing that is not of the form.
    pub fn read(name: &str, text: &str, sets: &[String]) -> Result<Draft, Mistake> {
        let mut sources = Sources::new(name, text);
        match document::read(text, sets, &mut sources) {
            Ok(file) => Ok(Draft { sources, file }),
            Err(slip) => Err(sources.mistake(&slip)),
        }
    }

    /// The options that the file gives.
    ///
    /// # Errors
    ///
    /// [`Mistake`] where a key is not known or its value is not of its form.
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

    /// The values that the file gives besides options: its variables, and where its servers are.
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

    /// Works out what the file means.
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
