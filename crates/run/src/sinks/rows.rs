//! Writes one row per second into a file, a pipe or standard output.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::sync::mpsc::Receiver;

use anyhow::Context;
use export::rows::{self, Form};
use record::Second;

/// A file that gets rows, or standard output.
#[derive(Debug, Clone)]
pub(super) struct RowPlan {
    pub form: Form,
    /// The option as typed, for messages.
    pub option: &'static str,
    pub path: PathBuf,
}

impl RowPlan {
    /// Whether its path is `-`.
    pub fn is_stdout(&self) -> bool {
        self.path.as_os_str() == "-"
    }
}

/// Opens the file, truncating it.
pub(super) fn open(plan: &RowPlan) -> anyhow::Result<Box<dyn Write + Send>> {
    if plan.is_stdout() {
        return Ok(Box::new(io::stdout()));
    }
    let shown = plan.path.display();
    let file = File::create(&plan.path)
        .with_context(|| format!("cannot write to `{shown}`; use another file for {}", plan.option))?;
    Ok(Box::new(file))
}

/// Writes rows until the queue is dropped. After an error the remaining rows are discarded: the run goes on.
pub(super) fn write(
    form: Form,
    mut out: Box<dyn Write + Send>,
    queue: &Receiver<Second>,
) -> Result<(), String> {
    let mut error = rows::head(form, &mut out).and_then(|()| out.flush()).err();
    let mut lost = 0u64;
    while let Ok(second) = queue.recv() {
        if error.is_some() {
            lost += 1;
            continue;
        }
        // In one write, so that a reader sees whole lines.
        let mut line = Vec::new();
        let written = rows::row(form, &second, &mut line).and_then(|()| out.write_all(&line));
        error = written.and_then(|()| out.flush()).err();
        lost += u64::from(error.is_some());
    }
    match error {
        // The reader closed the pipe: it has read enough.
        Some(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Some(error) => Err(format!("{lost} rows were not written: {error}")),
        None => Ok(()),
    }
}
