//! Which row of the catalogue a request is for, and whether its path is there for its method.
//!
//! As upstream's router decides, and in its order: a path that nothing has is 404, a method that
//! the path has not is 405, and a Content-Type that the route does not take is 415, which only
//! patches can be. What the client accepts is looked at after that.

use crate::body;
use crate::request_info::{NAMESPACE_SUBRESOURCES, RequestInfo};
use crate::tokens::{CONFIGURATION_PATH, KEYS_PATH};
use coracle_api::catalogue;
use coracle_api::names;
use coracle_api::resource::{Resource, Subresource, SubresourceKind};
use coracle_api::status::Status;
use http::request::Parts;
use http::{HeaderMap, Method};
use serde_json::json;

pub type Found = (&'static Resource, Option<&'static Subresource>);

/// The row, and the subresource where one is asked for.
pub fn find(request: &Parts, info: &RequestInfo) -> Result<Found, Status> {
    let found = catalogue::find(&info.group, &info.version, &info.resource);
    let resource = found.ok_or_else(Status::path_not_found)?;
    let trimmed = info.path.trim_matches('/');
    let skipped = if info.group.is_empty() { 2 } else { 3 };
    let parts: Vec<&str> = trimmed.split('/').skip(skipped).collect();
    let place = Place::of(&parts);
    let subresource = match place.subresource {
        None => None,
        Some(name) => Some(
            resource
                .subresource(name)
                .ok_or_else(Status::path_not_found)?,
        ),
    };
    let offered = place.offered(resource, subresource);
    if offered.is_empty() {
        return Err(Status::path_not_found());
    }
    if !offered.contains(&request.method) {
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

/// True for a group that is served.
pub fn is_group(group: &str) -> bool {
    catalogue::groups().any(|one| one.name == group)
}

/// True for a path of upstream's router, whether that has a route for it or not.
pub fn is_below_router(path: &str) -> bool {
    const ROOTS: [&str; 4] = ["/api", "/version", CONFIGURATION_PATH, KEYS_PATH];
    let is_below = |root: &str| {
        let rest = path.strip_prefix(root);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let group = path
        .strip_prefix("/apis/")
        .and_then(|rest| rest.split('/').next());
    ROOTS.into_iter().any(is_below)
        || group.is_some_and(|group| !group.is_empty() && is_group(group))
}

/// The refusal of a method.
pub fn not_supported() -> Status {
    Status {
        code: 405,
        reason: "MethodNotAllowed",
        message: "the server does not allow this method on the requested resource".to_owned(),
        details: json!({}),
    }
}

/// One of several will do here: the verb looks closer.
fn takes_patch(headers: &HeaderMap) -> bool {
    let kinds = body::content_type(headers).split(',');
    let mut names = kinds.map(|one| one.split(';').next().unwrap_or("").trim_matches(' '));
    names.any(|name| body::PATCH_TYPES.contains(&name))
}

/// A path behind its version, in the parts that routes are told apart by.
#[derive(Debug)]
struct Place<'a> {
    /// `watch/` stands before the rest: the older way to ask for a watch.
    is_watch: bool,
    is_namespaced: bool,
    has_name: bool,
    subresource: Option<&'a str>,
    /// There is more, which only a proxy has.
    goes_on: bool,
}

impl<'a> Place<'a> {
    fn of(parts: &[&'a str]) -> Self {
        let (is_watch, parts) = match parts {
            ["watch", rest @ ..] => (true, rest),
            _ => (false, parts),
        };
        let (is_namespaced, rest) = match parts {
            ["namespaces", _, next, ..] if !NAMESPACE_SUBRESOURCES.contains(next) => {
                (true, &parts[2..])
            }
            _ => (false, parts),
        };
        Self {
            is_watch,
            is_namespaced,
            has_name: rest.len() > 1,
            subresource: rest.get(2).copied(),
            goes_on: rest.len() > 3,
        }
    }

    /// The methods that the path has; none when there is no such path.
    fn offered(&self, row: &Resource, subresource: Option<&Subresource>) -> Vec<Method> {
        let is_over_all = row.is_namespaced() && !self.is_namespaced && !self.has_name;
        if row.is_namespaced() != self.is_namespaced && !is_over_all {
            return Vec::new();
        }
        let has = |verb: &str| row.verbs.contains(&verb);
        let only = |methods: &[(Method, bool)]| {
            let there = methods.iter().filter(|(_, is_there)| *is_there);
            there.map(|(method, _)| method.clone()).collect()
        };
        match subresource {
            Some(_) if self.is_watch => Vec::new(),
            Some(one) if self.goes_on && one.name != crate::proxy::SUBRESOURCE => Vec::new(),
            Some(one) => methods_of(one),
            None if self.is_watch => only(&[(Method::GET, has("watch"))]),
            None if is_over_all => only(&[(Method::GET, has("list"))]),
            None if self.has_name => only(&[
                (Method::GET, has("get")),
                (Method::PUT, has("update")),
                (Method::PATCH, has("patch")),
                (Method::DELETE, has("delete")),
            ]),
            None => only(&[
                (Method::GET, has("list")),
                (Method::POST, has("create")),
                (Method::DELETE, has("deletecollection")),
            ]),
        }
    }
}

fn methods_of(subresource: &Subresource) -> Vec<Method> {
    let method = |verb: &&str| match *verb {
        "get" => Some(Method::GET),
        "create" => Some(Method::POST),
        "update" => Some(Method::PUT),
        "patch" => Some(Method::PATCH),
        "delete" => Some(Method::DELETE),
        _ => None,
    };
    let mut methods: Vec<Method> = subresource.verbs.iter().filter_map(method).collect();
    if subresource.name == crate::proxy::SUBRESOURCE {
        methods.extend([Method::HEAD, Method::OPTIONS]);
    }
    methods
}

#[cfg(test)]
mod tests;
