//! Devices: admin access to them, and who writes the status of a claim.
//!
//! Admin access, to devices that others use, is for namespaces that are labelled for it. Where a
//! claim is allocated and for whom is written by those who have `resourceclaims/binding` in the
//! whole cluster; what a driver says of a device by those who have `resourceclaims/driver` with the
//! driver's name, on the node of the devices or on any. Source: upstream's registry of
//! resource.k8s.io.

use super::Referring;
use crate::authenticate::User;
use crate::authenticate::user::service_account;
use crate::authorize::forbidden;
use crate::request_info::RequestInfo;
use crate::tokens::check::EXTRA_NODE_NAME;
use coracle_api::field::{ErrorList, FieldError, Path};
use coracle_api::kinds::devices::status::identity;
use coracle_api::{catalogue, json, names};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};

const ADMIN_ACCESS_LABEL: &str = "resource.kubernetes.io/admin-access";

/// The wish for devices never changes, so only a new one is looked at.
pub fn check_wish(write: &Referring<'_>, requests: &[&str]) -> Option<FieldError> {
    if write.old.is_some() {
        return None;
    }
    let requests = write.new.list(requests);
    let index = requests
        .iter()
        .position(|request| json::flag(json::get(request, "exactly"), "adminAccess"))?;
    // A template is told the same place.
    let path = Path::root("spec").child("devices").child("requests");
    check_namespace(write, &path.index(index).child("adminAccess"))
}

pub fn check_status(write: &Referring<'_>) -> ErrorList {
    let [new, old] = [Some(write.new), write.old]
        .map(|object| object.and_then(|object| object.get(&["status"])))
        .map(|status| status.unwrap_or(&json::NULL));
    let mut errors = ErrorList::new();
    if admin_result(old).is_none()
        && let Some(index) = admin_result(new)
    {
        let path = Path::root("status").child("allocation").child("devices");
        let path = path.child("results").index(index).child("adminAccess");
        errors.extend(check_namespace(write, &path));
    }
    errors.extend(check_binding(write, new, old));
    // With the allocation goes what drivers said.
    if json::has(new, "allocation") {
        errors.extend(check_drivers(write, new, old));
    }
    errors
}

/// The first device that was given with admin access.
fn admin_result(status: &Value) -> Option<usize> {
    let devices = json::at(status, &["allocation", "devices"]);
    json::list(devices, "results")
        .iter()
        .position(|result| json::flag(result, "adminAccess"))
}

fn check_namespace(write: &Referring<'_>, path: &Path) -> Option<FieldError> {
    let namespaces = catalogue::find("", "v1", "namespaces").expect("namespaces are served");
    let found = write
        .api
        .registry
        .get(namespaces, "", write.new.namespace());
    match found {
        Ok(found) if found.object.label(ADMIN_ACCESS_LABEL) == Some("true") => None,
        Ok(_) => {
            let why = format!(
                "admin access to devices requires the `{ADMIN_ACCESS_LABEL}: true` label on the \
                 containing namespace"
            );
            Some(FieldError::forbidden(path, why))
        }
        Err(status) => {
            let why = "could not retrieve namespace to verify admin access";
            let why = format!("{why}: {}", status.message);
            Some(FieldError::internal(path, why))
        }
    }
}

fn check_binding(write: &Referring<'_>, new: &Value, old: &Value) -> Option<FieldError> {
    // One that holds nothing is an allocation all the same.
    let is_unchanged = json::has(new, "allocation") == json::has(old, "allocation")
        && ["allocation", "reservedFor"]
            .iter()
            .all(|field| json::same(json::get(new, field), json::get(old, field)));
    if is_unchanged {
        return None;
    }
    let asked = write.asked.info;
    let needed = RequestInfo {
        subresource: "binding".to_owned(),
        namespace: String::new(),
        name: String::new(),
        ..asked.clone()
    };
    let refusal = refusal(write, &needed)?;
    let why = format!(
        "changing status.allocation or status.reservedFor requires \
         resource=\"resourceclaims/binding\", verb=\"{}\" permission: {refusal}",
        asked.verb
    );
    Some(FieldError::forbidden(
        &Path::root("status").child("allocation"),
        why,
    ))
}

fn check_drivers(write: &Referring<'_>, new: &Value, old: &Value) -> ErrorList {
    let drivers = changed_drivers(json::list(new, "devices"), json::list(old, "devices"));
    let asked = write.asked.info;
    let mut verbs = Vec::new();
    if is_beside_devices(write.asked.user, json::get(new, "allocation")) {
        verbs.push(format!("associated-node:{}", asked.verb));
    }
    verbs.push(format!("arbitrary-node:{}", asked.verb));
    let path = Path::root("status").child("devices");
    drivers
        .into_iter()
        .filter_map(|driver| {
            let refusals: Option<Vec<String>> = verbs
                .iter()
                .map(|verb| {
                    let needed = RequestInfo {
                        verb: verb.clone(),
                        subresource: "driver".to_owned(),
                        name: driver.to_owned(),
                        ..asked.clone()
                    };
                    refusal(write, &needed)
                })
                .collect();
            let first = refusals?.into_iter().next()?;
            let why = format!(
                "changing status.devices requires resource=\"resourceclaims/driver\", \
                 verb=\"[{}]\" permission: {first}",
                verbs.join(" ")
            );
            Some(FieldError::forbidden(&path, why))
        })
        .collect()
}

/// The drivers of what was added, taken away, or is said otherwise.
fn changed_drivers<'a>(new: &'a [Value], old: &'a [Value]) -> BTreeSet<&'a str> {
    let mut gone: HashMap<[String; 4], &Value> = old
        .iter()
        .map(|device| (identity(device), device))
        .collect();
    let mut changed: Vec<&Value> = new
        .iter()
        .filter(|device| {
            let before = gone.remove(&identity(device));
            before.is_none_or(|before| !json::same(before, device))
        })
        .collect();
    changed.extend(gone.into_values());
    changed
        .into_iter()
        .map(|device| json::text(device, "driver"))
        .collect()
}

/// True for a service account whose token is bound to the one node that the devices are on.
fn is_beside_devices(user: &User, allocation: &Value) -> bool {
    let Some(node) = only_node(allocation) else {
        return false;
    };
    let own = user.extra.get(EXTRA_NODE_NAME).map(Vec::as_slice);
    service_account(&user.name).is_some()
        && names::dns_subdomain(node).is_empty()
        && matches!(own, Some([own]) if own == node)
}

fn only_node(allocation: &Value) -> Option<&str> {
    let selector = json::get(allocation, "nodeSelector");
    let [term] = json::list(selector, "nodeSelectorTerms") else {
        return None;
    };
    let ([], [field]) = (
        json::list(term, "matchExpressions"),
        json::list(term, "matchFields"),
    ) else {
        return None;
    };
    let is_name =
        json::text(field, "key") == "metadata.name" && json::text(field, "operator") == "In";
    match json::list(field, "values") {
        [node] if is_name => node.as_str().filter(|node| !node.is_empty()),
        _ => None,
    }
}

/// Why the user may not, in the words of a 403; nothing when they may.
fn refusal(write: &Referring<'_>, needed: &RequestInfo) -> Option<String> {
    let user = write.asked.user;
    let decision = write.api.access.authorizer.authorize(user, needed);
    (!decision.is_allowed()).then(|| forbidden(user, needed, decision.reason()).message)
}
