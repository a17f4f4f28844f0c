//! The repository's files, read once, so that every check is a function from a [`Tree`] to findings.
//!
//! Contains what git tracks or would track; nothing that is ignored. Tests make trees in memory.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use anyhow::Context;

/// Paths from the root, with `/`, and their text; `None` for a file that is not text.
#[derive(Default)]
pub struct Tree {
    files: BTreeMap<String, Option<String>>,
}

impl Tree {
    /// Reads the repository at `root`; without git, every file outside of build directories.
    pub fn read(root: &Path) -> anyhow::Result<Tree> {
        let paths = match listed_by_git(root) {
            Some(paths) => paths,
            None => walked(root)?,
        };
        let mut tree = Tree::default();
        for path in paths {
            match fs::read(root.join(&path)) {
                Ok(bytes) => drop(tree.files.insert(path, String::from_utf8(bytes).ok())),
                // Listed, but deleted since; or a link to a directory.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) if error.kind() == io::ErrorKind::IsADirectory => {}
                Err(error) => return Err(error).with_context(|| format!("reading {path}")),
            }
        }
        Ok(tree)
    }

    /// The number of tracked files.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// The text of the file at `path`; `None` if there is none, or if it is not text.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path)?.as_deref()
    }

    /// Every file that is text, by path.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?)))
    }

    /// The text files whose path ends with `end`.
    pub fn ending<'a>(&'a self, end: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.texts().filter(move |(path, _)| path.ends_with(end))
    }

    /// Whether a file or a folder exists at `path`.
    pub fn has(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        self.files.contains_key(path) || self.files.keys().any(|file| file.starts_with(&folder))
    }

    /// A tree of these files, for tests.
    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Tree {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), Some((*text).to_owned())));
        Tree { files: files.collect() }
    }
}

/// What git tracks, and what is new and not ignored. `None` without git or a repository.
fn listed_by_git(root: &Path) -> Option<Vec<String>> {
    let output = Command::new("git")
        // A checkout that another user owns, as in containers, is still only listed.
        .args(["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .ok()?;
    if !output.status.success() {
        return None;
    }
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.split_terminator('\0').map(str::to_owned).collect())
}

fn walked(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(root.join(&folder)).with_context(|| format!("reading {folder}"))?;
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            if !entry.file_type()?.is_dir() {
                found.push(path);
            } else if !NOT_OURS.contains(&name.as_str()) {
                folders.push(path);
            }
        }
    }
    Ok(found)
}

/// Folders that are never part of the repository.
const NOT_OURS: &[&str] = &[".git", "target", "parallax-runs", "node_modules", "__pycache__"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_exists_when_a_file_lies_in_it() {
        let tree = Tree::of(&[("docs/style.md", "")]);
        assert!(tree.has("docs/style.md"));
        assert!(tree.has("docs"));
        assert!(!tree.has("doc"));
        assert!(!tree.has("docs/style"));
    }

    #[test]
    fn without_git_the_files_are_found_by_walking() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let found = walked(root).unwrap();
        assert!(found.contains(&"src/tree.rs".to_owned()));
    }
}
