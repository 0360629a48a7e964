//! Validation of policies that change: which patches they make, and whether again.

use crate::field::{ErrorList, FieldError, Path};
use crate::json;
use crate::kinds::admission_registration::expressions::{Gives, Scope, compile};
use crate::kinds::admission_registration::{REINVOCATION_POLICIES, policy};
use crate::kinds::checks;
use crate::object::Object;
use serde_json::Value;

/// Patch types, the fields that go with them, and what an expression there gives.
const PATCHES: [(&str, &str, Gives); 2] = [
    ("ApplyConfiguration", "applyConfiguration", Gives::Object),
    ("JSONPatch", "jsonPatch", Gives::Patches),
];

pub fn spec(object: &Object) -> ErrorList {
    let path = Path::root("spec");
    let spec = object.get(&["spec"]).unwrap_or(&Value::Null);
    let (mut errors, scope) = policy::head(spec, true, &path);
    let scope = scope.with_patches();
    let mutations = json::list(spec, "mutations");
    if mutations.is_empty() {
        let detail = "mutations must contain at least one item";
        errors.push(FieldError::required(&path.child("mutations"), detail));
    }
    for (index, one) in mutations.iter().enumerate() {
        errors.extend(mutation(one, &scope, &path.child("mutations").index(index)));
    }
    checks::required_one_of(
        &mut errors,
        json::text(spec, "reinvocationPolicy"),
        REINVOCATION_POLICIES,
        &path.child("reinvocationPolicy"),
    );
    errors
}

fn mutation(mutation: &Value, scope: &Scope, path: &Path) -> ErrorList {
    let kind = json::text(mutation, "patchType");
    let mut errors = ErrorList::new();
    let known = PATCHES.iter().partition(|(known, ..)| *known == kind);
    let (own, others): (Vec<_>, Vec<_>) = known;
    let [(_, field, gives)] = own[..] else {
        let supported = PATCHES.map(|(kind, ..)| kind);
        let path = path.child("patchType");
        checks::required_one_of(&mut errors, kind, &supported, &path);
        return errors;
    };
    let of_patch = path.child(field);
    match json::some(mutation, field) {
        None => {
            let detail = format!("must be specified when patchType is {kind}");
            errors.push(FieldError::required(&of_patch, detail));
        }
        Some(patch) => {
            let path = of_patch.child("expression");
            match json::text(patch, "expression").trim() {
                "" => errors.push(FieldError::required(&path, "")),
                text => errors.extend(compile(text, scope, gives, &path)),
            }
        }
    }
    for (_, other, _) in others {
        if json::has(mutation, other) {
            let detail = format!("must not be specified when patchType is {kind}");
            let shown = format!("{{{other}}}");
            errors.push(FieldError::invalid(&path.child(other), shown, detail));
        }
    }
    errors
}
