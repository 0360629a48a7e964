//! What the schema says of how a value merges.
//!
//! A type is resolved by the value it meets: where the schema leaves a value open, its own form
//! decides. Copied around freely: nothing here owns more than a reference.

use super::element::{Element, Keys};
use crate::schema::{Field, ListType, MapType, Schema, Shape, TypeId, TypeKind};
use serde_json::Value;
use std::borrow::Cow;

/// A place in the schema.
#[derive(Clone, Copy, Debug)]
pub enum Place<'s> {
    /// A field of a struct, which says how its list or map merges.
    Field(&'s Field),
    /// An item or a value: nothing is said beyond its shape.
    Bare(Shape),
    /// Nothing is known, and it is replaced as a whole.
    Atomic,
    /// Nothing is known; maps merge key by key.
    Deduced,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    Text,
    Number,
    Bool,
    /// Any scalar.
    Open,
}

/// How the items of a list are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation<'s> {
    Atomic,
    Set,
    /// By these fields, separated by spaces.
    Keyed(&'s str),
}

#[derive(Clone, Copy, Debug)]
pub struct ListAtom<'s> {
    pub item: Place<'s>,
    pub relation: Relation<'s>,
}

#[derive(Clone, Copy, Debug)]
pub struct MapAtom<'s> {
    /// The struct whose fields these are.
    pub fields: Option<TypeId>,
    /// The type of what is no field of the struct.
    pub value: Option<Place<'s>>,
    pub is_atomic: bool,
}

#[derive(Clone, Copy, Debug)]
pub enum Atom<'s> {
    Scalar(Scalar),
    List(ListAtom<'s>),
    Map(MapAtom<'s>),
}

impl Atom<'_> {
    /// Two atoms of one place are the same when they are of one form.
    pub fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// The schema with its questions answered.
#[derive(Clone, Copy, Debug)]
pub struct Types<'s> {
    pub schema: &'s Schema,
}

impl<'s> Types<'s> {
    /// The atom of `place` that fits `value`.
    pub fn atom(&self, place: Place<'s>, value: Option<&Value>) -> Atom<'s> {
        let (shape, field) = match place {
            Place::Field(field) => (field.shape, Some(field)),
            Place::Bare(shape) => (shape, None),
            Place::Atomic => return open(value, true),
            Place::Deduced => return open(value, false),
        };
        let map_type = field.map_or(MapType::Unsaid, |field| field.map_type);
        match shape {
            Shape::String | Shape::Bytes => Atom::Scalar(Scalar::Text),
            Shape::Int32 | Shape::Int64 | Shape::Double => Atom::Scalar(Scalar::Number),
            Shape::Bool => Atom::Scalar(Scalar::Bool),
            Shape::Any => open(value, false),
            Shape::List(item) => Atom::List(ListAtom {
                item: Place::Bare(self.schema.shape(item)),
                relation: field.map_or(Relation::Atomic, |field| self.relation(field)),
            }),
            Shape::Map(value) => Atom::Map(MapAtom {
                fields: None,
                value: Some(Place::Bare(self.schema.shape(value))),
                is_atomic: map_type == MapType::Atomic,
            }),
            Shape::Type(id) => self.named(id, map_type, value),
        }
    }

    fn named(&self, id: TypeId, map_type: MapType, value: Option<&Value>) -> Atom<'s> {
        let one = self.schema.get(id);
        match one.kind {
            TypeKind::Quantity | TypeKind::Time | TypeKind::MicroTime => Atom::Scalar(Scalar::Open),
            // Upstream's document gives it no type, so anything goes until it is decoded.
            TypeKind::Any | TypeKind::IntOrString => open(value, false),
            TypeKind::Raw => {
                let is_atomic = self.schema.type_name(id).ends_with(".RawExtension");
                open(value, is_atomic)
            }
            TypeKind::Struct => Atom::Map(MapAtom {
                fields: Some(id),
                value: match one.rest {
                    Some(rest) => Some(Place::Bare(rest)),
                    // A struct without fields takes any.
                    None => self.schema.fields(id).is_empty().then_some(Place::Deduced),
                },
                is_atomic: match map_type {
                    MapType::Unsaid => one.atomic,
                    MapType::Atomic => true,
                    MapType::Granular => false,
                },
            }),
        }
    }

