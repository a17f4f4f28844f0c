//! A function of the server whose return value classifies a request.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::find::{self, FindError, Named};
use crate::kernel::ClassProbe;
use crate::symbol::{SymbolError, function};
use crate::{NOT_CLASSIFIED, OTHER_CLASSES};

/// A function of the server, and what it returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestClass {
    from: From,
    returns: Returns,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum From {
    Function { binary: PathBuf, symbol: String },
    MariadbQueryCache,
}

/// Why a function cannot classify the requests.
#[derive(Debug, thiserror::Error)]
pub enum ClassError {
    #[error(transparent)]
    Find(#[from] FindError),
    #[error(transparent)]
    Symbol(#[from] SymbolError),
    #[error("{0}; --class mariadb-query-cache needs a MariaDB with a query cache and its symbols")]
    NoQueryCache(SymbolError),
}

/// The return type, which determines how many bits of the register are the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Returns {
    Bool,
    I32,
    I64,
}

/// MariaDB's function that responds from the query cache: it returns 1 for a hit, 0 for a miss, and -1 if the user is
/// not allowed to see the result. Its name ends in its argument types, which differ between versions.
const MARIADB_QUERY_CACHE: &str = "Query_cache21send_result_to_client";

impl FromStr for RequestClass {
    type Err = String;

    fn from_str(text: &str) -> Result<RequestClass, String> {
        if text == "mariadb-query-cache" {
            return Ok(RequestClass { from: From::MariadbQueryCache, returns: Returns::I32 });
        }
        let form = "is uretprobe:BINARY:SYMBOL[:bool|i32|i64], or mariadb-query-cache";
        let mut words = text.strip_prefix("uretprobe:").ok_or(form)?.split(':');
        let binary = words.next().filter(|binary| !binary.is_empty()).ok_or(form)?;
        let symbol = words.next().filter(|symbol| !symbol.is_empty()).ok_or(form)?;
        let returns = match words.next() {
            None | Some("i32") => Returns::I32,
            Some("bool") => Returns::Bool,
            Some("i64") => Returns::I64,
            Some(_) => return Err(form.to_owned()),
        };
        if words.next().is_some() {
            return Err(form.to_owned());
        }
        Ok(RequestClass {
            from: From::Function { binary: binary.into(), symbol: symbol.to_owned() },
            returns,
        })
    }
}

impl RequestClass {
    /// The binary and symbol to attach to.
    ///
    /// # Errors
    ///
    /// When the server is not found, or its program has no such function.
    pub fn probe(&self, named: &Named) -> Result<ClassProbe, ClassError> {
        match &self.from {
            From::Function { binary, symbol } => {
                let function = function(binary, symbol)?;
                Ok(ClassProbe { binary: binary.clone(), function })
            }
            From::MariadbQueryCache => {
                let found = find::find(named)?;
                let pid = *found.processes.first().expect("a server that is found has a process");
                let binary = Path::new("/proc").join(pid.to_string()).join("exe");
                let function = function(&binary, MARIADB_QUERY_CACHE).map_err(ClassError::NoQueryCache)?;
                Ok(ClassProbe { binary, function })
            }
        }
    }

    /// Whether what the function returned is a class of this request. MariaDB asks its query cache for every statement,
    /// also for one that can never be in it; that is not a miss. Where the statement is not known, as under TLS, it
    /// counts as one.
    pub fn is_of(&self, register: i64, digest: &str) -> bool {
        self.from != From::MariadbQueryCache || register as i32 != 0 || !is_never_cached(digest)
    }

    /// The name of the class for a returned register.
    pub fn name(&self, register: i64) -> String {
        if register == OTHER_CLASSES {
            return "others".to_owned();
        }
        if register == NOT_CLASSIFIED {
            return "not classified".to_owned();
        }
        let value = match self.returns {
            Returns::Bool => register & 0xff,
            // The upper half of the register is undefined.
            Returns::I32 => i64::from(register as i32),
            Returns::I64 => register,
        };
        match (&self.from, value) {
            (From::MariadbQueryCache, 1) => "hit".to_owned(),
            (From::MariadbQueryCache, 0) => "miss".to_owned(),
            (From::MariadbQueryCache, -1) => "refused".to_owned(),
            (_, value) => value.to_string(),
        }
    }
}

/// Whether this is a statement that MariaDB's query cache never has. Digests of statements are in lower case, names of
/// commands in upper case; `turn` and `other` are of unknown ones.
fn is_never_cached(digest: &str) -> bool {
    let words = digest.trim_start_matches(['(', ' ']);
    let verb = words.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    words.starts_with(|c: char| c.is_ascii_lowercase())
        && !["select", "with", "turn", "other"].contains(&verb)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_read_or_refused() {
        let class: RequestClass = "uretprobe:/usr/sbin/x:is_hit:bool".parse().unwrap();
        assert_eq!(class.name(0xffff_ff01), "1");
        let class: RequestClass = "uretprobe:/usr/sbin/x:f".parse().unwrap();
        assert_eq!(class.name(0xffff_ffff), "-1");
        let class: RequestClass = "mariadb-query-cache".parse().unwrap();
        assert_eq!((class.name(1), class.name(0)), ("hit".to_owned(), "miss".to_owned()));
        for (digest, is_miss) in [("select ?", true), ("(select ?)", true), ("begin", false), ("turn", true)]
        {
            assert_eq!((class.is_of(0, digest), class.is_of(1, digest)), (is_miss, true), "{digest}");
        }
        assert!(class.is_of(0, "STMT_EXECUTE"));
        for nonsense in ["", "hit", "uretprobe:", "uretprobe:x", "uretprobe:x:y:u8", "uretprobe:x:y:i32:z"] {
            assert!(nonsense.parse::<RequestClass>().is_err(), "{nonsense}");
        }
    }
}
