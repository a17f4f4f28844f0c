//! `--record-mode`, for the verbs that keep a record.

use record::record_mode::{RecordMode, apply};

/// The option.
#[derive(Debug, Clone, clap::Args)]
pub struct RecordModeArg {
    /// Permissions of the record's files, in octal: 600, 640 or 644; its directories get 700, 750 or 755
    /// [default: 600 for root, otherwise according to the umask].
    #[arg(long, value_name = "MODE", help_heading = "Output")]
    record_mode: Option<RecordMode>,
}

impl RecordModeArg {
    /// Call before anything is written.
    pub fn apply(&self) {
        apply(self.record_mode);
    }
}