    fn relation(&self, field: &'s Field) -> Relation<'s> {
        match field.list_type {
            ListType::Atomic => Relation::Atomic,
            ListType::Set => Relation::Set,
            ListType::Map => Relation::Keyed(self.schema.text(field.map_keys)),
            ListType::Unsaid if !field.strategy.merge => Relation::Atomic,
            ListType::Unsaid => match self.schema.text(field.merge_key) {
                "" => Relation::Set,
                key => Relation::Keyed(key),
            },
        }
    }

    /// The place of a key of a map; `None` when it may not be there.
    pub fn child(&self, map: &MapAtom<'s>, key: &str) -> Option<Place<'s>> {
        self.named_field(map, key).map(Place::Field).or(map.value)
    }

    /// The field of a struct; `None` for a key of a map.
    pub fn named_field(&self, map: &MapAtom<'s>, key: &str) -> Option<&'s Field> {
        map.fields.and_then(|id| self.schema.field(id, key))
    }

    /// The step that leads to an item, or why there is none.
    pub fn step<'a>(&self, list: &ListAtom<'s>, item: &'a Value) -> Result<Element<'a>, String>
    where
        's: 'a,
    {
        match list.relation {
            Relation::Atomic => Err("invalid indexing of non-associative list".to_owned()),
            Relation::Keyed(keys) => self.keyed(list, keys, item),
            Relation::Set => match item {
                Value::Object(_) => {
                    Err("associative list without keys has an element that's a map type".to_owned())
                }
                Value::Array(_) => {
                    Err("not supported: associative list with lists as elements".to_owned())
                }
                Value::Null => Err(
                    "associative list without keys has an element that's an explicit null"
                        .to_owned(),
                ),
                scalar => Ok(Element::Value(Cow::Borrowed(scalar))),
            },
        }
    }

    fn keyed<'a>(
        &self,
        list: &ListAtom<'s>,
        names: &'s str,
        item: &'a Value,
    ) -> Result<Element<'a>, String>
    where
        's: 'a,
    {
        let map = match item {
            Value::Object(map) => map,
            Value::Null => {
                return Err("associative list with keys may not have a null element".to_owned());
            }
            _ => return Err("associative list with keys may not have non-map elements".to_owned()),
        };
        let mut keys: Keys<'a> = Vec::with_capacity(1);
        for name in names.split_whitespace() {
            if let Some(value) = map.get(name) {
                keys.push((Cow::Borrowed(name), Cow::Borrowed(value)));
            } else if let Some(value) = self.default_of(list, name) {
                keys.push((Cow::Borrowed(name), Cow::Owned(value)));
            }
        }
        if keys.is_empty() {
            let shown: Vec<String> = names.split_whitespace().map(|n| format!("{n:?}")).collect();
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{}] (and \
                 doesn't have default values for any key fields)",
                shown.join(" ")
            ));
        }
        keys.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(Element::Key(keys))
    }

    /// The default that the schema states for a key of a list's items.
    fn default_of(&self, list: &ListAtom<'s>, name: &str) -> Option<Value> {
        let Atom::Map(map) = self.atom(list.item, None) else {
            return None;
        };
        let field = self.named_field(&map, name)?;
        match self.schema.text(field.default) {
            "" => None,
            text => serde_json::from_str(text).ok(),
        }
    }
}

/// A value that the schema leaves open takes its own form; a null counts as a map.
fn open<'s>(value: Option<&Value>, is_atomic: bool) -> Atom<'s> {
    match value {
        Some(Value::Array(_)) => Atom::List(ListAtom {
            item: Place::Atomic,
            relation: Relation::Atomic,
        }),
        None | Some(Value::Null | Value::Object(_)) => Atom::Map(MapAtom {
            fields: None,
            value: Some(if is_atomic {
                Place::Atomic
            } else {
                Place::Deduced
            }),
            is_atomic,
        }),
        Some(_) => Atom::Scalar(Scalar::Open),
    }
}
