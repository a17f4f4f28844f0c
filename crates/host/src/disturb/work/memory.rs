//! Allocates memory, touches it page by page, and frees it at the end.

use std::io;

use units::Nanos;

use super::{Window, fact};
use crate::disturb::conduct::Fact;

/// The smallest page of any Linux: touching more often than needed is harmless.
const PAGE: u64 = 4_096;

/// Pages between two readings of the clock: a megabyte.
const STRIDE: u64 = 256;

/// Holds `bytes` of memory until the window closes. With a rate, pages are touched in turn, repeatedly, that many
/// bytes per second; without, all are touched once, as fast as possible.
pub(super) fn hold(bytes: u64, bytes_per_s: Option<u64>, window: &Window) -> io::Result<Vec<Fact>> {
    let size = usize::try_from(bytes).map_err(io::Error::other)?;
    let mut memory: Vec<u8> = Vec::new();
    memory
        .try_reserve_exact(size)
        .map_err(|_| io::Error::other(format!("the kernel refuses {bytes} bytes of memory")))?;
    let begin = clock::now();
    let pages = bytes.div_ceil(PAGE).max(1);
    let (mut touched, mut all_touched) = (0, None);
    while window.is_open() {
        let due = bytes_per_s.map(|rate| due_pages(rate, clock::now() - begin));
        let wanted = due.unwrap_or(pages).min(touched + STRIDE);
        if wanted <= touched {
            let next = bytes_per_s.map_or(Nanos::MAX, |_| clock::now() + Nanos::from_millis(1));
            window.sleep_until(next);
            continue;
        }
        let room = memory.spare_capacity_mut();
        for n in touched..wanted {
            // Within `size`, so within the address space.
            room[((n % pages) * PAGE) as usize].write(n as u8);
        }
        touched = wanted;
        if touched >= pages {
            all_touched.get_or_insert(clock::now() - begin);
        }
    }
    let held = (touched.min(pages) * PAGE).min(bytes);
    let mut facts = vec![fact("held_bytes", held), fact("touched_bytes", touched * PAGE)];
    // Absent if the time was too short to touch all.
    facts.extend(all_touched.map(|time| fact("filled_max_ns", time.0)));
    Ok(facts)
}

fn due_pages(bytes_per_s: u64, elapsed: Nanos) -> u64 {
    let bytes = u128::from(bytes_per_s) * u128::from(elapsed.0) / 1_000_000_000;
    u64::try_from(bytes / u128::from(PAGE)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(facts: &[Fact], name: &str) -> u64 {
        facts.iter().find(|fact| fact.name == name).unwrap().value
    }

    #[test]
    fn no_more_memory_is_taken_than_asked_for() {
        let window = Window::until(clock::now() + Nanos::from_millis(200));
        let facts = hold(3 << 20, None, &window).unwrap();
        assert_eq!(of(&facts, "held_bytes"), 3 << 20);
        assert_eq!(of(&facts, "touched_bytes"), 3 << 20);
        assert!(of(&facts, "filled_max_ns") > 0);
    }

    #[test]
    fn a_rate_touches_pages_repeatedly() {
        let begin = clock::now();
        let window = Window::until(begin + Nanos::from_millis(100));
        let facts = hold(1 << 20, Some(100 << 20), &window).unwrap();
        let most = u128::from((clock::now() - begin).0) * (100 << 20) / 1_000_000_000;
        assert!(u128::from(of(&facts, "touched_bytes")) <= most, "{facts:?}");
        assert_eq!(of(&facts, "held_bytes"), 1 << 20);
    }

    #[test]
    fn a_refusal_of_the_kernel_is_reported() {
        let window = Window::until(Nanos::MAX);
        assert!(hold(1 << 62, None, &window).unwrap_err().to_string().contains("refuses"));
    }
}
