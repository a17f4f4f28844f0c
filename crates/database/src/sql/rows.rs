//! What is kept of a result for checks and captures: how much there was, and its first row.

/// What is kept of the response to one statement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rows {
    /// Rows of all result sets.
    pub count: u64,
    /// Rows that the statement changed, by the server's count.
    pub affected: u64,
    /// The columns of the first result set, if its first row was kept.
    pub columns: Vec<Column>,
    /// The first row's values as text; `None` is NULL. Empty if there was no row, or it was not kept.
    pub first: Vec<Option<String>>,
}

/// A column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    /// Whether its values are whole numbers.
    pub is_integer: bool,
}

impl Rows {
    /// Empties it and keeps the memory.
    pub(crate) fn clear(&mut self) {
        (self.count, self.affected) = (0, 0);
        self.columns.clear();
        self.first.clear();
    }

    /// The value of column `name` of the first row: `None` if there is no such row or column, `Some(None)` for NULL.
    pub fn value(&self, name: &str) -> Option<Option<&str>> {
        let at = self.columns.iter().position(|column| column.name.eq_ignore_ascii_case(name))?;
        self.first.get(at).map(|value| value.as_deref())
    }
}
