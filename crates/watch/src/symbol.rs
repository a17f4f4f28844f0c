//! Functions of a program, by name.
//!
//! The program may be a stranger's: it is opened without blocking and only as a regular file, and it is mapped, because
//! only its headers and tables of symbols are read, however long the file is.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use object::{Object, ObjectSymbol, SymbolKind};
use rustix::fs::{CWD, Mode, OFlags};

use crate::profile::{Owner, regular};

/// A function of a program.
#[derive(Debug)]
pub struct Function {
    /// The program, held open: its path may refer to another file by now.
    pub program: File,
    /// As in the program's table, mangled where it is.
    pub symbol: String,
}

/// Why there is no such function. Messages are one line each.
#[derive(Debug, thiserror::Error)]
pub enum SymbolError {
    #[error("cannot read {binary}: {source}")]
    Read { binary: PathBuf, source: io::Error },
    #[error("{binary} is not a program: {why}")]
    NoProgram { binary: PathBuf, why: String },
    #[error("{binary} has more symbols than any program: over {} MiB", TABLE_MOST >> 20)]
    TooLarge { binary: PathBuf },
    #[error(
        "{binary} has no function `{name}`; `nm -D --demangle` lists the functions of a stripped program"
    )]
    NoFunction { binary: PathBuf, name: String },
    #[error("{binary} has several functions with `{name}` in their names: {several}; use one of these")]
    Several { binary: PathBuf, name: String, several: String },
}

/// Maximum size of the symbols that are looked at, with their names; a browser with debug information has 300 MiB.
const TABLE_MOST: usize = 1 << 30;
/// The size of a symbol in the file.
const ENTRY: usize = 24;
/// Candidates that a message names.
const SHOWN: usize = 4;

/// The one function named `name`, or else the only one with `name` in its (mangled) name.
///
/// # Errors
///
/// [`SymbolError`]: an unreadable file or none that is regular, no such function, or several.
pub fn function(binary: &Path, name: &str) -> Result<Function, SymbolError> {
    let path = || binary.to_owned();
    let read = |source| SymbolError::Read { binary: path(), source };
    let none = |why: &dyn ToString| SymbolError::NoProgram { binary: path(), why: why.to_string() };
    let program = open(binary).map_err(read)?;
    // What the kernel makes up on reading has no length, and cannot be mapped.
    if program.metadata().map_err(read)?.len() == 0 {
        return Err(none(&"it is empty"));
    }
    // SAFETY: nobody writes through this mapping, and what is read from it is checked as bytes of any content. If
    // somebody shortens the file meanwhile, the kernel ends this process; it does not let a running program be shortened.
    #[expect(unsafe_code, reason = "maps a file")]
    let bytes = unsafe { Mmap::map(&program) }.map_err(read)?;
    let file = object::File::parse(&*bytes).map_err(|error| none(&error))?;
    let mut partial: Vec<&str> = Vec::new();
    let mut looked_at = 0;
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        let found = symbol.name();
        looked_at += ENTRY + found.map_or(0, str::len);
        if looked_at > TABLE_MOST {
            return Err(SymbolError::TooLarge { binary: path() });
        }
        let Ok(found) = found else { continue };
        if symbol.kind() != SymbolKind::Text || symbol.is_undefined() {
            continue;
        }
        if found == name {
            return Ok(Function { symbol: name.to_owned(), program });
        }
        // A part of a function that the compiler has split off is not the function.
        let is_new = partial.len() < SHOWN && !partial.contains(&found);
        if is_new && found.contains(name) && !found.contains(".cold") {
            partial.push(found);
        }
    }
    match partial.as_slice() {
        [] => Err(SymbolError::NoFunction { binary: path(), name: name.to_owned() }),
        [one] => Ok(Function { symbol: (*one).to_owned(), program }),
        several => {
            Err(SymbolError::Several { binary: path(), name: name.to_owned(), several: several.join(", ") })
        }
    }
}

/// Links are followed: the user named the file, or the kernel did (`/proc/PID/exe`).
fn open(path: &Path) -> io::Result<File> {
    let place = rustix::fs::openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    regular(place, Owner::Any)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_name_or_part_of_it() {
        let own = std::env::current_exe().unwrap();
        let found = function(&own, "functions_are_found_by_name_or_part_of_it").map_err(|e| e.to_string());
        assert!(
            found.as_ref().is_ok_and(|found| found.symbol.contains("functions_are"))
                || found.unwrap_err().contains("several")
        );
        let error = function(&own, "no_such_function_anywhere").unwrap_err();
        assert!(matches!(error, SymbolError::NoFunction { .. }));
        assert!(matches!(
            function(Path::new("/proc/version"), "x").unwrap_err(),
            SymbolError::NoProgram { .. }
        ));
    }

    /// If this fails, a target whose program is a long sparse file exhausts the memory of an observer that runs as root,
    /// and a FIFO blocks it.
    #[test]
    fn only_the_symbols_of_a_regular_file_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let long = folder.path().join("long");
        std::fs::copy(std::env::current_exe().unwrap(), &long).unwrap();
        // More than any memory; a file system with a lower limit has a longest file that is long enough.
        let file = File::options().write(true).open(&long).unwrap();
        assert!([1 << 46, 1 << 43].iter().any(|length| file.set_len(*length).is_ok()));
        let error = function(&long, "no_such_function_anywhere").unwrap_err();
        assert!(matches!(error, SymbolError::NoFunction { .. }), "{error}");

        let fifo = folder.path().join("fifo");
        rustix::fs::mknodat(CWD, &fifo, rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
        for path in [&fifo, Path::new("/dev/zero")] {
            let error = function(path, "f").unwrap_err().to_string();
            assert!(error.ends_with("it is not a regular file"), "{error}");
        }
    }
}
