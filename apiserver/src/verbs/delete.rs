//! `DELETE` of one object: at once, with grace, or when its finalizers have let go.

use super::asked::Asked;
use super::write::ATTEMPTS_MAX;
use crate::admission::Operation;
use crate::options::{DeleteOptions, Propagation};
use crate::registry::{Refusal, Stored};
use crate::respond::json_bytes;
use crate::tunnel::Body;
use crate::{Api, body};
use coracle_api::object::Object;
use coracle_api::resource::Part;
use coracle_api::status::Status;
use coracle_api::timestamp::format_time;
use coracle_store::Expect;
use http::{Response, StatusCode};
use jiff::ToSpan;
use serde_json::{Value, json};

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

pub async fn delete(
    api: &Api,
    asked: &Asked<'_>,
    request_body: Body,
) -> Result<Response<Body>, Status> {
    let options = options(asked, request_body).await?;
    let name = asked.info.name.as_str();
    Ok(match one(api, asked, name, &options).await? {
        Deleted::Gone(object) => {
            let status = success(asked, name, object.uid());
            json_bytes(StatusCode::OK, status.to_string())
        }
        Deleted::Ending(object) => asked.shape.object(StatusCode::OK, asked.resource, &object),
    })
}

/// From the body if there is one, else from the query.
pub async fn options(asked: &Asked<'_>, request_body: Body) -> Result<DeleteOptions, Status> {
    let bytes = body::read(request_body).await?;
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return DeleteOptions::from_query(&asked.query);
    }
    let bytes = body::to_json(body::content(&asked.request.headers), bytes)?;
    let value: Value = serde_json::from_slice(&bytes)
        .map_err(|error| Status::bad_request(coracle_api::decode::syntax_text(&error, &bytes)))?;
    DeleteOptions::from_body(&value)
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
        let stored = api.registry.get(asked.resource, asked.namespace(), name)?;
        check_preconditions(asked, name, &stored.object, options)?;
        let attributes = asked.attributes(
            Operation::Delete,
            name,
            Some(&stored.object),
            options.dry_run,
        );
        api.access.admission.validate(None, &attributes)?;
        let next = next_state(asked, &stored.object, options);
        if options.dry_run {
            return Ok(next.map_or_else(|| Deleted::Gone(stored.object), Deleted::Ending));
        }
        match commit(api, asked, &stored, next).await {
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
    let failed = |what: &str, wanted: &str, found: &str| {
        let why = format!(
            "Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
        );
        Err(Status::conflict(asked.subject(name), &why))
    };
    match (&options.uid, &options.resource_version) {
        (Some(uid), _) if uid != object.uid() => failed("UID", uid, object.uid()),
        (_, Some(version)) if version != object.resource_version() => {
            failed("ResourceVersion", version, object.resource_version())
        }
        _ => Ok(()),
    }
}

/// The state in which the object waits; `None` when it goes at once.
fn next_state(asked: &Asked<'_>, object: &Object, options: &DeleteOptions) -> Option<Object> {
    let mut next = object.clone();
    set_finalizers(&mut next, propagation(asked, object, options));
    let grace = asked
        .resource
        .rules
        .grace_seconds(object, options.grace_period_seconds);
    let seconds = grace.unwrap_or(0);
    if object.is_deleting() {
        // A second deletion can only shorten the first one's grace.
        let left = object
            .i64(&["metadata", "deletionGracePeriodSeconds"])
            .unwrap_or(0);
        if grace.is_some() && seconds < left {
            mark(asked, &mut next, seconds);
        }
    } else {
        mark(asked, &mut next, seconds);
        asked.resource.rules.begin_delete(&mut next);
    }
    (!is_finished(&next)).then_some(next)
}

/// What the client asks for; else what the object's finalizers say already; else what its kind does.
fn propagation(asked: &Asked<'_>, object: &Object, options: &DeleteOptions) -> Option<Propagation> {
    let is_decided = object
        .finalizers()
        .any(|one| one == FOREGROUND || one == ORPHAN);
    let orphans = !is_decided && asked.resource.rules.orphans_by_default();
    options
        .propagation
        .or(orphans.then_some(Propagation::Orphan))
}

fn mark(asked: &Asked<'_>, object: &mut Object, grace_seconds: i64) {
    let at = asked
        .now
        .checked_add(grace_seconds.seconds())
        .unwrap_or(asked.now);
    object.set(&["metadata", "deletionTimestamp"], format_time(at).into());
    object.set(
        &["metadata", "deletionGracePeriodSeconds"],
        grace_seconds.into(),
    );
    if asked.resource.rules.counts_generations() {
        object.set(
            &["metadata", "generation"],
            (object.generation() + 1).into(),
        );
    }
}

fn set_finalizers(object: &mut Object, propagation: Option<Propagation>) {
    let Some(propagation) = propagation else {
        return;
    };
    let mut finalizers: Vec<Value> = object
        .list(&["metadata", "finalizers"])
        .iter()
        .filter(|one| *one != FOREGROUND && *one != ORPHAN)
        .cloned()
        .collect();
    match propagation {
        Propagation::Background => {}
        Propagation::Foreground => finalizers.push(FOREGROUND.into()),
        Propagation::Orphan => finalizers.push(ORPHAN.into()),
    }
    if finalizers.is_empty() {
        object.remove(&["metadata", "finalizers"]);
    } else {
        object.set(&["metadata", "finalizers"], Value::Array(finalizers));
    }
}

async fn commit(
    api: &Api,
    asked: &Asked<'_>,
    stored: &Stored,
    next: Option<Object>,
) -> Result<Deleted, Refusal> {
    let (resource, expect) = (asked.resource, Expect::At(stored.revision));
    let old = &stored.object;
    match next {
        Some(next) if next == *old => Ok(Deleted::Ending(next)),
        Some(mut next) => {
            let durability = resource.rules.durability(&next, Some(old), Part::Main);
            let revision = api
                .registry
                .put(resource, &next, expect, durability)
                .await?;
            next.set(
                &["metadata", "resourceVersion"],
                revision.to_string().into(),
            );
            Ok(Deleted::Ending(next))
        }
        None => {
            let durability = resource.rules.durability(old, Some(old), Part::Main);
            api.registry
                .delete(resource, old, expect, durability)
                .await?;
            Ok(Deleted::Gone(old.clone()))
        }
    }
}
