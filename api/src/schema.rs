//! The schema of all kinds: which fields a type has, of what shape, and how its lists merge.
//!
//! Compact and interned: built in one go by [`Builder`], never changed after. The built-in schema
//! is embedded compressed and unpacked on first use; descriptions are a second text that only
//! OpenAPI unpacks, and that nobody keeps. Knows no object and no request.

mod parse;

pub use parse::Builder;

use std::io::Read;
use std::sync::OnceLock;

/// A piece of the schema's one text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Name {
    start: u32,
    length: u32,
}

/// A type of one schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeId(u32);

/// What a value looks like. Small and copied; nested shapes live in the schema's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    String,
    /// Base64.
    Bytes,
    Int32,
    Int64,
    Double,
    Bool,
    Any,
    Type(TypeId),
    List(ShapeId),
    Map(ShapeId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShapeId(u32);

/// What a named type is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeKind {
    Struct,
    Quantity,
    IntOrString,
    Time,
    MicroTime,
    /// Any JSON object, kept as it is: RawExtension, FieldsV1.
    Raw,
    /// Any JSON at all.
    Any,
}

#[derive(Clone, Copy, Debug)]
pub struct Type {
    pub name: Name,
    pub kind: TypeKind,
    /// Replaced as a whole by server-side apply.
    pub atomic: bool,
    /// Of whose fields one is set: `DISCRIMINATOR:FIELD=NAME,FIELD=NAME`; empty for others.
    pub union: Name,
    /// Of what shape keys are that are no fields; without it there may be none.
    pub rest: Option<Shape>,
    first_field: u32,
    field_count: u32,
}

/// `x-kubernetes-list-type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListType {
    /// Nothing said: atomic.
    #[default]
    Unsaid,
    Atomic,
    Set,
    Map,
}

/// `x-kubernetes-patch-strategy`; several may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PatchStrategy {
    pub merge: bool,
    pub replace: bool,
    pub retain_keys: bool,
}

/// `x-kubernetes-map-type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MapType {
    #[default]
    Unsaid,
    Granular,
    Atomic,
}

#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub name: Name,
    pub shape: Shape,
    pub required: bool,
    pub list_type: ListType,
    /// Separated by spaces.
    pub map_keys: Name,
    pub strategy: PatchStrategy,
    pub merge_key: Name,
    pub map_type: MapType,
    /// Go's name for the field's type where it is none that the shape tells: `v1.PullPolicy`.
    pub go_type: Name,
    /// Go never writes the zero value, so it is the same as absent.
    pub drops_zero: bool,
    /// Go writes null where nothing is said.
    pub shows_null: bool,
    /// JSON; empty when the schema states none. What Go has where nothing is said: `""`, `0`, `{}`
    /// of what is no pointer among them.
    pub default: Name,
    /// The values that are allowed, as a JSON list; empty when all are.
    pub enumeration: Name,
}

/// Types with their fields. Identity of a type is its OpenAPI v2 name.
#[derive(Debug, Default)]
pub struct Schema {
    text: Box<str>,
    types: Box<[Type]>,
    fields: Box<[Field]>,
    shapes: Box<[Shape]>,
    /// Sorted by name.
    by_name: Box<[TypeId]>,
}

impl Schema {
    pub fn text(&self, name: Name) -> &str {
        let start = name.start as usize;
        &self.text[start..start + name.length as usize]
    }

    pub fn find(&self, type_name: &str) -> Option<TypeId> {
        let found = self
            .by_name
            .binary_search_by(|id| self.type_name(*id).cmp(type_name))
            .ok()?;
        Some(self.by_name[found])
    }

    pub fn get(&self, id: TypeId) -> &Type {
        &self.types[id.0 as usize]
    }

    pub fn type_name(&self, id: TypeId) -> &str {
        self.text(self.get(id).name)
    }

    /// All types, in the order they were built: by name for the built-in schema.
    pub fn types(&self) -> impl Iterator<Item = TypeId> + use<> {
        (0..u32::try_from(self.types.len()).expect("ids are u32")).map(TypeId)
    }

    /// The fields of a struct, sorted by name; none for the other types.
    pub fn fields(&self, id: TypeId) -> &[Field] {
        let one = self.get(id);
        let first = one.first_field as usize;
        &self.fields[first..first + one.field_count as usize]
    }

    pub fn field(&self, id: TypeId, name: &str) -> Option<&Field> {
        let fields = self.fields(id);
        let found = fields
            .binary_search_by(|field| self.text(field.name).cmp(name))
            .ok()?;
        Some(&fields[found])
    }

    pub fn shape(&self, id: ShapeId) -> Shape {
        self.shapes[id.0 as usize]
    }

    /// The keys that identify an item of a list of type map.
    pub fn map_keys(&self, field: &Field) -> impl Iterator<Item = &str> {
        self.text(field.map_keys).split_whitespace()
    }
}

/// Group, version, kind and schema name of everything that k8s-openapi knows as a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownKind {
    pub schema: &'static str,
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
}

static STRUCTURE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/structure.deflate"));
static DESCRIPTIONS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptions.deflate"));
static KINDS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/kinds.deflate"));
static PARAMETERS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/parameters.deflate"));

/// The schema of all built-in kinds.
pub fn schema() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| parse::parse(&unpack(STRUCTURE)).expect("the build wrote it"))
}

/// All that documents are made from, packed.
pub(crate) fn blobs() -> [&'static [u8]; 4] {
    [STRUCTURE, DESCRIPTIONS, KINDS, PARAMETERS]
}

/// The built-in kinds, lists among them.
pub fn kinds() -> &'static [KnownKind] {
    static PARSED: OnceLock<Vec<KnownKind>> = OnceLock::new();
    PARSED.get_or_init(|| {
        let text: &'static str = Box::leak(unpack(KINDS).into_boxed_str());
        text.lines()
            .filter_map(|line| {
                let mut columns = line.split('\t');
                let mut next = || columns.next();
                Some(KnownKind {
                    schema: next()?,
                    group: next()?,
                    version: next()?,
                    kind: next()?,
                })
            })
            .collect()
    })
}

/// The descriptions of the built-in schema: one line a type, then one a field, in their order.
/// Unpacked anew on each call, so that a server that nobody asks for OpenAPI does not carry them.
pub(crate) fn descriptions() -> String {
    unpack(DESCRIPTIONS)
}

/// The facts about parameters of operations, unpacked anew as descriptions are.
pub(crate) fn parameters() -> String {
    unpack(PARAMETERS)
}

/// A text as it was before the build put it on one line.
pub(crate) fn unescape(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => text.push('\n'),
                Some(other) => text.push(other),
                None => {}
            },
            _ => text.push(c),
        }
    }
    text
}

pub(crate) fn unpack(packed: &[u8]) -> String {
    let mut text = String::new();
    flate2::read::DeflateDecoder::new(packed)
        .read_to_string(&mut text)
        .expect("the build wrote it");
    text
}

#[cfg(test)]
mod tests;
