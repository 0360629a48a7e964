//! Where in a document a pass is, written out only when an error names it.

use crate::schema::{Schema, TypeId};

#[derive(Clone, Copy)]
pub(super) enum Step<'p> {
    Root,
    Field(&'p str),
    Key(&'p str),
    Index(usize),
}

/// Where the pass is: a list linked through the call stack, so that a good document costs nothing.
#[derive(Clone, Copy)]
pub(super) struct Here<'p> {
    pub parent: Option<&'p Here<'p>>,
    pub step: Step<'p>,
    /// The innermost struct.
    pub type_id: Option<TypeId>,
}

impl Here<'_> {
    /// `spec.containers[0].image`, as strict errors have it.
    pub fn write(&self, out: &mut String) {
        if let Some(parent) = self.parent {
            parent.write(out);
        }
        match self.step {
            Step::Root => {}
            Step::Field(name) | Step::Key(name) => {
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(name);
            }
            Step::Index(index) => {
                out.push('[');
                out.push_str(&index.to_string());
                out.push(']');
            }
        }
    }

    /// `spec.containers.image`, as Go's type errors have it. A struct that Go has embedded in another stands in them with its own name.
    pub fn write_fields(&self, schema: &Schema, out: &mut String) {
        if let Some(parent) = self.parent {
            parent.write_fields(schema, out);
        }
        if let Step::Field(name) = self.step {
            if !out.is_empty() {
                out.push('.');
            }
            let owner = self.parent.and_then(|parent| parent.type_id);
            let embedded = owner.and_then(|id| {
                let is_kind = matches!(name, "apiVersion" | "kind");
                if is_kind && schema.field(id, "metadata").is_some() {
                    return Some("TypeMeta");
                }
                crate::protobuf::embedded(schema.type_name(id), name)
            });
            if let Some(embedded) = embedded {
                out.push_str(embedded);
                out.push('.');
            }
            out.push_str(name);
        }
    }
}
