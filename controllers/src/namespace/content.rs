//! One pass over what a namespace holds: deletes everything, and says what is left and why.
//!
//! Pods go first, and as long as one is left nothing else is touched: a pod may need its secrets,
//! its policies and its service until it has ended. Nor is it where that cannot be told, since the
//! pods could not be listed or deleted; upstream goes on then.

use coracle_client::Client;
use futures::{StreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use kube::core::ObjectList;

use super::EmptyError;
use super::pass::{Emptied, Pass, judge};
use crate::discovery::{self, Meta, Resource};
use crate::refusal;

/// Resources that are emptied at the same time.
const RESOURCES_AT_ONCE: usize = 4;
/// Objects of one page of a list.
const PAGE_SIZE: u32 = 500;

/// Deletes everything in the namespace that can be deleted.
pub(super) async fn delete_all(
    client: &Client,
    namespace: &Namespace,
    now: Timestamp,
) -> Result<Pass, EmptyError> {
    let discovered = discovery::discover(client)
        .await
        .map_err(EmptyError::Discover)?;
    let mut pass = Pass::new(&discovered);
    let name = namespace.metadata.name.as_deref().unwrap_or_default();
    let deleted_at = namespace.metadata.deletion_timestamp.as_ref();
    let age = deleted_at.map_or(0, |at| now.duration_since(at.0).as_secs());
    let age_seconds = u64::try_from(age).unwrap_or(0);
    let deletable = discovered.resources.iter();
    let deletable = deletable.filter(|one| one.namespaced && one.supports("delete"));
    let (pods, others): (Vec<_>, Vec<_>) = deletable.partition(|one| is_pods(one));
    let mut pods_may_be_left = false;
    for pods in pods {
        let mut emptied = delete_pods(client, pods, name, age_seconds).await;
        emptied.error = emptied
            .error
            .map(|error| format!("failed to delete pods for namespace: {name}, err: {error}"));
        pods_may_be_left |= emptied.remaining.is_some() || emptied.error.is_some();
        pass.add(emptied);
    }
    if !pods_may_be_left {
        let each = others.into_iter();
        let each = each.map(|one| delete_resource(client, one, name, 0));
        let each: Vec<_> = each.collect();
        let mut each = stream::iter(each).buffer_unordered(RESOURCES_AT_ONCE);
        while let Some(emptied) = each.next().await {
            pass.add(emptied);
        }
    }
    Ok(pass)
}

fn is_pods(resource: &Resource) -> bool {
    resource.api.group.is_empty() && resource.api.plural == "pods"
}

async fn delete_pods(client: &Client, pods: &Resource, name: &str, age_seconds: u64) -> Emptied {
    let typed: Api<Pod> = Api::namespaced(client.clone(), name);
    match typed.list(&ListParams::default()).await {
        Ok(list) => {
            let grace = grace_seconds(&list.items);
            let estimate = if age_seconds >= grace { 0 } else { grace };
            delete_resource(client, pods, name, estimate).await
        }
        Err(error) => Emptied {
            error: Some(refusal::message(&error)),
            ..Emptied::default()
        },
    }
}

/// The longest grace of pods that have not ended.
fn grace_seconds(pods: &[Pod]) -> u64 {
    let live = pods.iter().filter(|pod| {
        let status = pod.status.as_ref();
        let phase = status.and_then(|status| status.phase.as_deref());
        !matches!(phase, Some("Succeeded" | "Failed"))
    });
    let grace = live.filter_map(|pod| pod.spec.as_ref()?.termination_grace_period_seconds);
    grace
        .max()
        .and_then(|most| most.try_into().ok())
        .unwrap_or(0)
}

async fn delete_resource(
    client: &Client,
    resource: &Resource,
    namespace: &str,
    estimate_seconds: u64,
) -> Emptied {
    let objects = resource.objects(client, namespace);
    let left = match delete_objects(&objects, resource).await {
        Ok(left) => left,
        Err(error) => {
            return Emptied {
                estimate_seconds,
                error: Some(refusal::message(&error)),
                remaining: None,
            };
        }
    };
    left.map_or_else(Emptied::default, |list| {
        judge(resource, namespace, &list, estimate_seconds)
    })
}

/// Deletes all objects and lists what is left; none if that cannot be told.
async fn delete_objects(
    objects: &Api<Meta>,
    resource: &Resource,
) -> Result<Option<ObjectList<Meta>>, kube::Error> {
    let can_list = resource.supports("list");
    let found = if can_list { list(objects).await? } else { None };
    if found.as_ref().is_some_and(|found| found.items.is_empty()) {
        return Ok(found);
    }
    let params = DeleteParams::background();
    let mut deleted = false;
    if resource.supports("deletecollection") {
        let everything = ListParams::default();
        match objects.delete_collection(&params, &everything).await {
            Ok(_) => deleted = true,
            Err(error) if is_unsupported(&error) => {}
            Err(error) => return Err(error),
        }
    }
    if !deleted {
        for item in found.iter().flat_map(|found| &found.items) {
            let name = item.metadata.name.as_deref().unwrap_or_default();
            match objects.delete(name, &params).await {
                Ok(_) => {}
                Err(error) if is_unsupported(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }
    if can_list {
        list(objects).await
    } else {
        Ok(None)
    }
}

/// All pages of a list, in one; none if the resource cannot be listed after all.
async fn list(objects: &Api<Meta>) -> Result<Option<ObjectList<Meta>>, kube::Error> {
    let mut params = ListParams::default().limit(PAGE_SIZE);
    let mut all: Option<ObjectList<Meta>> = None;
    loop {
        let page = match objects.list(&params).await {
            Ok(page) => page,
            Err(error) if is_unsupported(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let more = page
            .metadata
            .continue_
            .clone()
            .filter(|token| !token.is_empty());
        match &mut all {
            None => all = Some(page),
            Some(all) => all.items.extend(page.items),
        }
        let Some(token) = more else {
            return Ok(all);
        };
        params = params.continue_token(&token);
    }
}

/// The server has no such verb there, whatever discovery said; or the object is gone.
fn is_unsupported(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if matches!(status.code, 404 | 405))
}

#[cfg(test)]
mod tests;
