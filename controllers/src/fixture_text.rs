//! For tests: what the lines of fixtures are read with. A word of a line is `ready` or `ready=5`.

use jiff::Timestamp;
use serde_json::{Value, json};

/// When tests happen, so that times can be told as ages.
pub(crate) const NOW_S: i64 = 1_800_000_000;

pub(crate) fn now() -> Timestamp {
    Timestamp::from_second(NOW_S).expect("in range")
}

pub(crate) fn at(seconds_ago: i64) -> String {
    let time = Timestamp::from_second(NOW_S - seconds_ago);
    time.expect("in range").to_string()
}

/// What stands behind the name; empty for the name alone.
pub(crate) fn option<'a>(words: &[&'a str], name: &str) -> Option<&'a str> {
    words.iter().find_map(|word| match word.split_once('=') {
        Some((key, value)) => (key == name).then_some(value),
        None => (*word == name).then_some(""),
    })
}

pub(crate) fn number(words: &[&str], name: &str) -> Option<i64> {
    option(words, name).and_then(|text| text.parse().ok())
}

pub(crate) fn int_or_percent(words: &[&str], name: &str, default: &str) -> Value {
    let text = option(words, name).unwrap_or(default);
    text.parse::<i64>()
        .map_or_else(|_| json!(text), |number| json!(number))
}
