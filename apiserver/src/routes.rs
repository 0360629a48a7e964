//! Which row of the catalogue a request is for, and whether its path is there for its method.
//!
//! As upstream's router decides, and in its order: a path that nothing has is 404, a method that
//! the path has not is 405, and a Content-Type that the route does not take is 415, which only
//! patches can be. What the client accepts is looked at after that.

use crate::body;
use crate::request_info::{Place, RequestInfo};
use crate::tokens::{CONFIGURATION_PATH, KEYS_PATH};
use coracle_api::custom::Kinds;
use coracle_api::names;
use coracle_api::resource::{Resource, Subresource, SubresourceKind};
use coracle_api::status::Status;
use http::request::Parts;
use http::{HeaderMap, Method};
use serde_json::json;

/// Parts of a path up to and with the subresource's.
const SUBRESOURCE_AT: usize = 3;

/// The methods that the form of a path may have, each with the verb that a row must have for it.
type Methods = &'static [(Method, &'static str)];
const COLLECTION: Methods = &[
    (Method::GET, "list"),
    (Method::POST, "create"),
    (Method::DELETE, "deletecollection"),
];
const OVER_ALL: Methods = &[(Method::GET, "list")];
const WATCH: Methods = &[(Method::GET, "watch")];
const ONE: Methods = &[
    (Method::GET, "get"),
    (Method::PUT, "update"),
    (Method::PATCH, "patch"),
    (Method::DELETE, "delete"),
];
const SUBRESOURCE: Methods = &[
    (Method::GET, "get"),
    (Method::POST, "create"),
    (Method::PUT, "update"),
    (Method::PATCH, "patch"),
    (Method::DELETE, "delete"),
];
/// What is proxied may be asked in any way.
const PROXY: Methods = &[
    (Method::GET, "get"),
    (Method::HEAD, "get"),
    (Method::OPTIONS, "get"),
    (Method::POST, "create"),
    (Method::PUT, "update"),
    (Method::PATCH, "patch"),
    (Method::DELETE, "delete"),
];

pub type Found = (&'static Resource, Option<&'static Subresource>);

/// The row, and the subresource where one is asked for.
/// `row` is the one that the request names, if there is one.
pub fn find(
    row: Option<&'static Resource>,
    request: &Parts,
    info: &RequestInfo,
) -> Result<Found, Status> {
    let found = row.filter(|_| names_group(info));
    let resource = found.ok_or_else(Status::path_not_found)?;
    let subresource = match info.place.parts {
        0..SUBRESOURCE_AT => None,
        _ => Some(
            resource
                .subresource(&info.subresource)
                .ok_or_else(Status::path_not_found)?,
        ),
    };
    let mut offered = offered(&info.place, resource, subresource).peekable();
    if offered.peek().is_none() {
        return Err(Status::path_not_found());
    }
    if !offered.any(|method| *method == request.method) {
        return Err(not_supported());
    }
    let connects = subresource.is_some_and(|one| one.kind == SubresourceKind::Connect);
    if request.method == Method::PATCH && !connects && !takes_patch(&request.headers) {
        return Err(Status {
            details: json!({}),
            ..Status::unsupported_media_type("415: Unsupported Media Type")
        });
    }
    Ok((resource, subresource))
}

/// No name that would lead elsewhere in a path.
pub fn check_name(info: &RequestInfo) -> Result<(), Status> {
    let name = info.name.as_str();
    if name.is_empty() {
        return Ok(());
    }
    let faults = names::path_segment(name);
    match faults.first() {
        None => Ok(()),
        Some(_) => Err(Status::bad_request(format!(
            "Name parameter invalid: {name:?}: {}",
            faults.join(", ")
        ))),
    }
}

/// True when the path is below a group that is served.
pub fn has_group(kinds: &Kinds, info: &RequestInfo) -> bool {
    names_group(info) && is_group(kinds, &info.group)
}

/// The core group has a root of its own: nothing is below `/apis//`.
fn names_group(info: &RequestInfo) -> bool {
    info.place.is_below_apis != info.group.is_empty()
}

fn is_group(kinds: &Kinds, group: &str) -> bool {
    kinds.groups().any(|one| one.name == group)
}

/// True for a path of upstream's router, whether that has a route for it or not.
pub fn is_below_router(kinds: &Kinds, path: &str) -> bool {
    const ROOTS: [&str; 4] = ["/api", "/version", CONFIGURATION_PATH, KEYS_PATH];
    let is_below = |root: &str| {
        let rest = path.strip_prefix(root);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let group = path
        .strip_prefix("/apis/")
        .and_then(|rest| rest.split('/').next());
    ROOTS.into_iter().any(is_below)
        || group.is_some_and(|group| !group.is_empty() && is_group(kinds, group))
}

/// The refusal of a method.
pub fn not_supported() -> Status {
    Status {
        code: 405,
        reason: "MethodNotAllowed".into(),
        message: "the server does not allow this method on the requested resource".to_owned(),
        details: json!({}),
    }
}

/// One of several will do here: the verb looks closer.
fn takes_patch(headers: &HeaderMap) -> bool {
    let kinds = body::content_type(headers).split(',');
    let mut names = kinds.map(|one| one.split(';').next().unwrap_or("").trim_matches(' '));
    names.any(|name| body::patch_types().any(|own| own == name))
}

/// The methods that the path has; none when there is no such path.
fn offered(
    place: &Place,
    row: &'static Resource,
    subresource: Option<&'static Subresource>,
) -> impl Iterator<Item = &'static Method> {
    let has_name = place.parts > 1;
    let goes_on = place.parts > SUBRESOURCE_AT;
    let is_over_all = row.is_namespaced() && !place.is_namespaced && !has_name;
    let is_elsewhere = row.is_namespaced() != place.is_namespaced && !is_over_all;
    let routes = match subresource {
        _ if is_elsewhere => &[],
        Some(_) if place.is_watch => &[],
        Some(one) if one.name == crate::proxy::SUBRESOURCE => PROXY,
        Some(_) if goes_on => &[],
        Some(_) => SUBRESOURCE,
        None if place.is_watch => WATCH,
        None if is_over_all => OVER_ALL,
        None if has_name => ONE,
        None => COLLECTION,
    };
    let verbs = subresource.map_or(row.verbs, |one| one.verbs);
    let there = routes.iter().filter(|(_, verb)| verbs.contains(verb));
    there.map(|(method, _)| method)
}

#[cfg(test)]
mod tests;
