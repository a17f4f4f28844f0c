//! Functions of a program, by name.

use std::fs;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSymbol, SymbolKind};

/// Why there is no such function. Messages are one line each.
#[derive(Debug, thiserror::Error)]
pub enum SymbolError {
    #[error("cannot read {binary}: {source}")]
    Read { binary: PathBuf, source: std::io::Error },
    #[error("{binary} is not a program: {why}")]
    NoProgram { binary: PathBuf, why: String },
    #[error(
        "{binary} has no function `{name}`; `nm -D --demangle` lists the functions of a stripped program"
    )]
    NoFunction { binary: PathBuf, name: String },
    #[error("{binary} has several functions with `{name}` in their names: {several}; use one of these")]
    Several { binary: PathBuf, name: String, several: String },
}

/// The symbol of the one function named `name`, or else of the only one with `name` in its (mangled) name.
///
/// # Errors
///
/// [`SymbolError`]: an unreadable file, no such function, or several.
pub fn function(binary: &Path, name: &str) -> Result<String, SymbolError> {
    let bytes = fs::read(binary).map_err(|source| SymbolError::Read { binary: binary.to_owned(), source })?;
    let file = object::File::parse(&*bytes)
        .map_err(|error| SymbolError::NoProgram { binary: binary.to_owned(), why: error.to_string() })?;
    let mut partial: Vec<&str> = Vec::new();
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        let Ok(of) = symbol.name() else { continue };
        if symbol.kind() != SymbolKind::Text || symbol.is_undefined() {
            continue;
        }
        if of == name {
            return Ok(name.to_owned());
        }
        // A part of a function that the compiler has split off is not the function.
        if of.contains(name) && !of.contains(".cold") && !partial.contains(&of) {
            partial.push(of);
        }
    }
    match partial.as_slice() {
        [] => Err(SymbolError::NoFunction { binary: binary.to_owned(), name: name.to_owned() }),
        [one] => Ok((*one).to_owned()),
        several => {
            let several = several[..several.len().min(4)].join(", ");
            Err(SymbolError::Several { binary: binary.to_owned(), name: name.to_owned(), several })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_name_or_part_of_it() {
        let own = std::env::current_exe().unwrap();
        let found = function(&own, "functions_are_found_by_name_or_part_of_it").map_err(|e| e.to_string());
        assert!(
            found.as_ref().is_ok_and(|found| found.contains("functions_are"))
                || found.unwrap_err().contains("several")
        );
        let error = function(&own, "no_such_function_anywhere").unwrap_err();
        assert!(matches!(error, SymbolError::NoFunction { .. }));
        assert!(matches!(
            function(Path::new("/proc/version"), "x").unwrap_err(),
            SymbolError::NoProgram { .. }
        ));
    }
}
