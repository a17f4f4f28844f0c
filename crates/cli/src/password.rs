//! Hides a password that is part of the command line, which every user of the host can read in `/proc/PID/cmdline`.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;

use database::password_ranges;

/// Overwrites the passwords in the URLs of databases in `arguments`, which are this process's own, in the memory
/// that the kernel shows. Returns the line for the user, if there was one.
pub fn hide(arguments: &[OsString]) -> Option<String> {
    let mut secrets = Vec::new();
    let mut begin = 0;
    for argument in arguments {
        let ranges = argument.to_str().map(password_ranges).unwrap_or_default();
        let ranges = ranges.into_iter().filter(|range| !range.is_empty());
        secrets.extend(ranges.map(|range| begin + range.start..begin + range.end));
        begin += argument.as_bytes().len() + 1;
    }
    if secrets.is_empty() {
        return None;
    }
    let advice = "give it with --password-file FILE or MYSQL_PWD, PGPASSWORD or REDISCLI_AUTH";
    Some(match overwrite(&secrets) {
        Ok(()) => format!("other users of this host could see the password in the URL until now; {advice}"),
        Err(error) => {
            format!("other users of this host can see the password in the URL ({error}); {advice}")
        }
    })
}

/// By way of a file, because a pointer to the arguments would be unsafe.
fn overwrite(ranges: &[std::ops::Range<usize>]) -> io::Result<()> {
    let (begin, end) = arguments_in_memory()?;
    let memory = File::options().write(true).open("/proc/self/mem")?;
    for range in ranges {
        let at = begin + range.start as u64;
        if at + range.len() as u64 > end {
            return Err(io::Error::other("the command line was changed"));
        }
        memory.write_all_at(&vec![b'*'; range.len()], at)?;
    }
    Ok(())
}

/// Where the kernel finds the command line of this process: fields 48 and 49 of proc_pid_stat(5).
fn arguments_in_memory() -> io::Result<(u64, u64)> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The second field, the name, may contain spaces; the third one follows its bracket.
    let fields: Vec<&str> =
        stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect()).unwrap_or_default();
    let field = |number: usize| fields.get(number - 3).and_then(|text| text.parse().ok());
    match (field(48), field(49)) {
        (Some(begin), Some(end)) if begin > 0 => Ok((begin, end)),
        _ => Err(io::Error::other("the kernel does not say where the command line is")),
    }
}
