//! `parallax profile`: where the threads of a server spend their time, as flame graphs and tables.

mod args;
#[cfg(feature = "ebpf")]
mod capture;
mod difference;
mod frames;
mod sources;

use anyhow::ensure;
use record::document::{EffectiveOption, OptionSource};
use run::folder::new_folder;
use units::Nanos;

pub use self::args::Args;
#[cfg(feature = "ebpf")]
use self::capture::profile;
use self::frames::Printing;
use crate::command_line::CommandLine;
use crate::exit::Exit;

/// Runs the verb.
///
/// # Errors
///
/// Wrong usage or a problem of this host, in one line; nothing has been profiled then.
pub fn run(args: &Args, line: &CommandLine<'_>) -> anyhow::Result<Exit> {
    args.record_mode.apply();
    let folder = args.output.clone().unwrap_or_else(new_folder);
    if let [before, after] = args.diff.as_slice() {
        return difference::run(before, after, &folder, args.no_color);
    }
    if let Some(from) = &args.frames.from {
        let printing = Printing { json: args.json, no_color: args.no_color };
        return frames::run(&args.frames, from, &folder, printing);
    }
    ensure!(args.duration > Nanos::ZERO, "--duration is 0; give a time, such as 10s");
    let mut options = line.effective();
    let shown = folder.display().to_string();
    options.insert("output".to_owned(), EffectiveOption { value: shown, source: OptionSource::Derived });
    profile(args, options, &folder)
}

#[cfg(not(feature = "ebpf"))]
fn profile(_: &Args, _: run::effective::EffectiveOptions, _: &std::path::Path) -> anyhow::Result<Exit> {
    anyhow::bail!("this parallax was built without eBPF; build it with the feature `ebpf`")
}
