//! Builds a schema, from calls or from the text that the build writes (`schema/compile.rs`).

use super::{
    Field, ListType, MapType, Name, PatchStrategy, Schema, Shape, ShapeId, Type, TypeId, TypeKind,
};
use std::collections::HashMap;

/// Gathers types, then freezes them into a [`Schema`]. Equal texts and shapes are stored once.
#[derive(Debug, Default)]
pub struct Builder {
    text: String,
    names: HashMap<String, Name>,
    types: Vec<Type>,
    fields: Vec<Field>,
    shapes: Vec<Shape>,
    shape_ids: HashMap<Shape, ShapeId>,
}

impl Builder {
    pub fn name(&mut self, text: &str) -> Name {
        if let Some(known) = self.names.get(text) {
            return *known;
        }
        let name = Name {
            start: index(self.text.len()),
            length: index(text.len()),
        };
        self.text.push_str(text);
        self.names.insert(text.to_owned(), name);
        name
    }

    fn shape(&mut self, shape: Shape) -> ShapeId {
        let next = ShapeId(index(self.shapes.len()));
        let id = *self.shape_ids.entry(shape).or_insert(next);
        if id == next {
            self.shapes.push(shape);
        }
        id
    }

    pub fn list_of(&mut self, item: Shape) -> Shape {
        Shape::List(self.shape(item))
    }

    pub fn map_of(&mut self, value: Shape) -> Shape {
        Shape::Map(self.shape(value))
    }

    /// The id of the `index`th type, also before it is added.
    pub fn type_id(&self, index: u32) -> TypeId {
        TypeId(index)
    }

    /// Adds a type; a struct takes its fields by [`Builder::add_field`] right after.
    pub fn add_type(&mut self, name: &str, kind: TypeKind, atomic: bool, union: &str) -> TypeId {
        let (name, union) = (self.name(name), self.name(union));
        let first_field = index(self.fields.len());
        self.types.push(Type {
            name,
            kind,
            atomic,
            union,
            rest: None,
            first_field,
            field_count: 0,
        });
        TypeId(index(self.types.len() - 1))
    }

    /// Lets the type added last have keys that are no fields of it.
    pub fn set_rest(&mut self, rest: Shape) {
        if let Some(last) = self.types.last_mut() {
            last.rest = Some(rest);
        }
    }

    /// Adds a field to the type added last.
    pub fn add_field(&mut self, field: Field) {
        if let Some(last) = self.types.last_mut() {
            last.field_count += 1;
            self.fields.push(field);
        }
    }

    /// Sorts what is looked up by name.
    pub fn finish(mut self) -> Schema {
        let text = self.text.into_boxed_str();
        let read = |name: Name| &text[name.start as usize..(name.start + name.length) as usize];
        for one in &self.types {
            let first = one.first_field as usize;
            let fields = &mut self.fields[first..first + one.field_count as usize];
            fields.sort_by(|a, b| read(a.name).cmp(read(b.name)));
        }
        let mut by_name: Vec<TypeId> = (0..index(self.types.len())).map(TypeId).collect();
        by_name.sort_by_key(|id| read(self.types[id.0 as usize].name));
        Schema {
            types: self.types.into_boxed_slice(),
            fields: self.fields.into_boxed_slice(),
            shapes: self.shapes.into_boxed_slice(),
            by_name: by_name.into_boxed_slice(),
            text,
        }
    }
}

fn index(length: usize) -> u32 {
    u32::try_from(length).expect("a schema is far below 4 GiB")
}

/// Reads the text form; `None` when it is not well formed.
pub(super) fn parse(text: &str) -> Option<Schema> {
    let mut builder = Builder::default();
    for line in text.lines() {
        let mut columns = line.split('\t');
        match columns.next()? {
            "T" => {
                let name = columns.next()?;
                let kind = type_kind(columns.next()?)?;
                let atomic = columns.next() == Some("atomic");
                let union = columns.next().unwrap_or("");
                builder.add_type(name, kind, atomic, union);
            }
            _ => {
                let field = field(&mut builder, &mut columns)?;
                builder.add_field(field);
            }
        }
    }
    Some(builder.finish())
}

fn field<'a>(builder: &mut Builder, columns: &mut impl Iterator<Item = &'a str>) -> Option<Field> {
    let name = builder.name(columns.next()?);
    let shape = shape(builder, columns.next()?)?;
    let mut next = || columns.next().unwrap_or("");
    let required = next() == "!";
    let list_type = match next() {
        "atomic" => ListType::Atomic,
        "set" => ListType::Set,
        "map" => ListType::Map,
        _ => ListType::Unsaid,
    };
    let map_keys = builder.name(next());
    let mut strategy = PatchStrategy::default();
    for one in next().split(',') {
        match one {
            "merge" => strategy.merge = true,
            "replace" => strategy.replace = true,
            "retainKeys" => strategy.retain_keys = true,
            _ => {}
        }
    }
    let merge_key = builder.name(next());
    let map_type = match next() {
        "granular" => MapType::Granular,
        "atomic" => MapType::Atomic,
        _ => MapType::Unsaid,
    };
    let go_type = builder.name(next());
    let zero = next();
    let (drops_zero, shows_null) = (zero == "drop", zero == "null");
    let default = builder.name(next());
    let enumeration = builder.name(next());
    Some(Field {
        name,
        shape,
        required,
        list_type,
        map_keys,
        strategy,
        merge_key,
        map_type,
        go_type,
        drops_zero,
        shows_null,
        default,
        enumeration,
    })
}

fn type_kind(text: &str) -> Option<TypeKind> {
    Some(match text {
        "struct" => TypeKind::Struct,
        "quantity" => TypeKind::Quantity,
        "int-or-string" => TypeKind::IntOrString,
        "time" => TypeKind::Time,
        "micro-time" => TypeKind::MicroTime,
        "raw" => TypeKind::Raw,
        "any" => TypeKind::Any,
        _ => return None,
    })
}

fn shape(builder: &mut Builder, text: &str) -> Option<Shape> {
    let (first, rest) = text.split_at_checked(1)?;
    Some(match first {
        "s" => Shape::String,
        "y" => Shape::Bytes,
        "i" => Shape::Int32,
        "l" => Shape::Int64,
        "d" => Shape::Double,
        "b" => Shape::Bool,
        "a" => Shape::Any,
        "#" => Shape::Type(builder.type_id(rest.parse().ok()?)),
        "[" => {
            let item = shape(builder, rest)?;
            builder.list_of(item)
        }
        "{" => {
            let value = shape(builder, rest)?;
            builder.map_of(value)
        }
        _ => return None,
    })
}
