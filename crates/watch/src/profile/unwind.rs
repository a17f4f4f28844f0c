//! How the code of the C library finds its callers: the unwind rules that the file has for debuggers and exceptions
//! (`.eh_frame`) are written into the kernel's table, reduced to numbers of words.
//!
//! The library is built without frame pointers, and uses their register for other values. Threads wait inside it, so
//! the stack of a wait would end there, or continue from a random value.

use std::rc::Rc;

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, LittleEndian, RegisterRule, UnwindContext, UnwindSection,
    UnwindTableRow, X86_64,
};
use object::{Object, ObjectSection, ObjectSegment};

use super::layout::{BASE_FRAME, BASE_STACK, BASE_UNKNOWN, LIBRARIES, Libraries, Library, RULES, Rule};
use super::programs::Programs;
use super::spaces::{Module, Space};

/// The libraries whose rules are in the kernel's table.
#[derive(Default)]
pub struct Unwinding {
    known: Vec<(Rc<Module>, Option<Placed>)>,
    used: u32,
}

/// The place of a file's rules in the kernel's table.
struct Placed {
    first: u32,
    count: u32,
    segments: Vec<Segment>,
}

/// A part of a file: its offset there, and the address at which it was linked.
struct Segment {
    offset: u64,
    length: u64,
    address: u64,
}

impl Unwinding {
    /// Loads the rules of a process's libraries into the kernel. Code without rules is walked by frame pointers.
    pub fn load(&mut self, pid: u32, space: &Space, programs: &Programs) {
        let mut all = Libraries::default();
        let mut room = all.of.iter_mut();
        for code in space.code(is_library) {
            let Some(placed) = self.placed(&code.module, programs) else { continue };
            let Some(segment) = placed.segments.iter().find(|segment| segment.holds(code.offset)) else {
                continue;
            };
            let linked_at = segment.address + (code.offset - segment.offset);
            let Some(place) = room.next() else { break };
            *place = Library {
                start: code.start,
                end: code.end,
                bias: code.start.wrapping_sub(linked_at),
                first: placed.first,
                count: placed.count,
            };
        }
        programs.set_libraries(pid, &all);
    }

    fn placed(&mut self, module: &Rc<Module>, programs: &Programs) -> Option<&Placed> {
        let at = self.known.iter().position(|(known, _)| Rc::ptr_eq(known, module)).unwrap_or_else(|| {
            let placed = self.place(module, programs);
            self.known.push((Rc::clone(module), placed));
            self.known.len() - 1
        });
        self.known[at].1.as_ref()
    }

    fn place(&mut self, module: &Module, programs: &Programs) -> Option<Placed> {
        let bytes = module.bytes()?;
        let file = object::File::parse(&*bytes).ok()?;
        let rules = rules(&file)?;
        let count = u32::try_from(rules.len()).ok()?;
        let first = self.used;
        if first + count > RULES {
            return None;
        }
        programs.set_rules(first, &rules)?;
        self.used += count;
        let segments = file.segments().map(|segment| {
            let (offset, length) = segment.file_range();
            Segment { offset, length, address: segment.address() }
        });
        Some(Placed { first, count, segments: segments.collect() })
    }
}

impl Segment {
    fn holds(&self, offset: u64) -> bool {
        offset >= self.offset && offset - self.offset < self.length
    }
}

/// Whether its functions wait. Where threads are a separate library, they wait there.
fn is_library(name: &str) -> bool {
    const NAMES: [&str; LIBRARIES + 1] = ["libc.so", "libc-2", "libpthread", "libstdc++.so"];
    NAMES.iter().any(|known| name.starts_with(known))
}

