//! The subresource `eviction`: deletes a pod as `kubectl drain` asks for it, unless the pod's
//! disruption budget has nothing left.
//!
//! The pod's status says why it ends. A budget is charged before the pod is deleted, with the
//! revision that was read, so that two evictions never spend the same disruption.

use super::act::{self, Act};
use super::asked::Asked;
use super::decode::Expected;
use super::delete;
use super::write::ATTEMPTS_MAX;
use crate::Api;
use crate::options::DeleteOptions;
use crate::registry::{self, Refusal, Stored};
use crate::respond::json_bytes;
use crate::tunnel::Body;
use crate::view::View;
use coracle_api::catalogue;
use coracle_api::kinds::pod::eviction::{self, Charge};
use coracle_api::object::Object;
use coracle_api::resource::{Durability, Resource};
use coracle_api::status::{Status, Subject};
use coracle_api::timestamp::format_time;
use coracle_store::Expect;
use http::{Response, StatusCode};
use serde_json::{Value, json};

pub const SUBRESOURCE: &str = "eviction";

const GROUP: &str = "policy";
const BUDGETS: &str = "poddisruptionbudgets";
/// What a client that is told to come back waits, where the server is behind.
const RETRY_SECONDS: u32 = 10;

pub async fn evict(
    api: &Api,
    asked: &Asked<'_>,
    request_body: Body,
) -> Result<Response<Body>, Status> {
    let mut act = act::read(asked, &Expected::of_request(asked), request_body).await?;
    let deletion = deletion(&act)?;
    act::admit(api, asked, &mut act, deletion.dry_run).await?;
    let name = act.name.as_str();
    let Some(pod) = without_budget(api, asked, name, &deletion).await? else {
        return Ok(act::done());
    };
    let budgets = budgets(api, &pod.object);
    let mut guarded = deletion.clone();
    let mut needs_same_pod = false;
    match budgets.as_slice() {
        [] => {}
        [budget] if eviction::is_spared(&pod.object, budget) => {
            // It must not become ready meanwhile.
            needs_same_pod = true;
            guarded.resource_version = Some(pod.object.resource_version().to_owned());
        }
        [budget] => charge(api, asked, &pod.object, budget, deletion.dry_run).await?,
        _ => return Ok(too_many_budgets()),
    }
    match go(api, asked, name, &guarded).await {
        Err(status)
            if needs_same_pod && status.code == 409 && deletion.resource_version.is_none() =>
        {
            let budget = budgets.first().map_or("", Object::name);
            Err(behind(budget))
        }
        other => other.map(|()| act::done()),
    }
}

/// How the pod is to be deleted: what the body says, with the trial that the request may ask for.
fn deletion(act: &Act) -> Result<DeleteOptions, Status> {
    let body = act.body.get(&["deleteOptions"]).unwrap_or(&Value::Null);
    let mut deletion = DeleteOptions::from_body(body)?;
    deletion.dry_run |= act.options.dry_run;
    Ok(deletion)
}

/// Deletes a pod that no budget counts; gives back one that a budget may speak for.
async fn without_budget(
    api: &Api,
    asked: &Asked<'_>,
    name: &str,
    deletion: &DeleteOptions,
) -> Result<Option<Stored>, Status> {
    let mut last = Status::modified(registry::subject(asked.resource, name));
    for _ in 0..ATTEMPTS_MAX {
        let stored = api.registry.get(asked.resource, asked.namespace(), name)?;
        if !eviction::ignores_budgets(&stored.object) {
            return Ok(Some(stored));
        }
        let mut options = deletion.clone();
        if options.resource_version.is_none() && !eviction::has_ended(&stored.object) {
            options.resource_version = Some(stored.object.resource_version().to_owned());
        }
        match go(api, asked, name, &options).await {
            Err(status) if status.code == 409 && deletion.resource_version.is_none() => {
                last = status;
            }
            other => return other.map(|()| None),
        }
    }
    Err(last)
}

