//! Ctrl-C ends the run well: the first one stops it and keeps the record, the second one is for good.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// A flag that the first SIGINT or SIGTERM sets. The second ends the process at once.
///
/// # Errors
///
/// When the kernel refuses the handlers.
pub fn stop_flag() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the one that ends the process looks at the flag before the other has set it.
        flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))
            .and_then(|_| flag::register(signal, Arc::clone(&stop)))
            .context("cannot handle signals, so Ctrl-C would lose the run")?;
    }
    Ok(stop)
}
