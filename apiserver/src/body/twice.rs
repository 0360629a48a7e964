//! YAML in which a map may have a key twice: the last one stays, and where they stood is told.

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// Places looked for at most: each takes one more pass over the body.
const PLACES_MAX: usize = 10;

pub struct Read {
    pub value: Value,
    /// `line 3: key "a" already set in map` and so on, in upstream's words.
    pub twice: Option<String>,
}

/// An error is in the words of upstream's parser as far as they are known.
pub fn read(bytes: &[u8]) -> Result<Read, String> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(Read {
            value: Value::Null,
            twice: None,
        });
    }
    let mut count = 0;
    let value = pass(bytes, &mut count, None).map_err(|error| refusal(&error))?;
    if count == 0 {
        return Ok(Read { value, twice: None });
    }
    let mut lines = String::new();
    for stop_at in 1..=count.min(PLACES_MAX) {
        // The pass ends at the key, which is how its line becomes known.
        if let Err(error) = pass(bytes, &mut 0, Some(stop_at)) {
            let line = error.location().map_or(1, |at| at.line());
            let text = error.to_string();
            let key = text.split(SEPARATOR).nth(1).unwrap_or("");
            lines.push_str(&format!("\n  line {line}: key {key} already set in map"));
        }
    }
    let text = format!("yaml: unmarshal errors:{lines}");
    Ok(Read {
        value,
        twice: Some(text),
    })
}

/// Upstream's parser counts lines from zero, but for what its scanner refuses, and says none for
/// the first; it names the line of what it was in the middle of, if it can.
fn refusal(error: &serde_yaml_ng::Error) -> String {
    let text = error.to_string();
    let (fault, context) = text.split_once(", while ").unwrap_or((&text, ""));
    let problem = fault.split(" at ").next().unwrap_or(fault);
    let is_scanner = context.starts_with("scanning") || SCANNER.contains(&problem);
    let lines = [line_of(context), line_of(fault)];
    match lines.into_iter().flatten().find(|line| *line > 0) {
        Some(line) => format!("yaml: line {}: {problem}", line + usize::from(is_scanner)),
        None => format!("yaml: {problem}"),
    }
}

/// What the scanner says without saying that it is the scanner.
const SCANNER: [&str; 4] = [
    "block sequence entries are not allowed in this context",
    "found a tab character that violates indentation",
    "mapping keys are not allowed in this context",
    "mapping values are not allowed in this context",
];

/// The line in `... at line 3 column 1`, from zero.
fn line_of(text: &str) -> Option<usize> {
    let (_, place) = text.rsplit_once(" at line ")?;
    let number: usize = place.split(' ').next()?.parse().ok()?;
    number.checked_sub(1)
}

/// Stands around the key in the error that ends a pass.
const SEPARATOR: char = '\u{1}';

fn pass(
    bytes: &[u8],
    count: &mut usize,
    stop_at: Option<usize>,
) -> Result<Value, serde_yaml_ng::Error> {
    // Of several documents the first one counts, as upstream has it.
    match serde_yaml_ng::Deserializer::from_slice(bytes).next() {
        Some(document) => Seed { count, stop_at }.deserialize(document),
        None => Ok(Value::Null),
    }
}

struct Seed<'c> {
    count: &'c mut usize,
    stop_at: Option<usize>,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        let number = Number::from_f64(value).map(Value::Number);
        number.ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            let seed = Seed {
                count: &mut *self.count,
                stop_at: self.stop_at,
            };
            match access.next_element_seed(seed)? {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        loop {
            let key = KeySeed {
                seen: &map,
                count: &mut *self.count,
                stop_at: self.stop_at,
            };
            let Some(key) = access.next_key_seed(key)? else {
                return Ok(Value::Object(map));
            };
            let seed = Seed {
                count: &mut *self.count,
                stop_at: self.stop_at,
            };
            let value = access.next_value_seed(seed)?;
            map.insert(key, value);
        }
    }
}

/// Reads a key, of any scalar, as text.
struct KeySeed<'m, 'c> {
    seen: &'m Map<String, Value>,
    count: &'c mut usize,
    stop_at: Option<usize>,
}

impl KeySeed<'_, '_> {
    fn key<E: Error>(self, key: String) -> Result<String, E> {
        if self.seen.contains_key(&key) {
            *self.count += 1;
            if self.stop_at == Some(*self.count) {
                let text = format!("{SEPARATOR}{key:?}{SEPARATOR}");
                return Err(E::custom(text));
            }
        }
        Ok(key)
    }
}

impl<'de> DeserializeSeed<'de> for KeySeed<'_, '_> {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for KeySeed<'_, '_> {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<String, E> {
        self.key(key.to_owned())
    }

    fn visit_bool<E: Error>(self, key: bool) -> Result<String, E> {
        self.key(key.to_string())
    }

    fn visit_i64<E: Error>(self, key: i64) -> Result<String, E> {
        self.key(key.to_string())
    }

    fn visit_u64<E: Error>(self, key: u64) -> Result<String, E> {
        self.key(key.to_string())
    }

    fn visit_f64<E: Error>(self, key: f64) -> Result<String, E> {
        self.key(key.to_string())
    }
}
