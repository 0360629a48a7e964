//! The types of the built-in kinds as expressions see them: from the schema, each struct once.

use super::environment::{Environment, escaped};
use super::types::Type;
use crate::schema::{Schema, Shape, TypeId, TypeKind, schema};

impl Environment {
    /// The type of objects of a named type of the schema; what it consists of is added.
    pub fn of_kind(&mut self, type_name: &str) -> Option<Type> {
        let id = schema().find(type_name)?;
        Some(self.of_struct(schema(), id))
    }

    fn of_struct(&mut self, schema: &Schema, root: TypeId) -> Type {
        // Types refer to themselves, so that each is looked at once, in no order.
        let mut ahead = vec![root];
        while let Some(id) = ahead.pop() {
            let name = schema.type_name(id);
            if self.made(name).is_some() {
                continue;
            }
            *self = std::mem::take(self).with_struct(name, &[]);
            for field in schema.fields(id) {
                let of = of_shape(schema, field.shape, &mut ahead);
                if let Some(field) = escaped(schema.text(field.name)) {
                    self.add_field(name, &field, of);
                }
            }
        }
        Type::of_struct(schema.type_name(root))
    }
}

fn of_shape(schema: &Schema, shape: Shape, ahead: &mut Vec<TypeId>) -> Type {
    match shape {
        Shape::String => Type::String,
        Shape::Bytes => Type::Bytes,
        Shape::Int32 | Shape::Int64 => Type::Int,
        Shape::Double => Type::Double,
        Shape::Bool => Type::Bool,
        Shape::Any => Type::Dyn,
        Shape::List(item) => Type::list(of_shape(schema, schema.shape(item), ahead)),
        Shape::Map(value) => Type::map(Type::String, of_shape(schema, schema.shape(value), ahead)),
        Shape::Type(id) => match schema.get(id).kind {
            TypeKind::Struct if !schema.fields(id).is_empty() => {
                ahead.push(id);
                Type::of_struct(schema.type_name(id))
            }
            TypeKind::Time | TypeKind::MicroTime => Type::Timestamp,
            // A number or a string, or anything.
            _ => Type::Dyn,
        },
    }
}
