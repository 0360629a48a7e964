//! Discovery and OpenAPI documents, with an `ETag` each, so that clients fetch them once.

use crate::aggregation::Remote;
use crate::aggregation::documents as others;
use crate::query::Query;
use crate::respond::{self, Route, Served, Shape, Wishes, yaml};
use crate::tunnel::Body;
use bytes::Bytes;
use coracle_api::custom::Kinds;
use coracle_api::discovery::Form;
use coracle_api::openapi::Documents;
use coracle_api::status::Status;
use coracle_api::{discovery, openapi};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH, LOCATION, VARY};
use http::request::Parts;
use http::{Response, StatusCode};
use ring::digest;
use serde_json::Value;
use std::sync::Arc;

const OPENAPI_V3: &str = "/openapi/v3";
const AGGREGATION: &str = "apiregistration.k8s.io";

/// A group of the catalogue that is not served here.
pub type LeftOut = Option<&'static str>;

/// `/api/v1`, `/apis/apps`, `/apis/apps/v1` and so on.
pub fn group_paths(kinds: &Kinds, left_out: LeftOut) -> Vec<String> {
    let mut paths = Vec::new();
    for row in kinds.all() {
        if left_out == Some(row.group) {
            continue;
        }
        let all = if row.group.is_empty() {
            vec![format!("/api/{}", row.version)]
        } else {
            let group = format!("/apis/{}", row.group);
            vec![group.clone(), format!("{group}/{}", row.version)]
        };
        paths.extend(all);
    }
    paths.sort();
    paths.dedup();
    paths
}

/// The list of groups, and each group: for any method.
pub fn groups(
    kinds: &Kinds,
    path: &str,
    left_out: LeftOut,
    remotes: &[Arc<Remote>],
    request: &Parts,
) -> Option<Response<Body>> {
    let rest = path.strip_prefix("/apis")?;
    let name = rest.strip_prefix('/').unwrap_or(rest);
    let name = name.strip_suffix('/').unwrap_or(name);
    if rest.is_empty() || rest == "/" {
        return Some(
            match discovery::aggregated_form(&respond::accepted(request)) {
                Some(form) => {
                    let all = discovery::aggregated_groups(kinds);
                    let mut all = without(all, "items", left_out);
                    others::add_aggregated(&mut all, remotes);
                    aggregated(&all, form, request)
                }
                None => {
                    let mut all = without(discovery::group_list(kinds), "groups", left_out);
                    others::add_groups(&mut all, remotes);
                    shaped(&all, request, Shape::beside_routes)
                }
            },
        );
    }
    // The group of what is aggregated is served by the one who does that, by its router.
    if name == AGGREGATION {
        return None;
    }
    let own = discovery::group(kinds, name).filter(|_| left_out != Some(name));
    let group = others::group(own, name, remotes)?;
    Some(shaped(&group, request, Shape::beside_routes))
}

/// A list of groups without one; `entries` says where it lists them.
fn without(mut document: Value, entries: &str, left_out: LeftOut) -> Value {
    let groups = document[entries].as_array_mut();
    if let (Some(groups), Some(left_out)) = (groups, left_out) {
        groups.retain(|group| group["name"] != left_out && group["metadata"]["name"] != left_out);
    }
    document
}

/// Versions, and the resources of each.
pub fn resources(
    kinds: &Kinds,
    path: &str,
    address: &str,
    left_out: LeftOut,
    request: &Parts,
) -> Option<Response<Body>> {
    let parts: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
    let document = match parts.as_slice() {
        ["api"] => {
            if let Some(form) = discovery::aggregated_form(&respond::accepted(request)) {
                return Some(aggregated(
                    &discovery::aggregated_core(kinds),
                    form,
                    request,
                ));
            }
            discovery::api_versions(address)
        }
        ["api", version] => discovery::resource_list(kinds, "", version, sha256)?,
        ["apis", AGGREGATION] => discovery::group(kinds, AGGREGATION)?,
        ["apis", group, _] if left_out == Some(group) => return None,
        ["apis", group, version] => discovery::resource_list(kinds, group, version, sha256)?,
        _ => return None,
    };
    // Ages stand in tables alone.
    let routed = |request: &Parts, served| Shape::of(request, served, 0);
    Some(shaped(&document, request, routed))
}

fn shaped(
    document: &Value,
    request: &Parts,
    negotiate: impl FnOnce(&Parts, Served) -> Result<Shape, Status>,
) -> Response<Body> {
    let served = Served {
        table: false,
        route: Route::Document,
    };
    match negotiate(request, served) {
        Ok(shape) => shape.document(StatusCode::OK, document),
        Err(status) => Wishes::of(request).failure(&status),
    }
}

fn sha256(bytes: &[u8]) -> Vec<u8> {
    digest::digest(&digest::SHA256, bytes).as_ref().to_vec()
}

