//! Decodes an object without its `metadata.managedFields`: nothing here reads them, they are often
//! half of an object, and to read and drop them took a third of the time of a pod.
//!
//! They are skipped where they stand, and anything else is passed through as it is.

use kube::Resource;
use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};
use std::borrow::Cow;
use std::fmt;

/// An object as it is decoded.
#[derive(Clone, Debug)]
pub struct Lean<K>(pub K);

impl<K: Resource> Resource for Lean<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::kind(dynamic)
    }

    fn group(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::group(dynamic)
    }

    fn version(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::version(dynamic)
    }

    fn plural(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::plural(dynamic)
    }

    fn meta(&self) -> &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
        self.0.meta()
    }

    fn meta_mut(&mut self) -> &mut k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
        self.0.meta_mut()
    }
}

impl<'de, K: Deserialize<'de>> Deserialize<'de> for Lean<K> {
    fn deserialize<D: Deserializer<'de>>(inner: D) -> Result<Self, D::Error> {
        let level = Level::Object;
        K::deserialize(At { inner, level }).map(Self)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Object,
    Metadata,
}

/// A deserializer, visitor, map or seed of what stands at a level.
struct At<T> {
    inner: T,
    level: Level,
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for At<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, inner: V) -> Result<V::Value, D::Error> {
        let level = self.level;
        self.inner.deserialize_any(At { inner, level })
    }

    fn deserialize_option<V: Visitor<'de>>(self, inner: V) -> Result<V::Value, D::Error> {
        let level = self.level;
        self.inner.deserialize_option(At { inner, level })
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        inner: V,
    ) -> Result<V::Value, D::Error> {
        let level = self.level;
        self.inner
            .deserialize_newtype_struct(name, At { inner, level })
    }

    fn deserialize_map<V: Visitor<'de>>(self, inner: V) -> Result<V::Value, D::Error> {
        let level = self.level;
        self.inner.deserialize_map(At { inner, level })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        inner: V,
    ) -> Result<V::Value, D::Error> {
        let level = self.level;
        self.inner
            .deserialize_struct(name, fields, At { inner, level })
    }

    // Nothing that is one of these has metadata.
    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct enum identifier ignored_any
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for At<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(Fields {
            map,
            level: self.level,
            is_metadata: false,
        })
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        let level = self.level;
        self.inner.visit_some(At { inner, level })
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        let level = self.level;
        self.inner.visit_newtype_struct(At { inner, level })
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for At<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<S::Value, D::Error> {
        let level = self.level;
        self.inner.deserialize(At { inner, level })
    }
}

struct Fields<A> {
    map: A,
    level: Level,
    /// The value that comes next is the object's metadata.
    is_metadata: bool,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Fields<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        while let Some(Name(name)) = self.map.next_key()? {
            if self.level == Level::Metadata && name == "managedFields" {
                self.map.next_value::<IgnoredAny>()?;
                continue;
            }
            self.is_metadata = self.level == Level::Object && name == "metadata";
            return seed.deserialize(StrDeserializer::new(&name)).map(Some);
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, inner: S) -> Result<S::Value, A::Error> {
        if self.is_metadata {
            let level = Level::Metadata;
            return self.map.next_value_seed(At { inner, level });
        }
        self.map.next_value_seed(inner)
    }
}

/// Borrowed wherever nothing in it is escaped.
struct Name<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;
        impl<'de> Visitor<'de> for Names {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a field")
            }

            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(name)))
            }

            fn visit_str<E>(self, name: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(name.to_owned())))
            }
        }
        deserializer.deserialize_str(Names)
    }
}

#[cfg(test)]
mod tests;