/// The budgets of a pod's namespace that select it.
fn budgets(api: &Api, pod: &Object) -> Vec<Object> {
    let store = &api.registry.store;
    let mut all = store.list(GROUP, BUDGETS, Some(pod.namespace()));
    all.retain(|budget| eviction::selects(budget, pod));
    all
}

/// As upstream, a failure that comes with the code of a success.
fn too_many_budgets() -> Response<Body> {
    let answer = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 500,
        "message": "This pod has more than one PodDisruptionBudget, which the eviction \
                    subresource does not support.",
    });
    json_bytes(StatusCode::INTERNAL_SERVER_ERROR, answer.to_string())
}

fn refused(cause: &str, retry_seconds: u32) -> Status {
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    let mut status = Status::too_many_requests(message, retry_seconds);
    if retry_seconds == 0 {
        status.details = json!({});
    }
    status.details["causes"] = json!([{ "reason": "DisruptionBudget", "message": cause }]);
    status
}

fn behind(budget: &str) -> Status {
    let cause = format!("The disruption budget {budget} is still being processed by the server.");
    refused(&cause, RETRY_SECONDS)
}

fn row() -> &'static Resource {
    catalogue::find(GROUP, "v1", BUDGETS).expect("the catalogue has budgets")
}

/// Takes one disruption from the budget.
async fn charge(
    api: &Api,
    asked: &Asked<'_>,
    pod: &Object,
    budget: &Object,
    dry_run: bool,
) -> Result<(), Status> {
    let (row, name) = (row(), budget.name());
    for _ in 0..ATTEMPTS_MAX {
        let Stored {
            object: mut budget,
            revision,
        } = api.registry.get(row, budget.namespace(), name)?;
        match eviction::charge(&mut budget, pod.name(), &format_time(asked.now)) {
            Charge::Taken => {}
            Charge::Behind => return Err(behind(name)),
            Charge::Empty(cause) => return Err(refused(&cause, 0)),
            Charge::Broken(why) => {
                let subject = Subject {
                    group: GROUP,
                    resource: "poddisruptionbudget",
                    name,
                };
                return Err(Status::forbidden(subject, why));
            }
        }
        if dry_run {
            return Ok(());
        }
        let expect = Expect::At(revision);
        let put = api.registry.put(row, &budget, expect, Durability::Synced);
        match put.await {
            Ok(_) => return Ok(()),
            Err(Refusal::Changed) => {}
            Err(refusal) => return Err(refusal.status(row, name)),
        }
    }
    let why = format!("couldn't update PodDisruptionBudget {name:?} due to conflicts");
    Err(Status::timeout(why, RETRY_SECONDS))
}

/// Says in the pod's status why it ends, and deletes it.
async fn go(
    api: &Api,
    asked: &Asked<'_>,
    name: &str,
    options: &DeleteOptions,
) -> Result<(), Status> {
    let mut options = options.clone();
    if !options.dry_run
        && let Some(version) = say_why(api, asked, name, &options).await?
        && options.resource_version.is_some()
    {
        // It was this write that made the newest version.
        options.resource_version = Some(version);
    }
    delete::one(api, asked, name, &options).await.map(drop)
}

/// The version that this made.
async fn say_why(
    api: &Api,
    asked: &Asked<'_>,
    name: &str,
    options: &DeleteOptions,
) -> Result<Option<String>, Status> {
    let (resource, namespace) = (asked.resource, asked.namespace());
    for _ in 0..ATTEMPTS_MAX {
        let stored = api.registry.get(resource, namespace, name)?;
        delete::check_preconditions(asked, name, &stored.object, options)?;
        if stored.object.is_deleting() {
            return Ok(None);
        }
        let mut pod = stored.object;
        eviction::mark(&mut pod, &format_time(asked.now));
        let expect = Expect::At(stored.revision);
        let put = api.registry.put(resource, &pod, expect, Durability::Synced);
        match put.await {
            Ok(revision) => return Ok(Some(revision.to_string())),
            Err(Refusal::Changed) => {}
            Err(refusal) => return Err(refusal.status(resource, name)),
        }
    }
    Err(Status::modified(registry::subject(resource, name)))
}
