//! The subresource `token` of a service account: a signed token, by a TokenRequest.

use super::asked::Asked;
use super::decode::Expected;
use super::write_options::{Kind, WriteOptions};
use crate::Api;
use crate::admission::Operation;
use crate::body::Encoded;
use crate::tokens::claims::{Claims, Reference};
use crate::tunnel::Body;
use crate::view::View;
use coracle_api::apply::{Filter, Writer, put_managed_fields};
use coracle_api::field::{ErrorList, FieldError, Path};
use coracle_api::json;
use coracle_api::object::Object;
use coracle_api::status::{Status, Subject};
use coracle_api::timestamp::format_time;
use http::{Response, StatusCode};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

pub const SUBRESOURCE: &str = "token";

const GROUP: &str = "authentication.k8s.io";
const VERSION: &str = "authentication.k8s.io/v1";
const KIND: &str = "TokenRequest";
const TYPE: &str = "io.k8s.api.authentication.v1.TokenRequest";
const SECONDS_DEFAULT: i64 = 3600;
const SECONDS_MIN: i64 = 600;
const SECONDS_MAX: i64 = 1 << 32;
/// What the volumes of pods ask for. Programs that read their token once and never again get a
/// year, and are told after this that they should read it anew.
const EXTENDED_ASKED: i64 = 3607;
const EXTENDED_SECONDS: i64 = 365 * 24 * 60 * 60;

/// What a token is bound to.
#[derive(Debug, Default)]
struct Bound {
    pod: Option<Reference>,
    secret: Option<Reference>,
    node: Option<Reference>,
}

pub async fn create(
    api: &Api,
    asked: &Asked<'_>,
    request_body: Body,
) -> Result<Response<Body>, Status> {
    let body = Encoded::read(&asked.request.headers, request_body).await?;
    let options = WriteOptions::parse(asked, Kind::Create)?;
    let (mut object, unknown) =
        Expected::of_request(asked).decode(&body, options.field_validation)?;
    asked.warnings.add(unknown);
    if seconds(&object).is_none() {
        object.set(&["spec", "expirationSeconds"], SECONDS_DEFAULT.into());
    }
    manage(&mut object, &options, asked.now);
    if object.get(&["spec", "boundObjectRef"]).is_none() {
        object.set(&["spec", "boundObjectRef"], Value::Null);
    }
    asked.settle_namespace(&mut object)?;
    let (namespace, name) = (asked.info.namespace.as_str(), asked.info.name.as_str());
    let attributes = asked.attributes(Operation::Create, name, None, options.dry_run);
    api.access
        .admission
        .mutate(&mut object, &attributes)
        .await?;
    check_name(&object, name)?;
    let view: &dyn View = &api.registry.store;
    let account = get(view, "serviceaccounts", namespace, name)?;
    if !object.uid().is_empty() && object.uid() != account.uid() {
        let why = format!(
            "the UID in the token request ({}) does not match the UID of the service account ({})",
            object.uid(),
            account.uid()
        );
        return Err(Status::conflict(subject(name), &why));
    }
    let tokens = &api.access.tokens;
    if object.list(&["spec", "audiences"]).is_empty() {
        object.set(&["spec", "audiences"], json!(tokens.audiences()));
    }
    for (field, value) in [
        ("name", name),
        ("uid", account.uid()),
        ("creationTimestamp", &format_time(asked.now)),
    ] {
        object.set(&["metadata", field], value.into());
    }
    object.remove(&["status"]);
    let errors = validate(&object);
    if !errors.is_empty() {
        return Err(Status::invalid(subject(""), &errors));
    }
    api.access.admission.validate(&object, &attributes).await?;
    let bound = bind(view, &object, namespace, name)?;
    let claims = claims(&object, &account, bound, tokens.audiences(), asked.now);
    let life = SignedDuration::from_secs(seconds(&object).unwrap_or(SECONDS_DEFAULT));
    let ends = asked.now.saturating_add(life).unwrap_or(Timestamp::MAX);
    let status = json!({
        "token": tokens.issue(&claims)?,
        "expirationTimestamp": format_time(ends),
    });
    object.set(&["status"], status);
    let shape = &asked.shape;
    Ok(shape.object(StatusCode::CREATED, asked.resource, &object))
}

fn seconds(object: &Object) -> Option<i64> {
    object.get(&["spec", "expirationSeconds"])?.as_i64()
}

/// Who wrote what of the request, though nobody reads it again.
fn manage(object: &mut Object, options: &WriteOptions, now: Timestamp) {
    let now = format_time(now);
    let writer = Writer {
        api_version: VERSION,
        kind: KIND,
        type_name: TYPE,
        family: None,
        subresource: SUBRESOURCE,
        filter: Filter::All,
        manager: &options.manager,
        now: &now,
    };
    let list = writer.update(None, object);
    if object.get(&["metadata"]).is_none() {
        object.set(&["metadata"], json!({}));
    }
    put_managed_fields(object.root_mut(), list);
}

