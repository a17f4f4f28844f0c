//! Attaches the programs at tracepoints and those that classify, and waits for them after they were detached.

use std::ffi::OsStr;
use std::os::fd::AsRawFd;

use libbpf_rs::{Link, Object, ProgramMut, UprobeOpts};

use super::load::{CaptureSettings, LoadError, refused};
use super::tls;

/// The programs at the entry and at the return of the function that classifies.
const CLASSIFIERS: [&str; 2] = ["on_entry", "on_return"];

pub(super) fn is_classifier(program: &OsStr) -> bool {
    CLASSIFIERS.iter().any(|name| program == *name)
}

/// The program that adds the children of watched processes. Forks are rare, so it costs nothing to leave it attached.
pub(super) const FORK: &str = "on_fork";

pub(super) fn tracepoints(
    object: &Object,
    is_wanted: impl Fn(&OsStr) -> bool,
) -> Result<Vec<Link>, LoadError> {
    let wanted = |program: &ProgramMut<'_>| {
        let name = program.name();
        program.autoload() && !tls::is_of_tls(name) && !is_classifier(name) && is_wanted(name)
    };
    let programs = object.progs_mut().filter(wanted);
    programs.map(|program| program.attach().map_err(|e| refused(&e))).collect()
}

pub(super) fn classifiers(object: &Object, settings: &CaptureSettings) -> Result<Vec<Link>, LoadError> {
    let mut links = Vec::new();
    let Some(class) = &settings.class else { return Ok(links) };
    for program in object.progs_mut().filter(|program| is_classifier(program.name())) {
        let options = UprobeOpts {
            retprobe: program.name() == CLASSIFIERS[1],
            func_name: Some(class.function.symbol.clone()),
            ..UprobeOpts::default()
        };
        // The file that was looked at, even if its path refers to another one by now.
        let opened = format!("/proc/self/fd/{}", class.function.program.as_raw_fd());
        let link = program.attach_uprobe_with_opts(-1, opened, 0, options);
        links.push(link.map_err(|e| LoadError::Class {
            binary: class.binary.clone(),
            symbol: class.function.symbol.clone(),
            why: e.to_string(),
        })?);
    }
    Ok(links)
}

/// Waits until the programs that were running when they were detached have ended: what they write is not lost. Some
/// milliseconds, without using a CPU.
pub(super) fn wait_for_programs() {
    // SAFETY: numbers only. On a kernel without it, or with CPUs that run undisturbed, it does nothing.
    #[expect(unsafe_code, reason = "neither libc nor rustix has a function for it")]
    unsafe {
        libc::syscall(libc::SYS_membarrier, MEMBARRIER_GLOBAL, 0, 0);
    }
}

/// `MEMBARRIER_CMD_GLOBAL`: waits for a grace period of RCU, within which programs run.
const MEMBARRIER_GLOBAL: libc::c_int = 1;
