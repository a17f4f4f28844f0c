//! Addresses to names: files and kernel by blazesym, inlined functions included; run-time code by its perf map.
//!
//! A name ends in `_[k]` for the kernel, `_[i]` for an inlined function and `_[j]` for run-time code, which
//! flame-graph tools colour. Code without a name is shown in brackets.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::AsRawFd;
use std::rc::Rc;

use blazesym::MaybeDefault;
use blazesym::symbolize::source::{Elf, Kernel, Process, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use record::stacks::clean_frame;

use super::perf_map::PerfMap;
use super::spaces::{Backing, Module, Spaces};

/// The meaning of an address: the functions there, the outermost first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meaning {
    pub frames: Vec<String>,
    /// The file or region that has no name for it; `None` when it has a name.
    pub nameless: Option<String>,
    /// In the C library, where threads begin and whose callers may be lost.
    pub in_libc: bool,
}

/// Resolves addresses, and caches the results.
pub struct Symbols {
    symbolizer: Symbolizer,
    spaces: Spaces,
    perf_maps: BTreeMap<u32, PerfMap>,
    /// Where this process has the kernel's vDSO: the same code as in every other process.
    own_vdso: Option<u64>,
    user: HashMap<(u32, u64), Rc<Meaning>>,
    kernel: HashMap<u64, Rc<Meaning>>,
}

impl Symbols {
    /// A resolver for the processes in `spaces`, with the perf maps of those that have run-time code, by pid.
    pub fn new(spaces: Spaces, perf_maps: BTreeMap<u32, PerfMap>) -> Symbols {
        Symbols {
            // Files are held open: their content does not change.
            symbolizer: Symbolizer::builder().enable_auto_reload(false).enable_code_info(true).build(),
            spaces,
            perf_maps,
            own_vdso: own_vdso(),
            user: HashMap::new(),
            kernel: HashMap::new(),
        }
    }

    /// The processes that it resolves for.
    pub fn spaces(&self) -> &Spaces {
        &self.spaces
    }

    /// The meaning of an address in a process; `called` when it is a return address, which may be after the
    /// function's end.
    pub fn user(&mut self, pid: u32, address: u64, called: bool) -> Rc<Meaning> {
        let address = address.saturating_sub(u64::from(called));
        if let Some(known) = self.user.get(&(pid, address)) {
            return Rc::clone(known);
        }
        let meaning = Rc::new(self.resolve_user(pid, address));
        self.user.insert((pid, address), Rc::clone(&meaning));
        meaning
    }

    /// The meaning of an address in the kernel.
    pub fn kernel(&mut self, address: u64) -> Rc<Meaning> {
        if let Some(known) = self.kernel.get(&address) {
            return Rc::clone(known);
        }
        let source =
            Source::Kernel(Kernel { vmlinux: MaybeDefault::None, debug_syms: false, ..Kernel::default() });
        let mut frames = self.ask(&source, Input::AbsAddr(address)).unwrap_or_default();
        for frame in &mut frames {
            frame.push_str("_[k]");
        }
        let nameless = frames.is_empty().then(|| "kernel".to_owned());
        if frames.is_empty() {
            frames.push("[kernel]_[k]".to_owned());
        }
        let meaning = Rc::new(Meaning { frames, nameless, in_libc: false });
        self.kernel.insert(address, Rc::clone(&meaning));
        meaning
    }

    fn resolve_user(&self, pid: u32, address: u64) -> Meaning {
        let found = self.spaces.of(pid).and_then(|space| space.find(address));
        let Some((backing, offset)) = found else { return self.run_time(pid, address, "unknown") };
        match backing {
            Backing::File { module, .. } => self.of_file(&module, offset),
            Backing::Vdso => {
                let process = Process::new(blazesym::Pid::Slf);
                let own = self.own_vdso.and_then(|start| {
                    self.ask(&Source::Process(process), Input::AbsAddr(start.checked_add(offset)?))
                });
                named(own, "vdso", false)
            }
            Backing::Anonymous => self.run_time(pid, address, "run-time code without a perf map"),
        }
    }

    fn of_file(&self, module: &Module, offset: u64) -> Meaning {
        let in_libc =
            ["libc.so", "libc-2", "ld-musl", "libpthread"].iter().any(|name| module.name.starts_with(name));
        let frames = module.file.as_ref().and_then(|file| {
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            self.ask(&Source::Elf(Elf::new(path)), Input::FileOffset(offset))
        });
        named(frames, &module.name, in_libc)
    }

    /// From the perf map of the process, if it has one with this address.
    fn run_time(&self, pid: u32, address: u64, otherwise: &str) -> Meaning {
        let name = self.perf_maps.get(&pid).and_then(|map| map.find(address));
        named(name.map(|name| vec![format!("{}_[j]", clean_frame(name))]), otherwise, false)
    }

    /// The functions at an address, the outermost first.
    fn ask(&self, source: &Source<'_>, input: Input<u64>) -> Option<Vec<String>> {
        let Ok(Symbolized::Sym(symbol)) = self.symbolizer.symbolize_single(source, input) else {
            return None;
        };
        let mut frames = vec![clean_frame(&symbol.name)];
        let inlined = symbol.inlined.iter().map(|inlined| format!("{}_[i]", clean_frame(&inlined.name)));
        frames.extend(inlined);
        Some(frames)
    }
}

fn named(frames: Option<Vec<String>>, otherwise: &str, in_libc: bool) -> Meaning {
    match frames {
        Some(frames) => Meaning { frames, nameless: None, in_libc },
        None => {
            let name = clean_frame(otherwise);
            Meaning { frames: vec![format!("[{name}]")], nameless: Some(name), in_libc }
        }
    }
}

fn own_vdso() -> Option<u64> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
    u64::from_str_radix(line.split_once('-')?.0, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_code_has_its_name() {
        let mut spaces = Spaces::default();
        let pid = std::process::id();
        spaces.look(pid, 0);
        let mut symbols = Symbols::new(spaces, BTreeMap::new());
        let meaning = symbols.user(pid, own_code_has_its_name as fn() as usize as u64, false);
        assert!(meaning.frames[0].contains("own_code_has_its_name"), "{meaning:?}");
        assert_eq!(meaning.nameless, None);
        assert_eq!(symbols.user(pid, 1, false).frames, ["[unknown]"]);
        let vdso = own_vdso().expect("this process has a vDSO");
        assert_eq!(
            symbols.user(pid, vdso, false).frames.len(),
            1,
            "the ELF header has no name, and no panic"
        );
    }
}
