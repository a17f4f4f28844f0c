//! A Python environment with pinned packages, made once under the build folder; and httpbin under gunicorn in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

use super::leash::Leash;
use super::nginx::try_fetch;
use super::{binary, port};

/// The environment's interpreter.
pub fn python() -> &'static Path {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let folder = binary::target().join("e2e-venv");
        let wanted = include_str!("../../requirements.txt");
        // Written last, so a directory without it is incomplete.
        let marker = folder.join("installed.txt");
        if !fs::read_to_string(&marker).is_ok_and(|installed| installed == wanted) {
            install(&folder);
            fs::write(&marker, wanted).unwrap();
        }
        folder.join("bin/python")
    })
}

fn install(folder: &Path) {
    let made = Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder).output();
    let made = made.is_ok_and(|output| output.status.success());
    assert!(made, "no python3 with its venv module here: run scripts/setup test");
    let requirements = binary::root().join("tests/e2e/requirements.txt");
    let output = Command::new(folder.join("bin/python"))
        .args(["-m", "pip", "install", "--quiet", "--require-hashes", "-r"])
        .arg(requirements)
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "pip cannot install tests/e2e/requirements.txt: {message}");
}

/// httpbin with eight threads.
pub struct Httpbin {
    _process: Leash,
    _folder: TempDir,
    port: u16,
}

impl Httpbin {
    pub fn start() -> Httpbin {
        let folder = tempfile::tempdir().unwrap();
        let port = port::free();
        let address = format!("127.0.0.1:{port}");
        let python = python().to_str().unwrap();
        let mut command = vec![python, "-m", "gunicorn", "--bind", &address];
        command.extend(["--worker-class", "gthread", "--threads", "8", "--keep-alive", "75"]);
        command.extend(["--chdir", folder.path().to_str().unwrap(), "httpbin:app"]);
        let mut process = Leash::start(&command, &folder.path().join("gunicorn.log"));
        // gunicorn listens before its worker has loaded the application.
        process.wait_until(|| try_fetch(port, "/get").is_ok());
        Httpbin { _process: process, _folder: folder, port }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}
