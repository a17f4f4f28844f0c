//! Finds the TLS libraries of a server's processes: those whose calls can be probed, and the names of others.
//!
//! A library can be probed if it has OpenSSL's functions by name: OpenSSL 1.1 and 3, LibreSSL and BoringSSL, as a file
//! that the process has mapped, the program itself included. These files may be a stranger's: the mapped file itself is
//! opened, only as a regular file, and held until it is probed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::sync::Arc;

use memmap2::Mmap;
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

use crate::profile::Executable;

/// The functions that are probed.
pub(crate) const FUNCTIONS: [&str; 5] =
    ["SSL_read", "SSL_read_ex", "SSL_write", "SSL_write_ex", "SSL_do_handshake"];

/// A file with functions to probe.
#[derive(Debug, Clone)]
pub struct TlsLibrary {
    /// Held open: its path may refer to another file by now.
    pub file: Arc<File>,
    /// Where the server finds it.
    pub name: String,
    /// Those of the functions that it has.
    pub functions: Vec<&'static str>,
}

/// The TLS libraries of a server.
#[derive(Debug, Clone, Default)]
pub struct TlsLibraries {
    /// Those that can be probed, each once.
    pub probed: Vec<TlsLibrary>,
    /// One line for each program without such a library.
    pub unprobed: Vec<String>,
}

/// What a file has of TLS.
#[derive(Clone, Copy, PartialEq)]
enum Tls {
    OpenSsl,
    /// Another implementation.
    Other(&'static str),
    None,
}

/// Looks at everything executable that these processes have mapped. A process that has ended has no libraries.
///
/// # Cost
///
/// Reads the symbols of each file once: some 10 ms for a large server.
pub fn find(processes: &[u32]) -> TlsLibraries {
    let mut found = TlsLibraries::default();
    let mut seen = BTreeMap::new();
    let mut programs = BTreeSet::new();
    for &process in processes {
        let files = Executable::all(process);
        let mut has = Vec::new();
        for file in &files {
            has.push(*seen.entry(file.id.clone()).or_insert_with(|| look_at(file, &mut found.probed)));
        }
        let program = fs::read_link(format!("/proc/{process}/exe")).ok();
        let program = program.map_or_else(|| process.to_string(), |path| path.display().to_string());
        if !has.contains(&Tls::OpenSsl) && !files.is_empty() && programs.insert(program.clone()) {
            let other =
                has.iter().find_map(|tls| if let Tls::Other(name) = tls { Some(*name) } else { None });
            let what = other.map_or_else(String::new, |other| format!(" but {other}"));
            found.unprobed.push(format!(
                "{program} has no functions of OpenSSL{what}: its TLS connections are timed as turns"
            ));
        }
    }
    found
}

fn look_at(executable: &Executable, probed: &mut Vec<TlsLibrary>) -> Tls {
    let Ok(file) = executable.open() else { return Tls::None };
    let Some(bytes) = map(&file) else { return Tls::None };
    let functions = functions_of(&bytes);
    if functions.contains(&FUNCTIONS[0]) || functions.contains(&FUNCTIONS[1]) {
        probed.push(TlsLibrary { file: Arc::new(file), name: executable.path.clone(), functions });
        return Tls::OpenSsl;
    }
    other(&executable.path, &bytes).map_or(Tls::None, Tls::Other)
}

/// Maximum size of the symbols that are looked at, with their names; a browser with debug information has 300 MiB.
const SYMBOLS_MOST: usize = 1 << 30;
/// The size of a symbol in the file.
const ENTRY: usize = 24;
/// How much of a program is searched for a text.
const SEARCHED_MOST: usize = 256 << 20;

/// Which of the functions a file has.
fn functions_of(bytes: &[u8]) -> Vec<&'static str> {
    let Ok(parsed) = object::File::parse(bytes) else { return Vec::new() };
    let mut functions = BTreeSet::new();
    let mut looked_at = 0;
    for symbol in parsed.symbols().chain(parsed.dynamic_symbols()) {
        let name = symbol.name_bytes().unwrap_or_default();
        looked_at += ENTRY + name.len();
        if looked_at > SYMBOLS_MOST {
            break;
        }
        if name.starts_with(b"SSL_") && symbol.kind() == SymbolKind::Text && !symbol.is_undefined() {
            functions.extend(FUNCTIONS.into_iter().find(|function| function.as_bytes() == name));
        }
    }
    functions.into_iter().collect()
}

/// Another implementation of TLS that a file is or has.
fn other(path: &str, bytes: &[u8]) -> Option<&'static str> {
    let name = path.rsplit('/').next()?;
    for (prefix, what) in
        [("libgnutls", "GnuTLS"), ("libnss3", "NSS"), ("libjvm", "Java's TLS"), ("libmbedtls", "Mbed TLS")]
    {
        if name.starts_with(prefix) {
            return Some(what);
        }
    }
    if name.contains(".so") {
        return None;
    }
    let parsed = object::File::parse(bytes).ok()?;
    if parsed.sections().any(|section| section.name().is_ok_and(|name| name == ".go.buildinfo")) {
        return Some("Go's TLS");
    }
    // A program without symbols still has the paths of its panics.
    memchr::memmem::find(&bytes[..bytes.len().min(SEARCHED_MOST)], b"/rustls-0.").map(|_| "rustls")
}

fn map(file: &File) -> Option<Mmap> {
    // SAFETY: nobody writes through this mapping, and what is read from it is checked as bytes of any content. If
    // somebody shortens a library meanwhile, the kernel ends this process; it does not let a running program be
    // shortened.
    #[expect(unsafe_code, reason = "libraries are too large to be read for their symbols")]
    let bytes = unsafe { Mmap::map(file) }.ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This test's program has no OpenSSL.
    #[test]
    fn a_program_without_openssl_is_named() {
        let found = find(&[std::process::id(), u32::MAX]);
        assert!(found.probed.is_empty(), "{found:?}");
        assert_eq!(found.unprobed.len(), 1);
        assert!(found.unprobed[0].contains("has no functions of OpenSSL"), "{found:?}");
    }

    /// If this fails, a server whose file is replaced by a FIFO stops an observer that runs as root, or one that puts a
    /// link in its place has a file of the host probed.
    #[test]
    fn what_a_process_has_mapped_is_looked_at_and_not_what_is_there_now() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("sleeper");
        fs::copy("/bin/sleep", &program).unwrap();
        let mut child = std::process::Command::new(&program).arg("60").spawn().unwrap();
        let is_there =
            || Executable::all(child.id()).into_iter().find(|file| file.path.ends_with("/sleeper"));
        let end = clock::now() + units::Nanos::from_secs(10);
        let mapped = loop {
            if let Some(mapped) = is_there() {
                break mapped;
            }
            assert!(clock::now() < end, "it does not run");
            clock::sleep_until(clock::now() + units::Nanos::from_millis(1));
        };
        let inode = std::os::unix::fs::MetadataExt::ino(&fs::metadata(&program).unwrap());
        fs::remove_file(&program).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &program, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
            .unwrap();
        // Root has the mapped file; others are refused, and do not wait.
        if let Ok(file) = mapped.open() {
            assert_eq!(std::os::unix::fs::MetadataExt::ino(&file.metadata().unwrap()), inode);
        }
        assert_eq!(find(&[child.id()]).unprobed.len(), 1);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
