//! What is wrong with what a pod's status says of its claims of devices.
//!
//! Two parties write there: the controller that makes claims of templates, and a scheduler that made
//! a claim for the pod's extended resources (KEP-5004).

use crate::field::{ErrorList, FieldError, Path};
use crate::json;
use crate::meta_validate::invalid_each;
use crate::names;
use serde_json::Value;
use std::collections::BTreeSet;

pub fn of_status(spec: &Value, status: &Value, path: &Path) -> ErrorList {
    let made = "resourceClaimStatuses";
    let extended = "extendedResourceClaimStatus";
    let mut errors = made_ones(spec, json::list(status, made), &path.child(made));
    if let Some(one) = json::some(status, extended) {
        errors.extend(extended_one(spec, one, &path.child(extended)));
    }
    errors
}

fn made_ones(spec: &Value, all: &[Value], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for (index, one) in all.iter().enumerate() {
        let (path, name) = (path.index(index), json::text(one, "name"));
        let mut asked = json::list(spec, "resourceClaims").iter();
        if !asked.any(|asked| json::text(asked, "name") == name) {
            let detail = "must match the name of an entry in `spec.resourceClaims`";
            errors.push(FieldError::invalid(&path.child("name"), name, detail));
        }
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        if json::has(one, "resourceClaimName") {
            claim_name(&mut errors, one, &path);
        }
    }
    errors
}

fn claim_name(errors: &mut ErrorList, one: &Value, path: &Path) {
    let name = json::text(one, "resourceClaimName");
    let path = path.child("resourceClaimName");
    invalid_each(errors, &path, name, names::dns_subdomain(name));
}

fn extended_one(spec: &Value, status: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mappings = json::list(status, "requestMappings");
    let mappings_path = path.child("requestMappings");
    if mappings.is_empty() {
        let detail = "at least one request mapping is required";
        errors.push(FieldError::required(&mappings_path, detail));
    }
    let mut seen = BTreeSet::new();
    for (index, one) in mappings.iter().enumerate() {
        let fields = ["containerName", "resourceName", "requestName"];
        let names = fields.map(|field| json::text(one, field));
        let paths = fields.map(|field| mappings_path.index(index).child(field));
        asked_by_container(&mut errors, spec, names, &paths);
        // Upstream names the field without its place in the list.
        let request = &path.child("requestName");
        invalid_each(&mut errors, request, names[2], names::dns_label(names[2]));
        if !seen.insert(names) {
            let twice = paths.iter().zip(names);
            errors.extend(twice.map(|(path, name)| FieldError::duplicate(path, name)));
        }
    }
    if json::text(status, "resourceClaimName").is_empty() {
        let path = path.child("resourceClaimName");
        errors.push(FieldError::required(&path, ""));
    } else {
        claim_name(&mut errors, status, path);
    }
    errors
}

fn asked_by_container(
    errors: &mut ErrorList,
    spec: &Value,
    [container, resource, _]: [&str; 3],
    paths: &[Path; 3],
) {
    let lists = ["initContainers", "containers"];
    let mut all = lists.into_iter().flat_map(|list| json::list(spec, list));
    let Some(found) = all.find(|one| json::text(one, "name") == container) else {
        let detail = "must match the name of an entry in spec.initContainers.name or \
                      spec.containers.name";
        return errors.push(FieldError::invalid(&paths[0], container, detail));
    };
    if !json::has(json::at(found, &["resources", "requests"]), resource) {
        let detail = "must match the extended resource name of an entry in \
                      spec.initContainers.resources.requests or \
                      spec.containers.resources.requests";
        errors.push(FieldError::invalid(&paths[1], resource, detail));
    }
}

#[cfg(test)]
mod tests;
