//! The values of one execution of a statement. A buffer that a session fills again for each execution, so that the hot
//! path does not allocate.

/// The values of a statement's parameters, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parameters {
    list: Vec<Stored>,
    /// All texts, one after another.
    texts: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stored {
    Null,
    Integer(i64),
    /// Ends here in `texts`.
    Text {
        end: usize,
    },
}

/// The value of one parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    Null,
    Integer(i64),
    Text(&'a str),
}

impl Parameters {
    /// Removes all values and keeps the memory.
    pub fn clear(&mut self) {
        self.list.clear();
        self.texts.clear();
    }

    /// Adds NULL.
    pub fn null(&mut self) {
        self.list.push(Stored::Null);
    }

    /// Adds a whole number.
    pub fn integer(&mut self, value: i64) {
        self.list.push(Stored::Integer(value));
    }

    /// Adds the text that `write` appends.
    pub fn text(&mut self, write: impl FnOnce(&mut String)) {
        write(&mut self.texts);
        self.list.push(Stored::Text { end: self.texts.len() });
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The values, in order.
    pub fn values(&self) -> impl Iterator<Item = Value<'_>> + Clone {
        let mut begin = 0;
        self.list.iter().map(move |stored| match *stored {
            Stored::Null => Value::Null,
            Stored::Integer(value) => Value::Integer(value),
            Stored::Text { end } => Value::Text(&self.texts[std::mem::replace(&mut begin, end)..end]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_in_their_order() {
        let mut parameters = Parameters::default();
        parameters.text(|text| text.push_str("ab"));
        parameters.integer(-7);
        parameters.text(|_| {});
        parameters.null();
        parameters.text(|text| text.push('c'));
        let values: Vec<Value<'_>> = parameters.values().collect();
        assert_eq!(
            values,
            [Value::Text("ab"), Value::Integer(-7), Value::Text(""), Value::Null, Value::Text("c")]
        );
        parameters.clear();
        assert!(parameters.is_empty() && parameters.values().next().is_none());
    }
}