fn subject(name: &str) -> Subject<'_> {
    Subject {
        group: GROUP,
        resource: KIND,
        name,
    }
}

fn check_name(object: &Object, name: &str) -> Result<(), Status> {
    let own = object.name();
    if own.is_empty() || own == name {
        return Ok(());
    }
    let path = Path::root("metadata").child("name");
    let why = "must match the service account name if specified";
    let error = FieldError::invalid(&path, own, why);
    Err(Status::invalid(subject(name), &[error]))
}

fn validate(object: &Object) -> ErrorList {
    let mut errors = ErrorList::new();
    let seconds = seconds(object).unwrap_or(SECONDS_DEFAULT);
    let path = Path::root("spec").child("expirationSeconds");
    if seconds < SECONDS_MIN {
        let why = "may not specify a duration less than 10 minutes";
        errors.push(FieldError::invalid(&path, seconds, why));
    }
    if seconds > SECONDS_MAX {
        let why = "may not specify a duration larger than 2^32 seconds";
        errors.push(FieldError::invalid(&path, seconds, why));
    }
    errors
}

fn get(
    view: &dyn View,
    resource: &'static str,
    namespace: &str,
    name: &str,
) -> Result<Object, Status> {
    view.get("", resource, namespace, name).ok_or_else(|| {
        Status::not_found(Subject {
            group: "",
            resource,
            name,
        })
    })
}

/// Looks up the object that the token shall live and die with.
fn bind(view: &dyn View, object: &Object, namespace: &str, name: &str) -> Result<Bound, Status> {
    let mut bound = Bound::default();
    let Some(reference) = object.get(&["spec", "boundObjectRef"]) else {
        return Ok(bound);
    };
    if reference.is_null() {
        return Ok(bound);
    }
    let (version, kind) = (
        json::text(reference, "apiVersion"),
        json::text(reference, "kind"),
    );
    let (group, short) = version.rsplit_once('/').unwrap_or(("", version));
    let wanted = json::text(reference, "name");
    let found = match (group, kind) {
        ("", "Pod") => {
            let pod = get(view, "pods", namespace, wanted)?;
            if pod.str(&["spec", "serviceAccountName"]) != name {
                return Err(Status::bad_request(format!(
                    "cannot bind token for serviceaccount {name:?} to pod running with different \
                     serviceaccount name."
                )));
            }
            bound.pod = Some(Reference::to(&pod));
            bound.node = node_of(view, &pod);
            pod
        }
        ("", "Node") => {
            let node = get(view, "nodes", "", wanted)?;
            bound.node = Some(Reference::to(&node));
            node
        }
        ("", "Secret") => {
            let secret = get(view, "secrets", namespace, wanted)?;
            bound.secret = Some(Reference::to(&secret));
            secret
        }
        _ => {
            let why = format!("cannot bind token to object of type {group}/{short}, Kind={kind}");
            return Err(Status::bad_request(why));
        }
    };
    let uid = json::text(reference, "uid");
    if uid.is_empty() || uid == found.uid() {
        return Ok(bound);
    }
    let subject = Subject {
        group: "",
        resource: kind,
        name: wanted,
    };
    let why = format!(
        "the UID in the bound object reference ({uid}) does not match the UID in record. The \
         object might have been deleted and then recreated"
    );
    Err(Status::conflict(subject, &why))
}

/// A node that is not there is named all the same.
fn node_of(view: &dyn View, pod: &Object) -> Option<Reference> {
    let name = pod.str(&["spec", "nodeName"]);
    if name.is_empty() {
        return None;
    }
    let node = view.get("", "nodes", "", name);
    Some(node.map_or_else(
        || Reference {
            name: name.to_owned(),
            uid: String::new(),
        },
        |node| Reference::to(&node),
    ))
}

fn claims(
    object: &Object,
    account: &Object,
    bound: Bound,
    own_audiences: &[String],
    now: Timestamp,
) -> Claims {
    let audiences: Vec<String> = object
        .list(&["spec", "audiences"])
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    let asked = seconds(object).unwrap_or(SECONDS_DEFAULT);
    let is_extended = asked == EXTENDED_ASKED
        && bound.pod.is_some()
        && audiences.iter().all(|one| own_audiences.contains(one));
    let life = if is_extended { EXTENDED_SECONDS } else { asked };
    let now = now.as_second();
    Claims {
        id: uuid::Uuid::new_v4().to_string(),
        audiences,
        issued_at: now,
        not_before: now,
        expires_at: now + life,
        namespace: account.namespace().to_owned(),
        account: Reference::to(account),
        pod: bound.pod,
        secret: bound.secret,
        node: bound.node,
        warn_after: is_extended.then_some(now + asked),
    }
}
