//! What users of other tools type, and what to write here instead: the rows of `habits.txt`.

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Habit {
    /// A command line after `parallax`, with kinds of values in capitals.
    pub typed: &'static str,
    /// What to write instead; `{}` is the value.
    pub hint: &'static str,
    /// A command line that is accepted; `-` if there is none.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests run it, to show that the hint works"))]
    pub instead: &'static str,
}

/// Every row, in order.
pub fn habits() -> impl Iterator<Item = Habit> {
    let rows = include_str!("habits.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    rows.map(|row| {
        let mut columns = row.split(" | ").skip(1).map(str::trim);
        let mut column = || columns.next().expect("every row of the table has four columns");
        Habit { typed: column(), hint: column(), instead: column() }
    })
}

/// The hint for an unknown option of `verb`. Any value matches if the table has none.
pub fn unknown_option(verb: &str, flag: &str, value: &str) -> Option<String> {
    let row =
        habits().find(|row| row.is_about(verb, flag) && (row.kind() == "URL" || is_a(row.kind(), value)))?;
    Some(row.hint_for(flag, value))
}

/// The hint for an option of `verb` whose value is invalid.
pub fn refused_value(verb: &str, flag: &str, value: &str) -> Option<String> {
    let row = habits().find(|row| row.is_about(verb, flag) && is_a(row.kind(), value))?;
    Some(row.hint_for(flag, value))
}

/// The hint for an unknown verb.
pub fn unknown_verb(verb: &str) -> Option<String> {
    let row = habits().find(|row| row.typed.split(' ').next() == Some(verb))?;
    Some(format!("`{verb}` is not a verb: {}", row.hint))
}

impl Habit {
    fn is_about(&self, verb: &str, flag: &str) -> bool {
        let mut words = self.typed.split(' ');
        let is_flag = |word: &str| name(word) == flag || (!word.starts_with('-') && is_a(word, flag));
        words.next() == Some(verb) && words.next().is_some_and(is_flag)
    }

    /// The kind of value after the option; `URL` if it has none.
    fn kind(&self) -> &'static str {
        self.typed.split(' ').nth(2).filter(|word| !word.starts_with('-')).unwrap_or("URL")
    }

    fn hint_for(&self, flag: &str, value: &str) -> String {
        let value = if flag.starts_with('-') { value } else { flag };
        format!("`{flag}`: {}", self.hint.replace("{}", value))
    }
}

/// An option without the value that is attached to it by `=`.
pub fn name(option: &str) -> &str {
    option.split('=').next().unwrap_or(option)
}

/// Whether `value` is of this `kind`, as the table defines them.
fn is_a(kind: &str, value: &str) -> bool {
    let begins_with_digit = value.starts_with(|first: char| first.is_ascii_digit());
    let is_number = begins_with_digit && value.chars().all(|c| c.is_ascii_digit() || c == '.');
    let ends_in_unit = begins_with_digit && value.ends_with(|last: char| last.is_ascii_alphabetic());
    match kind {
        "N" => is_number,
        "TIME" => ends_in_unit,
        "TIME:N" => begins_with_digit && value.contains(':'),
        "TEXT" => !value.is_empty() && !begins_with_digit,
        "URL" => value.contains("://"),
        literal => literal == value,
    }
}
