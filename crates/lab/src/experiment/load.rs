//! The commands of a load, with the words that the lab adds to them.

use std::path::Path;

use units::Nanos;

use super::spec::{LoadKind, LoadSpec};

/// One command of a load.
pub(super) struct LoadCommand {
    /// `warm-up` or `load`: the name of its step and its log.
    pub step: &'static str,
    pub text: String,
    /// Words after the text.
    more: Vec<String>,
    pub is_measured: bool,
}

impl LoadCommand {
    pub(super) fn words(&self) -> Vec<&str> {
        self.more.iter().map(String::as_str).collect()
    }
}

/// The commands of a run in their order. `pid` is the server, if its CPU time is measured.
pub(super) fn load_commands(
    spec: &LoadSpec,
    values: &[(String, String)],
    block: usize,
    folder: &Path,
    pid: Option<u32>,
) -> Vec<LoadCommand> {
    match &spec.kind {
        LoadKind::Program { command, .. } => {
            let text = command.filled(values);
            vec![LoadCommand { step: "load", text, more: Vec::new(), is_measured: true }]
        }
        LoadKind::Drive { words, window } => {
            let text = format!("parallax drive {}", words.filled(values));
            let length = |time: &Nanos| ["--duration".to_owned(), exact(*time)];
            let place = folder.join("record").display().to_string();
            let mut more = vec!["--block".to_owned(), block.to_string(), "-o".to_owned(), place];
            more.push("--quiet".to_owned());
            more.extend(window.iter().flat_map(length));
            more.extend(pid.into_iter().flat_map(|pid| ["--watch-cpu".to_owned(), pid.to_string()]));
            let load = LoadCommand { step: "load", text: text.clone(), more, is_measured: true };
            let warmup = spec.warmup.as_ref().map(|time| {
                let rest = ["--quiet", "--no-record"].map(str::to_owned);
                let more = length(time).into_iter().chain(rest).collect();
                LoadCommand { step: "warm-up", text, more, is_measured: false }
            });
            warmup.into_iter().chain([load]).collect()
        }
    }
}

/// A length without rounding, as people write it.
fn exact(time: Nanos) -> String {
    match time.0 {
        ns if ns % 1_000_000_000 == 0 => format!("{}s", ns / 1_000_000_000),
        ns if ns % 1_000_000 == 0 => format!("{}ms", ns / 1_000_000),
        ns => format!("{ns}ns"),
    }
}

impl LoadSpec {
    pub(super) fn is_drive(&self) -> bool {
        matches!(self.kind, LoadKind::Drive { .. })
    }

    /// The tool whose output is imported.
    pub(super) fn tool(&self) -> Option<&str> {
        match &self.kind {
            LoadKind::Program { import, .. } => import.as_deref(),
            LoadKind::Drive { .. } => None,
        }
    }
}

impl LoadCommand {
    /// As a user would type it.
    pub(super) fn shown(&self) -> String {
        std::iter::once(self.text.as_str()).chain(self.words()).collect::<Vec<_>>().join(" ")
    }
}
