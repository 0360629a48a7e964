//! Paths to fields, `.spec.size` or `.spec['a key']`, followed through a schema.

use crate::json;
use serde_json::Value;

const NO_FIELD: &str = "does not refer to a valid field";
const UNEXPECTED_END: &str = "unexpected end of JSON path";

/// The steps of a path, and the schema of what it leads to.
pub fn resolve<'a>(
    text: &str,
    schema: &'a Value,
    may_index: bool,
) -> Result<(Vec<String>, &'a Value), String> {
    let (mut rest, mut schema) = (text, schema);
    let mut steps = Vec::new();
    while !rest.is_empty() {
        let name;
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[', ']']).unwrap_or(after.len());
            if after.is_empty() {
                return Err(UNEXPECTED_END.to_owned());
            }
            // As upstream, two delimiters in a row make the second one a name.
            let end = end.max(1);
            name = after[..end].to_owned();
            rest = &after[end..];
        } else if let Some(after) = rest.strip_prefix('[') {
            if !may_index {
                return Err("array notation is not allowed".to_owned());
            }
            (name, rest) = quoted(after)?;
        } else {
            let end = rest[1..]
                .find(['.', '[', ']'])
                .map_or(rest.len(), |at| at + 1);
            return Err(format!("expected [ or . but got: {}", &rest[..end]));
        }
        schema = step(schema, &name).ok_or(NO_FIELD)?;
        steps.push(name);
    }
    Ok((steps, schema))
}

fn step<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    let properties = json::some(schema, "properties").and_then(Value::as_object);
    match properties.filter(|properties| !properties.is_empty()) {
        Some(properties) => properties.get(name),
        None => json::some(schema, "additionalProperties").filter(|one| one.is_object()),
    }
}

/// `'a key']`, and what follows.
fn quoted(text: &str) -> Result<(String, &str), String> {
    if text.is_empty() {
        return Err(UNEXPECTED_END.to_owned());
    }
    let body = text.strip_prefix('\'').ok_or_else(|| {
        let end = text.find(['.', '[', ']']).unwrap_or(text.len());
        format!("expected single quoted string but got {}", &text[..end])
    })?;
    let mut key = String::new();
    let mut characters = body.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\'' => {
                let rest = &body[at + 1..];
                return match rest.strip_prefix(']') {
                    Some(rest) => Ok((key, rest)),
                    None if rest.is_empty() => Err(UNEXPECTED_END.to_owned()),
                    None => Err(format!("expected ] but got {rest}")),
                };
            }
            '\\' => key.extend(characters.next().map(|(_, escaped)| escaped)),
            other => key.push(other),
        }
    }
    Err(format!("expected single quoted string but got {text}"))
}
