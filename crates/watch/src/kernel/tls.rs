//! Attaches the programs that see the plain text of TLS connections: `bpf/watch_tls.h`.

use std::ffi::OsStr;
use std::os::fd::AsRawFd;

use libbpf_rs::{Link, Object, UprobeOpts};

use super::load::LoadError;
use crate::tls::TlsLibrary;

/// The function that each program is called at the entry of. All are left by way of [`RETURN`].
const ENTRIES: [(&str, &str); 5] = [
    ("SSL_read", "on_tls_read"),
    ("SSL_read_ex", "on_tls_read_ex"),
    ("SSL_write", "on_tls_write"),
    ("SSL_write_ex", "on_tls_write_ex"),
    ("SSL_do_handshake", "on_tls_handshake"),
];

const RETURN: &str = "on_tls_return";

/// Whether a program sees plain text.
pub(super) fn is_of_tls(program: &OsStr) -> bool {
    program == RETURN || ENTRIES.iter().any(|&(_, name)| program == name)
}

/// Probes the functions of these libraries, in all processes that use them; the programs pass over those that are not
/// watched.
pub(super) fn attach(object: &Object, libraries: &[TlsLibrary]) -> Result<Vec<Link>, LoadError> {
    let mut links = Vec::new();
    for library in libraries {
        let path = format!("/proc/self/fd/{}", library.file.as_raw_fd());
        for &function in &library.functions {
            let Some(&(_, entry)) = ENTRIES.iter().find(|&&(name, _)| name == function) else { continue };
            for (name, retprobe) in [(entry, false), (RETURN, true)] {
                let mut programs = object.progs_mut();
                let program = programs.find(|program| program.name() == name);
                let program = program.expect("the object has the programs that its source declares");
                let options =
                    UprobeOpts { retprobe, func_name: Some(function.to_owned()), ..UprobeOpts::default() };
                let link = program.attach_uprobe_with_opts(-1, &path, 0, options);
                links.push(link.map_err(|error| LoadError::Tls {
                    library: library.name.clone(),
                    function,
                    why: error.to_string(),
                })?);
            }
        }
    }
    Ok(links)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_that_is_looked_for_has_a_program() {
        assert_eq!(ENTRIES.map(|(function, _)| function), crate::tls::FUNCTIONS);
    }
}
