//! The expressions of `\set`: whole numbers, their arithmetic, and drawn numbers.

use std::collections::BTreeMap;

/// What a variable stands for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value {
    Int(i64),
    /// A parameter of a distribution.
    Float(f64),
    /// The draw at this index, and what is added to it.
    Drawn {
        draw: usize,
        plus: i64,
    },
}

/// A variable of the scenario: each transaction has one value of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Draw {
    pub name: String,
    pub template: String,
}

impl Value {
    /// As it is written in a statement of the scenario.
    pub(super) fn template(self, draws: &[Draw]) -> String {
        match self {
            Value::Int(value) => value.to_string(),
            Value::Float(value) => value.to_string(),
            Value::Drawn { draw, plus: 0 } => format!("{{{{{}}}}}", draws[draw].name),
            Value::Drawn { draw, plus } => format!("{{{{{}|plus {plus}}}}}", draws[draw].name),
        }
    }
}

/// The value of `text` for the variable `name`. What it draws is added to `draws`.
pub(super) fn value(
    text: &str,
    name: &str,
    known: &BTreeMap<String, Value>,
    draws: &mut Vec<Draw>,
) -> Result<Value, String> {
    let mut parser = Parser { rest: text, depth: 0, name, known, draws };
    let value = parser.sum()?;
    parser.rest = parser.rest.trim_start();
    if parser.rest.is_empty() { Ok(value) } else { Err(format!("`{}` is not understood", parser.rest)) }
}

struct Parser<'a, 'd> {
    rest: &'a str,
    depth: usize,
    name: &'a str,
    known: &'a BTreeMap<String, Value>,
    draws: &'d mut Vec<Draw>,
}

/// What `{{…}}` has another meaning for.
const TAKEN: [&str; 4] = ["n", "seed", "uuid", "random"];

/// Parentheses within parentheses.
const DEEPEST: usize = 50;

