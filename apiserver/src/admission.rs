//! Admission: what may still change or stop a write after it was authorized and decoded.
//!
//! Mutating plugins run before validation of the object, validating ones after it, each list in
//! upstream's order. Reads the store through a view; never writes.

use crate::authenticate::User;
use coracle_api::object::Object;
use coracle_api::resource::Resource;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

impl Operation {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// The request around an object. `name` and `namespace` are empty where there are none.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    pub user: &'a User,
    pub operation: Operation,
    pub resource: &'static Resource,
    pub subresource: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
    /// The stored object, on update and delete.
    pub old: Option<&'a Object>,
    pub dry_run: bool,
}
