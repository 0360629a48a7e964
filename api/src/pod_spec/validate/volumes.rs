//! Volumes of a pod: each has a name and exactly one source.

use super::Context;
use super::sources::{self, Owner};
use crate::field::{ErrorList, FieldError, Path};
use crate::meta_validate::invalid_each;
use crate::{json, names};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Sources in the order upstream looks for them: of several, the first counts.
const SOURCES: &[&str] = &[
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "flocker",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
];

/// The well-formed volumes by name, and what is wrong with the others.
pub fn all(spec: &Value, path: &Path, context: Context<'_>) -> (Map<String, Value>, ErrorList) {
    let volumes = json::list(spec, "volumes");
    let mut good = Map::new();
    let mut errors = ErrorList::new();
    let created: BTreeSet<String> = volumes
        .iter()
        .filter(|volume| !context.pod_name.is_empty() && json::has(volume, "ephemeral"))
        .map(|volume| format!("{}-{}", context.pod_name, json::text(volume, "name")))
        .collect();
    for (index, volume) in volumes.iter().enumerate() {
        let path = path.index(index);
        let mut found = source(volume, &path, context);
        let name = json::text(volume, "name");
        let name_path = path.child("name");
        if name.is_empty() {
            found.push(FieldError::required(&name_path, ""));
        } else {
            invalid_each(&mut found, &name_path, name, names::dns_label(name));
        }
        if good.contains_key(name) {
            found.push(FieldError::duplicate(&name_path, name));
        }
        if found.is_empty() {
            good.insert(name.to_owned(), volume.clone());
        }
        errors.extend(found);
        let claim = json::at(volume, &["persistentVolumeClaim", "claimName"]);
        if let Some(claim) = claim.as_str().filter(|claim| created.contains(*claim)) {
            let path = path.child("persistentVolumeClaim").child("claimName");
            let detail = "must not reference a PVC that gets created for an ephemeral volume";
            errors.push(FieldError::invalid(&path, claim, detail));
        }
    }
    (good, errors)
}

fn source(volume: &Value, path: &Path, context: Context<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut found = false;
    for name in SOURCES {
        let Some(source) = json::some(volume, name) else {
            continue;
        };
        let at = path.child(name);
        if found {
            let detail = "may not specify more than 1 volume type";
            errors.push(FieldError::forbidden(&at, detail));
            continue;
        }
        found = true;
        errors.extend(sources::source(name, source, Owner::Pod, &at));
        if *name == "ephemeral" {
            errors.extend(ephemeral_name(volume, path, context));
        }
    }
    if !found {
        errors.push(FieldError::required(path, "must specify a volume type"));
    }
    errors
}

/// The claim of an ephemeral volume is named after pod and volume.
fn ephemeral_name(volume: &Value, path: &Path, context: Context<'_>) -> ErrorList {
    let name = json::text(volume, "name");
    if context.pod_name.is_empty() || name.is_empty() {
        return ErrorList::new();
    }
    let claim = format!("{}-{name}", context.pod_name);
    names::dns_subdomain(&claim)
        .into_iter()
        .map(|detail| {
            let detail = format!("PVC name \"{claim}\": {detail}");
            FieldError::invalid(&path.child("name"), name, detail)
        })
        .collect()
}
