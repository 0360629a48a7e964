//! `DELETE` of one object: at once, with grace, or when its finalizers have let go.

use super::asked::Asked;
use super::write::ATTEMPTS_MAX;
use crate::admission::{Attributes, How, Operation};
use crate::body::{Content, Encoded};
use crate::options::{DeleteOptions, Propagation};
use crate::registry::{Refusal, Stored};
use crate::tunnel::Body;
use crate::{Api, body};
use coracle_api::decode::{self, DecodeError, FieldValidation, TypeMeta};
use coracle_api::deletion::{self, DefaultPolicy};
use coracle_api::object::Object;
use coracle_api::protobuf::{self, ProtobufError};
use coracle_api::resource::Part;
use coracle_api::scheme;
use coracle_api::status::{Status, Subject};
use coracle_api::timestamp::format_time;
use coracle_store::Expect;
use http::{Response, StatusCode};
use jiff::{Timestamp, ToSpan};
use serde_json::{Value, json};

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";
const OPTIONS_TYPE: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

pub async fn delete(
    api: &Api,
    asked: &Asked<'_>,
    request_body: Body,
) -> Result<Response<Body>, Status> {
    let options = options(asked, request_body).await?;
    warn(asked, &options);
    let (resource, name) = (asked.resource, asked.info.name.as_str());
    let deleted = one(api, asked, name, &options).await?;
    let is_gone = matches!(deleted, Deleted::Gone(_));
    let is_accepted = !is_gone && options.orphan_dependents == Some(false);
    let code = if is_accepted {
        StatusCode::ACCEPTED
    } else {
        StatusCode::OK
    };
    let response = match deleted {
        Deleted::Ending(object) => asked.shape.object(code, resource, &object),
        Deleted::Gone(object) | Deleted::Pending(object)
            if deletion::is_answered_with_object(resource) =>
        {
            asked.shape.object(code, resource, &object)
        }
        Deleted::Gone(object) | Deleted::Pending(object) => {
            let status = success(asked, name, object.uid());
            asked.shape.document(code, &status)
        }
    };
    Ok(response)
}

/// Tells what leaves dependents behind without having been asked to.
pub fn warn(asked: &Asked<'_>, options: &DeleteOptions) {
    let warning = deletion::warning(asked.resource).map(str::to_owned);
    asked
        .warnings
        .add(warning.filter(|_| options.propagation.is_none()));
}

/// From the body if there is one, else from the query.
pub async fn options(asked: &Asked<'_>, request_body: Body) -> Result<DeleteOptions, Status> {
    let bytes = body::read(request_body).await?;
    if bytes.is_empty() {
        return DeleteOptions::from_query(&asked.query);
    }
    let encoded = Encoded::of(&asked.request.headers, bytes)?;
    let body = match encoded.content {
        Content::Protobuf => of_protobuf(&encoded.bytes)?,
        _ => of_json(&encoded.to_json().map_err(Status::bad_request)?)?,
    };
    DeleteOptions::from_body(&body)
}

fn of_json(bytes: &[u8]) -> Result<Value, Status> {
    if bytes.trim_ascii() == b"null" {
        return Ok(Value::Null);
    }
    let refused = |error: DecodeError| {
        Status::bad_request(match error {
            // It is looked for in every group version, so that its own is not what is missing.
            DecodeError::Syntax(why) => {
                format!("couldn't get version/kind; json parse error: {why}")
            }
            other => other.to_string(),
        })
    };
    check_kind(&decode::type_meta(bytes).map_err(refused)?)?;
    let decoded = decode::decode(bytes, OPTIONS_TYPE, FieldValidation::Ignore).map_err(refused)?;
    Ok(decoded.object.into_value())
}

/// The kind is looked at first: what the bytes mean depends on it.
fn of_protobuf(bytes: &[u8]) -> Result<Value, Status> {
    let refused = |error: ProtobufError| Status::bad_request(error.to_string());
    check_kind(&protobuf::type_meta(bytes).map_err(refused)?)?;
    let (_, mut value) = protobuf::decode_as(bytes, OPTIONS_TYPE).map_err(refused)?;
    let conformed = decode::conform(&mut value, OPTIONS_TYPE, FieldValidation::Ignore);
    conformed.map_err(|error| Status::bad_request(error.to_string()))?;
    Ok(value)
}

fn check_kind(meta: &TypeMeta) -> Result<(), Status> {
    let found = scheme::Kind {
        api_version: &meta.api_version,
        kind: &meta.kind,
    };
    scheme::options_refusal(found).map_or(Ok(()), |why| Err(Status::bad_request(why)))
}

fn success(asked: &Asked<'_>, name: &str, uid: &str) -> Value {
    let mut details = json!({ "name": name, "kind": asked.resource.plural, "uid": uid });
    if !asked.resource.group.is_empty() {
        details["group"] = asked.resource.group.into();
    }
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": details,
    })
}