fn vary(response: &mut Response<Body>) {
    let accept = HeaderValue::from_static("Accept");
    response.headers_mut().insert(VARY, accept);
}

fn aggregated(document: &Value, form: Form, request: &Parts) -> Response<Body> {
    let json = document.to_string();
    let tag = hex::encode_upper(digest::digest(&digest::SHA512, json.as_bytes()));
    let mut response = tagged(request, &tag, || {
        let encoded = match form {
            Form::Json => None,
            Form::Yaml => Some(yaml::document(document).into_bytes()),
            Form::Protobuf => discovery::aggregated_protobuf(document).ok(),
        };
        match encoded {
            Some(bytes) => self::document(form.aggregated(), bytes),
            None => self::document(Form::Json.aggregated(), json),
        }
    });
    vary(&mut response);
    let public = HeaderValue::from_static("public");
    response.headers_mut().insert(CACHE_CONTROL, public);
    response
}

/// The document, or 304 for a client that has it.
fn tagged(request: &Parts, tag: &str, make: impl FnOnce() -> Response<Body>) -> Response<Body> {
    let tag = format!("\"{tag}\"");
    let known = request.headers.get(IF_NONE_MATCH);
    let is_known = known
        .and_then(|value| value.to_str().ok())
        .is_some_and(|known| known.split(',').any(|one| is_same(one.trim(), &tag)));
    let mut response = if is_known {
        let mut response = Response::new(respond::full(""));
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        make()
    };
    if let Ok(value) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(ETAG, value);
    }
    response
}

/// Weak tags compare as strong ones here; `*` is any.
fn is_same(known: &str, tag: &str) -> bool {
    known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag
}

/// `None` for a path that is no document and none of the third version.
pub fn open_api(
    kinds: &Kinds,
    path: &str,
    left_out: LeftOut,
    remotes: &[Arc<Remote>],
    request: &Parts,
    query: &Query,
) -> Option<Response<Body>> {
    if path == "/openapi/v2" {
        let Some(form) = Documents::V2.negotiate(&respond::accepted(request)) else {
            return Some(not_acceptable());
        };
        let kind = Documents::V2.content_type(form);
        let mut response = tagged(request, &openapi::v2_hash(kinds), || {
            document(kind, openapi::v2(kinds, form))
        });
        vary(&mut response);
        return Some(response);
    }
    if path == OPENAPI_V3 {
        let mut index = openapi::v3_index(kinds);
        if let Some(paths) = index["paths"].as_object_mut() {
            paths.retain(|path, _| !is_left_out(path, left_out));
        }
        others::add_schemas(&mut index, remotes);
        let index = index.to_string();
        // Upstream calls it a text.
        return Some(document("text/plain; charset=utf-8", index));
    }
    let name = path.strip_prefix("/openapi/v3/")?;
    let hash = openapi::v3_hash(kinds, name).filter(|_| !is_left_out(name, left_out));
    let Some(hash) = hash else {
        let mut response = Response::new(respond::full(""));
        *response.status_mut() = StatusCode::NOT_FOUND;
        return Some(response);
    };
    let Some(form) = Documents::V3.negotiate(&respond::accepted(request)) else {
        return Some(not_acceptable());
    };
    let asked = query.get("hash").filter(|asked| !asked.is_empty());
    if asked.is_some_and(|asked| asked != hash) {
        return Some(moved(path, &hash));
    }
    let kind = Documents::V3.content_type(form);
    let mut response = tagged(request, &hash, || {
        document(
            kind,
            openapi::v3_group(kinds, name, form).unwrap_or_default(),
        )
    });
    vary(&mut response);
    if asked.is_some() {
        // An address with the hash in it never shows anything else.
        let value = HeaderValue::from_static("public, immutable");
        response.headers_mut().insert(CACHE_CONTROL, value);
    }
    Some(response)
}

/// For a path below `/`.
fn is_left_out(path: &str, left_out: LeftOut) -> bool {
    let group = path
        .strip_prefix("apis/")
        .and_then(|rest| rest.split('/').next());
    group.is_some() && group == left_out
}

fn document(kind: &'static str, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(respond::full(body));
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

fn not_acceptable() -> Response<Body> {
    let mut response = Response::new(respond::full(""));
    *response.status_mut() = StatusCode::NOT_ACCEPTABLE;
    vary(&mut response);
    response
}

/// The document changed: its address is another one now.
fn moved(path: &str, hash: &str) -> Response<Body> {
    let mut response = Response::new(respond::full(""));
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    let headers = response.headers_mut();
    for (name, value) in [
        (LOCATION, format!("{path}?hash={hash}")),
        (ETAG, format!("\"{hash}\"")),
    ] {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    }
    vary(&mut response);
    response
}
