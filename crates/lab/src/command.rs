//! A command of the user: its text with parameters, and how it is started.

use std::path::Path;
use std::process::Command;
use std::str::FromStr;

use database::without_password;

/// A name and its values, `threads=1,2,4`: each value makes a variant of every command, in which `{threads}` is
/// replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    pub name: String,
    /// At least one.
    pub values: Vec<String>,
}

impl FromStr for Parameter {
    type Err = String;

    fn from_str(text: &str) -> Result<Parameter, String> {
        let (name, values) =
            text.split_once('=').ok_or("write NAME=VALUE,VALUE, for example threads=1,2,4")?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(format!("`{name}` is no name: it consists of letters, digits, - and _"));
        }
        let values: Vec<String> = values.split(',').map(str::to_owned).collect();
        if values.iter().any(String::is_empty) {
            return Err(format!("`{text}` has an empty value"));
        }
        Ok(Parameter { name: name.to_owned(), values })
    }
}

/// What a command is, which decides what is measured of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `parallax drive …`: its record is compared.
    Drive,
    /// Any other program: its wall time, CPU time and memory are compared.
    Program,
}

/// The text of a command without open parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialCommand {
    text: String,
}

/// Characters that a shell would interpret: a text without them is started without one, so that no shell is measured.
const OF_THE_SHELL: &str = "|&;<>()$`\\\"'*?[]#~=%!{}\n\t";

impl TrialCommand {
    /// The command of `text`.
    ///
    /// # Errors
    ///
    /// One line if it is empty.
    pub fn new(text: &str) -> Result<TrialCommand, String> {
        let text = text.trim().to_owned();
        if text.is_empty() { Err("a command is empty".to_owned()) } else { Ok(TrialCommand { text }) }
    }

    /// The text as given, with the values of its parameters, without the passwords of databases.
    pub fn text(&self) -> String {
        without_password(&self.text)
    }

    pub(crate) fn kind(&self) -> Kind {
        let mut words = self.text.split_whitespace();
        let program = words.next().map(Path::new).and_then(Path::file_name);
        let is_drive = program.is_some_and(|name| name == "parallax") && words.next() == Some("drive");
        if is_drive { Kind::Drive } else { Kind::Program }
    }

    /// The command with `more` arguments at its end. `parallax` alone is `program`: it need not be on the PATH.
    pub(crate) fn command(&self, program: &Path, more: &[&str]) -> Command {
        if self.text.contains(|c| OF_THE_SHELL.contains(c)) {
            return self.by_shell(program, more);
        }
        let mut words = self.text.split_whitespace();
        let first = words.next().unwrap_or_default();
        let is_ours = first == "parallax";
        let mut command = if is_ours { Command::new(program) } else { Command::new(first) };
        command.args(words).args(more);
        command
    }

    /// The command by a shell, also if it needs none: for what is not measured, and may be a builtin.
    pub(crate) fn by_shell(&self, program: &Path, more: &[&str]) -> Command {
        let mut command = Command::new("sh");
        let text = match self.text.strip_prefix("parallax ") {
            Some(rest) => format!("\"$0\" {rest}"),
            None => self.text.clone(),
        };
        let all = if more.is_empty() { text } else { format!("{text} \"$@\"") };
        command.arg("-c").arg(all).arg(program).args(more);
        command
    }
}

/// `text` with each `{name}` replaced by its value.
pub(crate) fn filled(text: &str, values: &[(String, String)]) -> String {
    values.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str, more: &[&str]) -> Vec<String> {
        let command = TrialCommand::new(text).unwrap().command(Path::new("/opt/parallax"), more);
        let all = std::iter::once(command.get_program()).chain(command.get_args());
        all.map(|word| word.to_string_lossy().into_owned()).collect()
    }

    /// If this fails, the time of a shell is part of what is measured.
    #[test]
    fn a_shell_is_used_only_for_what_needs_one() {
        assert_eq!(words("sleep 0.1", &[]), ["sleep", "0.1"]);
        assert_eq!(words("a | b", &[]), ["sh", "-c", "a | b", "/opt/parallax"]);
        assert_eq!(
            words("parallax drive -r 5/s http://h/", &["-o", "x"]),
            ["/opt/parallax", "drive", "-r", "5/s", "http://h/", "-o", "x"]
        );
        assert_eq!(
            words("parallax drive -H 'A: b' http://h/", &["-o", "x"]),
            ["sh", "-c", "\"$0\" drive -H 'A: b' http://h/ \"$@\"", "/opt/parallax", "-o", "x"]
        );
    }

    #[test]
    fn a_line_of_drive_is_known_by_its_first_words() {
        let kind = |text| TrialCommand::new(text).unwrap().kind();
        assert_eq!(kind("parallax drive http://h/"), Kind::Drive);
        assert_eq!(kind("target/release/parallax  drive http://h/"), Kind::Drive);
        assert_eq!(kind("parallax serve"), Kind::Program);
        assert_eq!(kind("./drive"), Kind::Program);
        assert!(TrialCommand::new("  ").is_err());
    }

    #[test]
    fn parameters_have_a_name_and_values() {
        let parameter: Parameter = "threads=1,2".parse().unwrap();
        assert_eq!(parameter.values, ["1", "2"]);
        for wrong in ["threads", "=1", "a b=1", "threads=1,,2"] {
            assert!(wrong.parse::<Parameter>().is_err(), "{wrong}");
        }
        let values = [("n".to_owned(), "4".to_owned())];
        assert_eq!(filled("run -j{n} {m}", &values), "run -j4 {m}");
    }
}
