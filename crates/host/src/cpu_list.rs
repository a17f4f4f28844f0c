//! Lists of CPUs as users write them: `0,2-3`.

/// CPUs by number, each once, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuList(pub Vec<usize>);

/// Parses `0,2-3`.
///
/// # Errors
///
/// Why the text is not such a list, in one line.
pub fn cpu_list(text: &str) -> Result<CpuList, String> {
    let wrong = || format!("`{text}` is no list of CPUs; write it like 0,2-3");
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<usize>().map_err(|_| wrong());
        let (first, last) = (number(first)?, number(last)?);
        if first > last || last >= CPUS_MAX {
            return Err(wrong());
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(CpuList(cpus))
}

/// The size of a CPU set in the kernel's interface.
const CPUS_MAX: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_people_write_them() {
        assert_eq!(cpu_list("3,0-1,1").unwrap(), CpuList(vec![0, 1, 3]));
        for wrong in ["", "a", "3-1", "0-99999999", "-1"] {
            assert!(cpu_list(wrong).is_err(), "{wrong}");
        }
    }
}
