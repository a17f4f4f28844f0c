//! The lines of an observer on another host, and the archive after them.

use std::io;
use std::path::Path;

use run::companion::remote::Comparison;
use run::companion::{archive, wire};

use crate::archives;
use crate::mutation::Draw;

/// More exchanges than any run of this test has.
const MOST_EXCHANGES: usize = 1_000;

/// Compares clocks until the far side closes its record, and unpacks what follows.
pub fn fuzzer(root: &Path) -> Box<dyn FnMut(&mut Draw)> {
    let (root, folder) = (root.to_owned(), root.join("folder"));
    archives::put_outside(&root);
    Box::new(move |draw| {
        let sent = sent(draw);
        // Its messages are read as lines too, each of which may be that it is ready.
        for line in String::from_utf8_lossy(&sent).lines() {
            let _ = wire::Ready::read(line);
        }
        let mut output = &sent[..];
        let Ok(Some(place)) = wire::line(&mut output) else { return };
        assert!(place.len() as u64 <= 3 * wire::LONGEST_LINE, "{} bytes", place.len());
        let mut comparison = Comparison::new(io::sink(), output, record::escape_text(&place));
        let mut is_open = true;
        for _ in 0..MOST_EXCHANGES {
            match comparison.compare(1 + draw.below(3)) {
                Ok(true) => {}
                Ok(false) => {
                    is_open = false;
                    break;
                }
                Err(_) => return,
            }
        }
        let Ok((readings, rest)) = comparison.close(is_open) else { return };
        for pair in readings.windows(2) {
            assert!(pair[0].at_ns < pair[1].at_ns);
        }
        let _ = archive::unpack(rest, &folder);
        archives::check(&root, &folder, sent.len() as u64);
        let _ = std::fs::remove_dir_all(&folder);
    })
}

fn sent(draw: &mut Draw) -> Vec<u8> {
    let mut text = "/tmp/parallax-0123456789\n".to_owned();
    let mut now = draw.number() >> draw.below(40);
    for _ in 0..draw.below(20) {
        now = now.wrapping_add(draw.number() >> 34);
        text.push_str(&format!("{now}\n"));
    }
    text.push_str("closed\n");
    let mut bytes = text.into_bytes();
    if draw.one_in(2) {
        draw.damage(&mut bytes);
    }
    bytes.extend(archives::archive(draw));
    bytes
}
