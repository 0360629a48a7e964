//! What the tests of decisions share.

use super::*;
use crate::view::tests::Objects;
use coracle_api::catalogue;
use serde_json::{Value, json};

mod access; // Who may do what, line by line.
mod catalogue_walk; // Every row and verb is refused to whom has no rights.
mod node_rules; // What a node may do.

/// An authorizer that knows the bootstrap objects and `objects`.
fn authorizer(objects: &[(&'static str, Value)]) -> Authorizer {
    let authorizer = Authorizer::new(Objects::new([]));
    for object in bootstrap::objects() {
        let plural = bootstrap::plural(&object);
        authorizer.apply(rbac::GROUP, plural, &object.key(), Some(&object));
    }
    for (plural, value) in objects {
        let object = Object::from_value(value.clone()).unwrap();
        let followed = FOLLOWED.iter().find(|(_, own)| own == plural);
        let (group, _) = followed.unwrap();
        authorizer.apply(group, plural, &object.key(), Some(&object));
    }
    authorizer
}

/// `verb group/resource/subresource [namespace [name]]`, with `-` for none; `verb /path` else.
fn request(text: &str) -> RequestInfo {
    let mut words = text.split_whitespace();
    let verb = words.next().unwrap().to_owned();
    let what = words.next().unwrap();
    if what.starts_with('/') {
        return RequestInfo {
            verb,
            path: what.to_owned(),
            ..RequestInfo::default()
        };
    }
    let (group, resource) = match what.split_once(':') {
        Some((group, resource)) => (group, resource),
        None => ("", what),
    };
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let mut word = || {
        words
            .next()
            .filter(|word| *word != "-")
            .unwrap_or("")
            .to_owned()
    };
    RequestInfo {
        verb,
        group: group.to_owned(),
        version: "v1".to_owned(),
        resource: resource.to_owned(),
        subresource: subresource.to_owned(),
        namespace: word(),
        name: word(),
        field_selector: word(),
        is_resource_request: true,
        ..RequestInfo::default()
    }
}

fn answer(authorizer: &Authorizer, user: &User, text: &str) -> String {
    match authorizer.check(user, &request(text)) {
        Ok(()) => "yes".to_owned(),
        Err(status) => {
            assert_eq!((status.code, &*status.reason), (403, "Forbidden"));
            status.message
        }
    }
}
