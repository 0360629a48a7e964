//! JSON paths as columns have them: `.spec.size`, `.metadata.annotations.a\.b/c`, `.spec.ports[0]`,
//! `.status.conditions[?(@.type=="Ready")].status`.
//!
//! Only what leads through fields, items and filters; a path with anything else leads nowhere.

use crate::object::Object;
use serde_json::Value;

/// A longer path is none.
const STEPS_MAX: usize = 64;
/// Nor is one whose filters hold paths with filters, and so on, deeper than this.
const NESTING_MAX: usize = 8;

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    /// From the end where it is negative.
    Item(i64),
    All,
    Filter(Filter),
}

#[derive(Clone, Debug, PartialEq)]
struct Filter {
    /// Relative to the item.
    path: JsonPath,
    /// Only that there is something, without one.
    against: Option<(Operator, Value)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

const OPERATORS: [(&str, Operator); 6] = [
    ("==", Operator::Equal),
    ("!=", Operator::NotEqual),
    ("<=", Operator::LessOrEqual),
    (">=", Operator::GreaterOrEqual),
    ("<", Operator::Less),
    (">", Operator::Greater),
];

/// A path that can be followed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JsonPath(Vec<Step>);

impl JsonPath {
    /// `None` for what is no path, or one of a kind that is not followed here.
    pub fn parse(text: &str) -> Option<Self> {
        let (path, rest) = Self::parse_until(text, 0)?;
        rest.is_empty().then_some(path)
    }

    /// As much of a text as is a path.
    fn parse_until(text: &str, depth: usize) -> Option<(Self, &str)> {
        if depth > NESTING_MAX {
            return None;
        }
        let (mut steps, mut rest) = (Vec::new(), text);
        while steps.len() < STEPS_MAX {
            if let Some(after) = rest.strip_prefix('.') {
                let (name, after) = field(after);
                match name.as_str() {
                    // A dot before a bracket says nothing.
                    "" if after.starts_with('[') => {}
                    "" => return None,
                    "*" => steps.push(Step::All),
                    _ => steps.push(Step::Field(name)),
                }
                rest = after;
            } else if let Some(after) = rest.strip_prefix('[') {
                let (step, after) = bracket(after, depth)?;
                steps.push(step);
                rest = after;
            } else {
                return Some((Self(steps), rest));
            }
        }
        None
    }

    /// What the path leads to first in an object.
    pub fn first_of<'a>(&self, object: &'a Object) -> Option<&'a Value> {
        match self.0.split_first() {
            Some((Step::Field(name), rest)) => follow(rest, object.root().get(name)?),
            _ => None,
        }
    }

    /// What the path leads to first.
    pub fn first<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        follow(&self.0, value)
    }
}

fn follow<'a>(steps: &[Step], value: &'a Value) -> Option<&'a Value> {
    let Some((step, rest)) = steps.split_first() else {
        return Some(value);
    };
    match step {
        Step::Field(name) => follow(rest, value.get(name)?),
        Step::Item(index) => {
            let items = value.as_array()?;
            let count = i64::try_from(items.len()).ok()?;
            let index = if *index < 0 { count + index } else { *index };
            follow(rest, items.get(usize::try_from(index).ok()?)?)
        }
        Step::All => match value {
            Value::Array(items) => items.iter().find_map(|item| follow(rest, item)),
            Value::Object(fields) => fields.values().find_map(|value| follow(rest, value)),
            _ => None,
        },
        Step::Filter(filter) => {
            let items = value.as_array()?.iter();
            let mut chosen = items.filter(|item| filter.takes(item));
            chosen.find_map(|item| follow(rest, item))
        }
    }
}

impl Filter {
    fn takes(&self, item: &Value) -> bool {
        let Some(found) = self.path.first(item) else {
            return false;
        };
        let Some((operator, wanted)) = &self.against else {
            return true;
        };
        let order = match (found, wanted) {
            (Value::String(a), Value::String(b)) => a.cmp(b),
            (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
            (Value::Number(a), Value::Number(b)) => match a.as_f64().partial_cmp(&b.as_f64()) {
                Some(order) => order,
                None => return false,
            },
            _ => return false,
        };
        match operator {
            Operator::Equal => order.is_eq(),
            Operator::NotEqual => order.is_ne(),
            Operator::Less => order.is_lt(),
            Operator::LessOrEqual => order.is_le(),
            Operator::Greater => order.is_gt(),
            Operator::GreaterOrEqual => order.is_ge(),
        }
    }
}

/// A name up to the next dot or bracket; a backslash takes the next character as it is.
fn field(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => name.extend(characters.next().map(|(_, next)| next)),
            '.' | '[' | ']' | ' ' | '=' | '!' | '<' | '>' | ')' => return (name, &text[at..]),
            other => name.push(other),
        }
    }
    (name, "")
}

/// What stands in brackets, and what follows them.
fn bracket(text: &str, depth: usize) -> Option<(Step, &str)> {
    if let Some(after) = text.strip_prefix("?(") {
        let (filter, after) = filter(after, depth + 1)?;
        return Some((Step::Filter(filter), after.strip_prefix(']')?));
    }
    if let Some((name, after)) = quoted(text) {
        return Some((Step::Field(name), after.strip_prefix(']')?));
    }
    let (inner, after) = text.split_once(']')?;
    let step = match inner {
        "*" => Step::All,
        number => Step::Item(number.parse().ok()?),
    };
    Some((step, after))
}

/// `@.type=="Ready")`.
fn filter(text: &str, depth: usize) -> Option<(Filter, &str)> {
    let (path, rest) = JsonPath::parse_until(text.trim_start().strip_prefix('@')?, depth)?;
    let rest = rest.trim_start();
    let found = OPERATORS.iter().find(|(name, _)| rest.starts_with(name));
    let Some((name, operator)) = found else {
        let filter = Filter {
            path,
            against: None,
        };
        return Some((filter, rest.strip_prefix(')')?));
    };
    let rest = rest[name.len()..].trim_start();
    let (wanted, rest) = match quoted(rest) {
        Some((text, rest)) => (Value::String(text), rest),
        None => {
            let (literal, _) = rest.split_once(')')?;
            let wanted = serde_json::from_str(literal.trim()).ok()?;
            (wanted, &rest[literal.len()..])
        }
    };
    let filter = Filter {
        path,
        against: Some((*operator, wanted)),
    };
    Some((filter, rest.trim_start().strip_prefix(')')?))
}

/// A text in quotes of either kind.
fn quoted(text: &str) -> Option<(String, &str)> {
    let quote = text
        .chars()
        .next()
        .filter(|one| matches!(one, '\'' | '"'))?;
    let mut inner = String::new();
    let mut characters = text.char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => inner.extend(characters.next().map(|(_, next)| next)),
            one if one == quote => return Some((inner, &text[at + 1..])),
            other => inner.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests;
