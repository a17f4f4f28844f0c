//! Run times whose functions have no machine code of their own, or publish no names for it: one line each says what to
//! do.
//!
//! A stack then shows the interpreter's functions in their place. With a perf map the names are there, and nothing is
//! said. The JVM is not here: it is asked for its names.

use std::collections::BTreeMap;

use super::spaces::Space;

/// A run time, recognised by the files that a process maps for execution.
struct Interpreter {
    name: &'static str,
    /// Beginnings of file names, up to a version.
    files: &'static [&'static str],
    fix: &'static str,
}

const KNOWN: &[Interpreter] = &[
    Interpreter {
        name: "JavaScript",
        files: &["node", "nodejs", "libnode"],
        fix: "start node with --perf-basic-prof",
    },
    Interpreter {
        name: "Python",
        files: &["python", "libpython"],
        fix: "start CPython 3.12 or later with -X perf, built with frame pointers",
    },
    Interpreter {
        name: "Ruby",
        files: &["ruby", "libruby"],
        fix: "only methods compiled by YJIT have names, with --yjit-perf",
    },
    Interpreter {
        name: "PHP",
        files: &["php", "php-fpm", "php-cgi", "libphp", "mod_php"],
        fix: "only code compiled by its JIT has names, with opcache.jit_debug=16",
    },
    Interpreter { name: ".NET", files: &["libcoreclr"], fix: "start it with DOTNET_PerfMapEnabled=1" },
    Interpreter { name: "Erlang", files: &["beam.smp", "beam"], fix: "start it with +JPperf true" },
    Interpreter { name: "Perl", files: &["perl", "libperl"], fix: "Perl publishes no names" },
    Interpreter {
        name: "Lua",
        files: &["lua", "luajit", "liblua", "libluajit"],
        fix: "Lua publishes no names",
    },
];

/// The interpreters of processes without a perf map.
#[derive(Debug, Default)]
pub struct NotUnwound {
    /// By the run time's place in the table: how many processes, and the pid of the first.
    found: BTreeMap<usize, (usize, u32)>,
}

impl NotUnwound {
    /// Notes the interpreter of a process that has no perf map, if it is one.
    pub fn note(&mut self, pid: u32, space: &Space) {
        let is_mapped = |interpreter: &Interpreter| {
            space.code(|file| interpreter.files.iter().any(|name| is_version_of(file, name))).next().is_some()
        };
        if let Some(place) = KNOWN.iter().position(is_mapped) {
            self.found.entry(place).or_insert((0, pid)).0 += 1;
        }
    }

    /// A line for each run time.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.found.iter().map(|(place, (processes, first))| {
            let Interpreter { name, fix, .. } = KNOWN[*place];
            let which = match processes {
                1 => format!("process {first}"),
                n => format!("{n} processes, such as {first}"),
            };
            format!("{name} functions are not unwound: {which} shows those of the run time instead; {fix}")
        })
    }
}

/// Whether `file` is `name`, perhaps with a version or an ending.
fn is_version_of(file: &str, name: &str) -> bool {
    file.strip_prefix(name)
        .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_time_is_known_by_its_file() {
        assert!(is_version_of("python3.11", "python") && is_version_of("libpython3.12.so.1.0", "libpython"));
        assert!(is_version_of("node", "node") && !is_version_of("node_exporter", "node"));
        assert!(is_version_of("php-fpm8.2", "php-fpm") && !is_version_of("phpize", "php"));
        assert!(!is_version_of("perlin", "perl"));
    }
}
