//! Replaces the disk in tests: keeps every write in order, and can be full.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex};

use super::Files;

/// One write, as a journal keeps it.
#[derive(Debug, Clone)]
pub(crate) enum Write {
    Create(String),
    Append(String, Vec<u8>),
    Cut(String, u64),
    Replace(String, Vec<u8>),
}

/// Replaces the disk: keeps every write in order, and can be full.
#[derive(Clone, Default)]
pub(crate) struct Journal {
    writes: Arc<Mutex<Vec<Write>>>,
    /// How many more bytes fit; `None` for an unlimited disk.
    room: Arc<Mutex<Option<usize>>>,
    cut_fails: Arc<Mutex<bool>>,
}

impl Journal {
    fn push(&self, write: Write) {
        self.writes.lock().unwrap().push(write);
    }

    pub(crate) fn set_room(&self, room: Option<usize>) {
        *self.room.lock().unwrap() = room;
    }

    pub(crate) fn set_cut_fails(&self, fails: bool) {
        *self.cut_fails.lock().unwrap() = fails;
    }

    pub(crate) fn writes(&self) -> Vec<Write> {
        self.writes.lock().unwrap().clone()
    }

    /// Creates the directory that results from all writes together.
    pub(crate) fn replay(&self, folder: &Path) {
        self.writes.lock().unwrap().iter().for_each(|write| apply(folder, write));
    }
}

impl Files for Journal {
    fn create(&mut self, name: &str) -> io::Result<()> {
        self.push(Write::Create(name.to_owned()));
        Ok(())
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut room = self.room.lock().unwrap();
        let fits = room.map_or(bytes.len(), |room| room.min(bytes.len()));
        *room = room.map(|room| room - fits);
        self.push(Write::Append(name.to_owned(), bytes[..fits].to_vec()));
        if fits < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn cut(&mut self, name: &str, len: u64) -> io::Result<()> {
        if *self.cut_fails.lock().unwrap() {
            return Err(io::ErrorKind::Other.into());
        }
        self.push(Write::Cut(name.to_owned(), len));
        Ok(())
    }

    fn replace(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.push(Write::Replace(name.to_owned(), bytes.to_vec()));
        Ok(())
    }
}

pub(crate) fn apply(folder: &Path, write: &Write) {
    match write {
        Write::Create(name) => drop(fs::File::create_new(folder.join(name)).unwrap()),
        Write::Append(name, bytes) => {
            let mut file = fs::OpenOptions::new().append(true).open(folder.join(name)).unwrap();
            file.write_all(bytes).unwrap();
        }
        Write::Cut(name, len) => {
            fs::OpenOptions::new().write(true).open(folder.join(name)).unwrap().set_len(*len).unwrap();
        }
        Write::Replace(name, bytes) => fs::write(folder.join(name), bytes).unwrap(),
    }
}