impl<'a> Parser<'a, '_> {
    fn sum(&mut self) -> Result<Value, String> {
        let mut value = self.product()?;
        while let Some(sign) = self.one_of(&['+', '-']) {
            let other = self.product()?;
            value = add(value, if sign == '-' { negated(other)? } else { other })?;
        }
        Ok(value)
    }

    fn product(&mut self) -> Result<Value, String> {
        let mut value = self.factor()?;
        while let Some(sign) = self.one_of(&['*', '/', '%']) {
            let (Value::Int(left), Value::Int(right)) = (value, self.factor()?) else {
                return Err("only fixed whole numbers can be multiplied or divided".to_owned());
            };
            let result = match sign {
                '*' => left.checked_mul(right),
                '/' => left.checked_div(right),
                _ => left.checked_rem(right),
            };
            value = Value::Int(result.ok_or_else(|| format!("{left} {sign} {right} has no value"))?);
        }
        Ok(value)
    }

    fn factor(&mut self) -> Result<Value, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("too many parentheses".to_owned());
        }
        let value = if self.one_of(&['-']).is_some() {
            negated(self.factor()?)
        } else if self.one_of(&['(']).is_some() {
            let value = self.sum()?;
            self.expect(')')?;
            Ok(value)
        } else if self.one_of(&[':']).is_some() {
            let name = self.word();
            self.known
                .get(name)
                .copied()
                .ok_or_else(|| format!("`:{name}` has no value; give it by -D {name}=NUMBER"))
        } else {
            self.number_or_draw()
        };
        self.depth -= 1;
        value
    }

    fn number_or_draw(&mut self) -> Result<Value, String> {
        self.rest = self.rest.trim_start();
        let length = self.rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
        let (digits, rest) = self.rest.split_at(length);
        if !digits.is_empty() {
            self.rest = rest;
            let whole = digits.parse().map(Value::Int).ok();
            let number =
                whole.or_else(|| digits.parse().map(Value::Float).ok().filter(|_| digits.contains('.')));
            return number.ok_or_else(|| format!("`{digits}` is no number"));
        }
        let function = self.word();
        let shape = match function {
            "random" => "random",
            "random_zipfian" => "zipf",
            "random_gaussian" => "gaussian",
            "random_exponential" => "exponential",
            "" => return Err("a value is missing".to_owned()),
            _ => return Err(format!("`{function}` cannot be converted; random functions can")),
        };
        self.expect('(')?;
        let low = self.bound()?;
        self.expect(',')?;
        let high = self.bound()?;
        let parameter = if shape == "random" {
            String::new()
        } else {
            self.expect(',')?;
            match self.sum()? {
                Value::Int(value) => format!(" {value}"),
                Value::Float(value) => format!(" {value}"),
                Value::Drawn { .. } => return Err("a parameter has to be a fixed number".to_owned()),
            }
        };
        self.expect(')')?;
        self.draw(shape, (low, high), &parameter)
    }

    fn bound(&mut self) -> Result<i64, String> {
        match self.sum()? {
            Value::Int(value) => Ok(value),
            _ => Err("a bound has to be a fixed whole number".to_owned()),
        }
    }

    /// A scenario draws numbers from 0 on: others are moved.
    fn draw(&mut self, shape: &str, (low, high): (i64, i64), parameter: &str) -> Result<Value, String> {
        let count = high.checked_sub(low).filter(|count| *count >= 0);
        let count = count.ok_or_else(|| format!("there are no numbers from {low} to {high}"))?;
        let plus = low.min(0);
        let (low, high) = if low < 0 { (0, count) } else { (low, high) };
        let is_free =
            |name: &String| self.draws.iter().all(|draw| draw.name != *name) && !TAKEN.contains(&&name[..]);
        let others = (2..).map(|nth| format!("{}_{nth}", self.name));
        let name = std::iter::once(self.name.to_owned()).chain(others).find(is_free).unwrap_or_default();
        self.draws.push(Draw { name, template: format!("{{{{{shape} {low} {high}{parameter}}}}}") });
        Ok(Value::Drawn { draw: self.draws.len() - 1, plus })
    }

    fn word(&mut self) -> &'a str {
        self.rest = self.rest.trim_start();
        let is_of_word = |byte: &u8| *byte == b'_' || byte.is_ascii_alphanumeric();
        let (word, rest) = self.rest.split_at(self.rest.bytes().take_while(is_of_word).count());
        self.rest = rest;
        word
    }

    fn one_of(&mut self, signs: &[char]) -> Option<char> {
        self.rest = self.rest.trim_start();
        let first = self.rest.chars().next().filter(|first| signs.contains(first))?;
        self.rest = &self.rest[first.len_utf8()..];
        Some(first)
    }

    fn expect(&mut self, sign: char) -> Result<(), String> {
        self.one_of(&[sign]).map(|_| ()).ok_or_else(|| format!("`{sign}` is missing before `{}`", self.rest))
    }
}

fn add(left: Value, right: Value) -> Result<Value, String> {
    let sum = |a: i64, b: i64| a.checked_add(b).ok_or_else(|| format!("{a} + {b} is too large"));
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => Ok(Value::Int(sum(a, b)?)),
        (Value::Drawn { draw, plus }, Value::Int(more)) | (Value::Int(more), Value::Drawn { draw, plus }) => {
            Ok(Value::Drawn { draw, plus: sum(plus, more)? })
        }
        _ => Err("only fixed whole numbers can be added to a drawn one".to_owned()),
    }
}

fn negated(value: Value) -> Result<Value, String> {
    match value {
        Value::Int(value) => {
            value.checked_neg().map(Value::Int).ok_or_else(|| format!("-({value}) is too large"))
        }
        Value::Float(value) => Ok(Value::Float(-value)),
        Value::Drawn { .. } => Err("a drawn number cannot be subtracted".to_owned()),
    }
}
