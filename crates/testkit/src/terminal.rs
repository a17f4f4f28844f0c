//! A pseudo-terminal, created by `script` of util-linux, in which the binary under test runs: its output, its keys, and
//! the terminal's modes after it has ended.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use units::Nanos;

use crate::{binary, wait};

/// The control sequences that begin and end a full-screen view.
pub const ENTERS: &str = "\u{1b}[?1049h";
pub const LEAVES: &str = "\u{1b}[?1049l";

/// Longer than any step takes, even on a busy machine.
const LONGEST: Nanos = Nanos::from_secs(30);

/// The file with the terminal's output, in the directory in which the binary runs.
const TYPESCRIPT: &str = "typescript";

/// A program in a terminal. Killed when dropped.
pub struct Terminal<'a> {
    script: Child,
    folder: &'a Path,
}

/// The state of a terminal after its program has ended.
#[derive(Debug)]
pub struct Ended {
    /// The output before the view left the screen, and after.
    pub view: String,
    pub after: String,
    pub code: i32,
}

impl<'a> Terminal<'a> {
    /// Runs `parallax ARGUMENTS` in the directory `folder`, in a terminal of the given size.
    ///
    /// # Panics
    ///
    /// If `script` is not installed. All functions here panic if the binary does not do what they wait for.
    pub fn start(folder: &'a Path, (rows, columns): (u16, u16), arguments: &str) -> Terminal<'a> {
        // Ctrl-C goes to the shell as well, and would end some shells before they print the exit code.
        let line = format!(
            "trap : INT; stty rows {rows} cols {columns}; {} {arguments}; echo EXIT=$?; stty -a",
            binary::parallax().display()
        );
        let script = Command::new("script")
            .args(["-qefc", &line, TYPESCRIPT])
            .current_dir(folder)
            .env("TERM", "xterm-256color")
            .env("SHELL", "/bin/sh")
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("script is of util-linux");
        Terminal { script, folder }
    }

    /// The output of the terminal. Leaves out the first line of the file, in which `script` repeats the command.
    pub fn shown(&self) -> String {
        let text = fs::read(self.folder.join(TYPESCRIPT)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        text.split_once('\n').map_or_else(String::new, |(_, shown)| shown.to_owned())
    }

    /// Waits until the terminal has shown `text`; panics if that takes too long.
    #[track_caller]
    pub fn wait_for(&self, text: &str) {
        assert!(wait::until(LONGEST, || self.shown().contains(text)), "no `{text}`: {}", self.shown());
    }

    /// Types `keys`.
    pub fn press(&mut self, keys: &str) {
        let keyboard = self.script.stdin.as_mut().expect("its input is a pipe");
        keyboard.write_all(keys.as_bytes()).expect("the terminal reads keys");
        keyboard.flush().expect("a pipe keeps nothing back");
    }

    /// Sends a signal to the binary under test.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.parallax()).expect("process ids are positive"))
            .expect("no process has the id 0");
        kill_process(pid, signal).expect("the binary under test still runs");
    }

    /// Changes the size of the terminal, which notifies the program.
    pub fn resize(&self, rows: u16, columns: u16) {
        let terminal = fs::read_link(format!("/proc/{}/fd/2", self.parallax()))
            .expect("the binary under test still runs");
        let mut stty = Command::new("stty");
        stty.arg("-F").arg(terminal).args(["rows", &rows.to_string(), "cols", &columns.to_string()]);
        assert!(stty.status().expect("stty is everywhere").success());
    }

    fn parallax(&self) -> u32 {
        let only_child = |pid: u32| -> u32 {
            let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
            let children = children.expect("the binary under test still runs");
            children
                .split_whitespace()
                .next()
                .and_then(|child| child.parse().ok())
                .expect("the shell runs the binary")
        };
        only_child(only_child(self.script.id()))
    }

    /// Waits for the end of the program, and checks that the terminal's modes are as before.
    pub fn finish(mut self) -> Ended {
        self.wait_for("EXIT=");
        // The output of `stty` follows it.
        let _ = self.script.wait();
        let shown = self.shown();
        let (output, ended) = shown.rsplit_once("EXIT=").expect("EXIT= has just been seen");
        let (code, modes) = ended.split_once(char::is_whitespace).expect("stty speaks after EXIT=");
        for mode in ["icanon", "echo", "isig", "ixon"] {
            assert!(modes.split_whitespace().any(|word| word == mode), "{mode}: {modes}");
        }
        assert!(modes.contains("susp = ^Z"), "{modes}");
        let (view, after) = output.rsplit_once(LEAVES).unwrap_or(("", output));
        Ended {
            view: view.to_owned(),
            after: after.to_owned(),
            code: code.parse().expect("$? of a shell is a number"),
        }
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}
