//! `apiVersion` and `kind` of a body, as Go's plain decoder looks for them: whatever the case of
//! the keys, the last of several, null like none.

use super::TypeMeta;
use super::go::TYPE_META;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// What was found, or Go's first complaint about a document of correct syntax.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub meta: TypeMeta,
    pub error: Option<String>,
}

impl<'de> Deserialize<'de> for Found {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Body)
    }
}

impl Found {
    fn no_object(found: &str) -> Self {
        let text = format!("json: cannot unmarshal {found} into Go value of type {TYPE_META}");
        Self {
            meta: TypeMeta::default(),
            error: Some(text),
        }
    }
}

struct Body;

impl<'de> Visitor<'de> for Body {
    type Value = Found;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Found, E> {
        Ok(Found::default())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Found, E> {
        Ok(Found::no_object("bool"))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Found, E> {
        Ok(Found::no_object("number"))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Found, E> {
        Ok(Found::no_object("number"))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Found, E> {
        Ok(Found::no_object("number"))
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Found, E> {
        Ok(Found::no_object("string"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Found, A::Error> {
        while access.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Found::no_object("array"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Found, A::Error> {
        let mut found = Found::default();
        while let Some(key) = access.next_key::<String>()? {
            let (name, slot) = if key.eq_ignore_ascii_case("apiVersion") {
                ("apiVersion", &mut found.meta.api_version)
            } else if key.eq_ignore_ascii_case("kind") {
                ("kind", &mut found.meta.kind)
            } else {
                access.next_value::<IgnoredAny>()?;
                continue;
            };
            match access.next_value::<Text>()?.0 {
                Ok(Some(text)) => *slot = text,
                Ok(None) => {}
                Err(other) => {
                    let text = || {
                        format!(
                            "json: cannot unmarshal {other} into Go struct field .{name} of type \
                             string"
                        )
                    };
                    found.error.get_or_insert_with(text);
                }
            }
        }
        Ok(found)
    }
}

/// A text, nothing, or what else there is.
struct Text(Result<Option<String>, &'static str>);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Text, E> {
        Ok(Text(Ok(None)))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Text, E> {
        Ok(Text(Err("bool")))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Text, E> {
        Ok(Text(Err("number")))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Text, E> {
        Ok(Text(Err("number")))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Text, E> {
        Ok(Text(Err("number")))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Text, E> {
        Ok(Text(Ok(Some(text.to_owned()))))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Text, A::Error> {
        while access.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Text(Err("array")))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Text, A::Error> {
        while access.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Text(Err("object")))
    }
}