/// The rules of a file in the order of their addresses; `None` if it has none.
fn rules(file: &object::File<'_>) -> Option<Vec<Rule>> {
    let section = file.section_by_name(".eh_frame")?;
    let data = section.uncompressed_data().ok()?;
    let frames = EhFrame::new(&data, LittleEndian);
    let address_of = |name: &str| file.section_by_name(name).map_or(0, |section| section.address());
    let bases = BaseAddresses::default().set_eh_frame(section.address()).set_text(address_of(".text"));
    let mut context = UnwindContext::new();
    let mut all = Vec::new();
    let mut entries = frames.entries(&bases);
    // Entries that cannot be parsed give no rule: the walk ends there.
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let Ok(function) = partial.parse(EhFrame::cie_from_offset) else { continue };
        let Ok(mut rows) = function.rows(&frames, &bases, &mut context) else { continue };
        while let Ok(Some(row)) = rows.next_row() {
            all.extend(Rule::of(row));
        }
        all.extend(Rule::at(function.end_address()));
    }
    // Where one function begins at the end of another, the later rule is the valid one.
    all.sort_by_key(|rule| (rule.at, rule.base != BASE_UNKNOWN));
    all.dedup_by(|later, kept| {
        let same_place = later.at == kept.at;
        if same_place {
            *kept = *later;
        }
        same_place
    });
    all.dedup_by(|later, kept| (later.words, later.base, later.saved) == (kept.words, kept.base, kept.saved));
    (!all.is_empty()).then_some(all)
}

impl Rule {
    /// Marks that nothing is known from an address on.
    fn at(address: u64) -> Option<Rule> {
        Some(Rule { at: u32::try_from(address).ok()?, words: 0, base: BASE_UNKNOWN, saved: 0 })
    }

    fn of(row: &UnwindTableRow<usize>) -> Option<Rule> {
        let unknown = Rule::at(row.start_address())?;
        Some(Rule::known(row, unknown).unwrap_or(unknown))
    }

    fn known(row: &UnwindTableRow<usize>, begin: Rule) -> Option<Rule> {
        let CfaRule::RegisterAndOffset { register, offset } = *row.cfa() else { return None };
        let base = match register {
            X86_64::RSP => BASE_STACK,
            X86_64::RBP => BASE_FRAME,
            _ => return None,
        };
        // The outermost function is marked as having no caller.
        if row.register(X86_64::RA) != Some(RegisterRule::Offset(-8)) {
            return None;
        }
        let saved = match row.register(X86_64::RBP) {
            None | Some(RegisterRule::SameValue) => 0,
            Some(RegisterRule::Offset(below)) => u8::try_from(words(below.checked_neg()?)?).ok()?,
            Some(_) => return None,
        };
        Some(Rule { words: u16::try_from(words(offset)?).ok()?, base, saved, ..begin })
    }
}

fn words(bytes: i64) -> Option<i64> {
    (bytes > 0 && bytes % 8 == 0).then_some(bytes / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The C library that this test runs with.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_c_library_has_rules_for_its_waits() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let path = maps.lines().filter_map(|line| line.split_ascii_whitespace().last());
        let path =
            path.into_iter().find(|path| path.contains("/libc.so") || path.contains("/libc-2")).unwrap();
        let bytes = std::fs::read(path).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let rules = rules(&file).unwrap();
        assert!(rules.len() < RULES as usize / 2, "{}", rules.len());
        assert!(rules.is_sorted_by(|a, b| a.at < b.at));
        let wait = file.exports().unwrap().into_iter();
        let wait = wait.filter(|symbol| symbol.name() == b"pthread_cond_wait").map(|symbol| symbol.address());
        let wait = u32::try_from(wait.max().expect("it has this function")).unwrap();
        let begin = rules.partition_point(|rule| rule.at <= wait) - 1;
        // Just called: the return address is on top of the stack, and the register still has the caller's value.
        assert_eq!(rules[begin], Rule { at: rules[begin].at, words: 1, base: BASE_STACK, saved: 0 });
    }

    #[test]
    fn an_offset_of_a_fraction_of_a_word_has_no_rule() {
        assert_eq!([16, 8, 0, -8, 12].map(words), [Some(2), Some(1), None, None, None]);
        assert!(is_library("libc.so.6") && is_library("libpthread-2.31.so") && !is_library("libcap.so.2"));
    }
}