/// How a deletion went.
#[derive(Debug)]
pub enum Deleted {
    Gone(Object),
    /// It waits for its grace period or for finalizers.
    Ending(Object),
    /// It was on its way before, and stays on it.
    Pending(Object),
}

/// True for an object that is being deleted and that nobody and nothing holds any more.
pub fn is_finished(object: &Object) -> bool {
    let grace = object.i64(&["metadata", "deletionGracePeriodSeconds"]);
    object.is_deleting() && !is_held(object) && grace.is_none_or(|seconds| seconds == 0)
}

fn is_held(object: &Object) -> bool {
    object.finalizers().next().is_some() || !object.list(&["spec", "finalizers"]).is_empty()
}

/// Deletes one object; decided anew when somebody else got ahead.
pub async fn one(
    api: &Api,
    asked: &Asked<'_>,
    name: &str,
    options: &DeleteOptions,
) -> Result<Deleted, Status> {
    for _ in 0..ATTEMPTS_MAX {
        let stored = api.get(asked.resource, asked.namespace(), name).await?;
        check_preconditions(asked, name, &stored.object, options)?;
        let old = Some(&stored.object);
        let attributes = Attributes {
            how: How::Deletion(options),
            ..asked.attributes(Operation::Delete, name, old, options.dry_run)
        };
        api.access.admission.pass(&attributes).await?;
        let next = next_state(asked, &stored.object, options);
        if options.dry_run {
            return Ok(match next {
                Next::Same => Deleted::Pending(stored.object),
                Next::Ending(object) => Deleted::Ending(object),
                Next::Gone(object) => Deleted::Gone(object),
            });
        }
        match commit(api, asked, stored, next).await {
            Ok(deleted) => return Ok(deleted),
            Err(Refusal::Changed) => {}
            Err(refusal) => return Err(refusal.status(asked.resource, name)),
        }
    }
    Err(Status::modified(asked.subject(name)))
}

pub fn check_preconditions(
    asked: &Asked<'_>,
    name: &str,
    object: &Object,
    options: &DeleteOptions,
) -> Result<(), Status> {
    let failed = |what: &str, wanted: &str, found: &str, maybe: &str| {
        let why = format!(
            "the {what} in the precondition ({wanted}) does not match the {what} in record \
             ({found}). The object might have been {maybe}"
        );
        // By kind, as upstream has it here.
        let subject = Subject {
            group: asked.resource.group,
            resource: asked.resource.kind,
            name,
        };
        if asked.resource.rules.is_taken_apart() {
            let why = format!(
                "Precondition failed: {what} in precondition: {wanted}, {what} in object meta: \
                 {found}"
            );
            return Err(Status::conflict(asked.subject(name), &why));
        }
        Err(Status::conflict(subject, &why))
    };
    match (&options.uid, &options.resource_version) {
        (Some(uid), _) if uid != object.uid() => {
            failed("UID", uid, object.uid(), "deleted and then recreated")
        }
        (_, Some(version)) if version != object.resource_version() => {
            let found = object.resource_version();
            failed("ResourceVersion", version, found, "modified")
        }
        _ => Ok(()),
    }
}

/// What a deletion makes of an object.
enum Next {
    Same,
    /// The state in which it waits.
    Ending(Object),
    /// Its last state.
    Gone(Object),
}

fn next_state(asked: &Asked<'_>, object: &Object, options: &DeleteOptions) -> Next {
    let rules = asked.resource.rules;
    if rules.is_taken_apart() {
        if !object.is_deleting() {
            return Next::Ending(announced(asked, object, options));
        }
        if !object.list(&["spec", "finalizers"]).is_empty() {
            return Next::Same;
        }
    }
    let grace = rules.grace_seconds(object, options.grace_period_seconds);
    let is_graceful = grace.is_some();
    let mut next = object.clone();
    if !object.is_deleting() {
        rules.announce_delete(&mut next, &format_time(asked.now));
    }
    match grace {
        Some(_) if object.is_deleting() && left(object) > 0 => {
            // A second deletion can only shorten the grace of the first.
            match options.grace_period_seconds {
                Some(seconds) if seconds < left(object) => shorten(asked, &mut next, seconds),
                _ => return Next::Same,
            }
        }
        Some(seconds) if !object.is_deleting() => {
            mark(asked, &mut next, seconds);
            rules.begin_delete(&mut next);
        }
        _ => {}
    }
    set_finalizers(asked, &mut next, options.propagation);
    if is_held(&next) && left(&next) == 0 && !is_marked(&next) {
        mark(asked, &mut next, 0);
        rules.begin_delete(&mut next);
    }
    match (is_held(&next), left(&next)) {
        (false, 0) if is_graceful => Next::Gone(next),
        (false, 0) => Next::Gone(object.clone()),
        _ => Next::Ending(next),
    }
}

