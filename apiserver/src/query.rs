//! The query of a URL: pairs in order, decoded, read as Kubernetes reads options.

use coracle_api::status::Status;

/// Bounds what one request can make us keep; a command line of exec may be long.
const PAIRS_MAX: usize = 10_000;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    pub fn parse(text: &str) -> Self {
        let pairs = text
            .split('&')
            // As Go: a semicolon is no separator any more, and what is no escape is left out.
            .filter(|pair| !pair.is_empty() && !pair.contains(';') && is_escaped(pair))
            .take(PAIRS_MAX)
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                (decode(name), decode(value))
            })
            .collect();
        Self(pairs)
    }

    pub fn push(&mut self, name: &str, value: impl Into<String>) {
        self.0.push((name.to_owned(), value.into()));
    }

    /// The first value; `None` when the name does not occur.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(own, _)| own == name)
            .map(|(_, value)| value.as_str())
    }

    pub fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or("")
    }

    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |(own, _)| own == name)
            .map(|(_, value)| value.as_str())
    }

    /// True for any value but `false` and `0`: `?follow` alone is true.
    pub fn flag(&self, name: &str) -> bool {
        self.get(name)
            .is_some_and(|value| !value.eq_ignore_ascii_case("false") && value != "0")
    }

    pub fn int(&self, name: &str) -> Result<Option<i64>, Status> {
        match self.get(name) {
            None | Some("") => Ok(None),
            Some(value) => value.parse().map(Some).map_err(|_| {
                Status::bad_request(format!(
                    "strconv.ParseInt: parsing {value:?}: invalid syntax"
                ))
            }),
        }
    }
}

impl std::fmt::Display for Query {
    /// Encoded, without the question mark.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, (name, value)) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("&")?;
            }
            write!(f, "{}={}", encode(name), encode(value))?;
        }
        Ok(())
    }
}

/// True when every percent sign begins an escape.
fn is_escaped(text: &str) -> bool {
    let mut rest = text.as_bytes();
    while let Some(place) = rest.iter().position(|byte| *byte == b'%') {
        let [high, low, after @ ..] = &rest[place + 1..] else {
            return false;
        };
        if hex_digit(*high).is_none() || hex_digit(*low).is_none() {
            return false;
        }
        rest = after;
    }
    true
}

/// As in a query: percent-decoding, with `+` for a space.
fn decode(text: &str) -> String {
    if !text.contains(['+', '%']) {
        return text.to_owned();
    }
    percent_decode(&text.replace('+', " "))
}

/// As in a path. What is no valid escape stays as it is.
pub fn percent_decode(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        if let (b'%', [high, low, after @ ..]) = (first, tail)
            && let (Some(high), Some(low)) = (hex_digit(*high), hex_digit(*low))
        {
            bytes.push(high << 4 | low);
            rest = after;
        } else {
            bytes.push(first);
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

/// As one part of a path or of a query.
pub fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}
