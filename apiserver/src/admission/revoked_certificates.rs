//! The list of revoked certificates is never written in a form that cannot be read: what had been
//! taken back would count again.

use super::{Attributes, Operation};
use crate::pki::revoked::{NAME, NAMESPACE, Revoked};
use coracle_api::object::Object;
use coracle_api::status::Status;

pub fn check(object: &Object, asked: &Attributes<'_>) -> Result<(), Status> {
    let is_list = asked.is_main("", "configmaps")
        && asked.namespace == NAMESPACE
        && object.str(&["metadata", "name"]) == NAME;
    if !is_list || !matches!(asked.operation, Operation::Create | Operation::Update) {
        return Ok(());
    }
    match Revoked::in_map(object) {
        Ok(_) => Ok(()),
        Err(error) => {
            let why = format!("it must hold a list of revoked certificates: {error}");
            Err(asked.forbidden(Some(object), why))
        }
    }
}