/// The state in which others begin to take an object apart.
fn announced(asked: &Asked<'_>, object: &Object, options: &DeleteOptions) -> Object {
    let mut next = object.clone();
    let at = format_time(asked.now);
    next.set(&["metadata", "deletionTimestamp"], at.into());
    asked.resource.rules.begin_delete(&mut next);
    let propagation = match options.orphan_dependents {
        // The older way to say it means more here, as upstream has it.
        Some(false) => Some(Propagation::Foreground),
        _ => options.propagation,
    };
    set_finalizers(asked, &mut next, propagation);
    next
}

/// The grace that is left, of an object that is being deleted.
fn left(object: &Object) -> i64 {
    let seconds = object.i64(&["metadata", "deletionGracePeriodSeconds"]);
    seconds.unwrap_or(0)
}

fn is_marked(object: &Object) -> bool {
    let grace = ["metadata", "deletionGracePeriodSeconds"];
    object.is_deleting() && object.get(&grace).is_some()
}

fn mark(asked: &Asked<'_>, object: &mut Object, grace_seconds: i64) {
    let is_first = !object.is_deleting();
    let at = asked
        .now
        .checked_add(grace_seconds.seconds())
        .unwrap_or(asked.now);
    set_end(object, at, grace_seconds);
    if is_first && object.generation() > 0 {
        let generation = object.generation() + 1;
        object.set(&["metadata", "generation"], generation.into());
    }
}

fn set_end(object: &mut Object, at: Timestamp, grace_seconds: i64) {
    object.set(&["metadata", "deletionTimestamp"], format_time(at).into());
    let grace = ["metadata", "deletionGracePeriodSeconds"];
    object.set(&grace, grace_seconds.into());
}

/// Counted from when the first deletion was asked for, and never into the past.
fn shorten(asked: &Asked<'_>, object: &mut Object, seconds: i64) {
    let ends: Option<Timestamp> = object.str(&["metadata", "deletionTimestamp"]).parse().ok();
    let moved = ends.and_then(|ends| ends.checked_add((seconds - left(object)).seconds()).ok());
    let at = moved.unwrap_or(asked.now);
    if at >= asked.now {
        set_end(object, at, seconds);
    } else {
        // What is to end with grace is still ended by whoever holds it.
        set_end(object, asked.now, seconds.min(1));
    }
}

/// The collector's finalizers: as asked for, else as they stand, else as the kind has it.
fn set_finalizers(asked: &Asked<'_>, object: &mut Object, wanted: Option<Propagation>) {
    let policy = deletion::default_policy(asked.resource);
    let has = |name: &str| object.finalizers().any(|one| one == name);
    let propagation = match (wanted, policy) {
        (_, DefaultPolicy::Unsupported) => Propagation::Background,
        (Some(wanted), _) => wanted,
        (None, _) if has(ORPHAN) => Propagation::Orphan,
        (None, _) if has(FOREGROUND) => Propagation::Foreground,
        (None, DefaultPolicy::Orphan) => Propagation::Orphan,
        (None, DefaultPolicy::Delete) => Propagation::Background,
    };
    let wanted = match propagation {
        Propagation::Background => None,
        Propagation::Foreground => Some(FOREGROUND),
        Propagation::Orphan => Some(ORPHAN),
    };
    if has(FOREGROUND) == (wanted == Some(FOREGROUND)) && has(ORPHAN) == (wanted == Some(ORPHAN)) {
        return;
    }
    let mut finalizers: Vec<Value> = object
        .list(&["metadata", "finalizers"])
        .iter()
        .filter(|one| *one != FOREGROUND && *one != ORPHAN)
        .cloned()
        .collect();
    finalizers.extend(wanted.map(Value::from));
    if finalizers.is_empty() {
        object.remove(&["metadata", "finalizers"]);
    } else {
        object.set(&["metadata", "finalizers"], Value::Array(finalizers));
    }
}

async fn commit(
    api: &Api,
    asked: &Asked<'_>,
    stored: Stored,
    next: Next,
) -> Result<Deleted, Refusal> {
    let (resource, expect) = (asked.resource, Expect::At(stored.revision));
    let old = &stored.object;
    let version = ["metadata", "resourceVersion"];
    match next {
        Next::Same => Ok(Deleted::Pending(stored.object)),
        Next::Ending(next) if next == *old => Ok(Deleted::Ending(next)),
        Next::Ending(mut next) => {
            let durability = resource.rules.durability(&next, Some(old), Part::Main);
            let put = api.registry.put(resource, &next, expect, durability);
            next.set(&version, put.await?.to_string().into());
            Ok(Deleted::Ending(next))
        }
        Next::Gone(mut last) => {
            let durability = resource.rules.durability(old, Some(old), Part::Main);
            let delete = api.registry.delete(resource, &last, expect, durability);
            last.set(&version, delete.await?.to_string().into());
            api.allocator.release(&api.registry, resource, &last).await;
            Ok(Deleted::Gone(last))
        }
    }
}
