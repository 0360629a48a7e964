//! Volumes of a pod: each has a name and exactly one source.

use super::{Context, paths, projected};
use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::checks;
use crate::meta_validate::invalid_each;
use crate::quantity::Quantity;
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

/// Fields that a source cannot do without.
const REQUIRED_FIELDS: &[(&str, &[&str])] = &[
    ("gitRepo", &["repository"]),
    ("gcePersistentDisk", &["pdName"]),
    ("awsElasticBlockStore", &["volumeID"]),
    ("secret", &["secretName"]),
    ("nfs", &["server", "path"]),
    ("iscsi", &["targetPortal", "iqn"]),
    ("glusterfs", &["endpoints", "path"]),
    ("persistentVolumeClaim", &["claimName"]),
    ("rbd", &["image"]),
    ("cinder", &["volumeID"]),
    ("quobyte", &["registry", "volume"]),
    ("flexVolume", &["driver"]),
    ("configMap", &["name"]),
    ("azureFile", &["secretName", "shareName"]),
    ("vsphereVolume", &["volumePath"]),
    ("photonPersistentDisk", &["pdID"]),
    ("portworxVolume", &["volumeID"]),
    ("azureDisk", &["diskName", "diskURI"]),
    ("storageos", &["volumeName"]),
    ("scaleIO", &["gateway", "system", "volumeName"]),
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
        for (_, fields) in REQUIRED_FIELDS.iter().filter(|(kind, _)| kind == name) {
            for field in *fields {
                checks::required(&mut errors, source, field, &at);
            }
        }
        errors.extend(special(name, source, &at));
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

fn special(name: &str, source: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    match name {
        "emptyDir" => {
            let limit = Quantity::from_value(json::get(source, "sizeLimit"));
            if limit.is_err() || limit.is_ok_and(|limit| limit.is_negative()) {
                let detail = "SizeLimit field must be a valid resource quantity";
                errors.push(FieldError::forbidden(&path.child("sizeLimit"), detail));
            }
        }
        "hostPath" => errors.extend(host_path(source, path)),
        "gitRepo" => {
            let directory = json::text(source, "directory");
            errors.extend(paths::descending(directory, &path.child("directory")));
        }
        "nfs" if !json::text(source, "path").starts_with('/') => {
            let detail = "must be an absolute path";
            let value = json::text(source, "path");
            errors.push(FieldError::invalid(&path.child("path"), value, detail));
        }
        "secret" | "configMap" => {
            paths::mode(
                &mut errors,
                json::int(source, "defaultMode"),
                &path.child("defaultMode"),
            );
            errors.extend(projected::key_paths(source, &path.child("items")));
        }
        "downwardAPI" => {
            paths::mode(
                &mut errors,
                json::int(source, "defaultMode"),
                &path.child("defaultMode"),
            );
            for item in json::list(source, "items") {
                errors.extend(projected::downward_file(item, path));
            }
        }
        "rbd" | "cephfs" if json::list(source, "monitors").is_empty() => {
            errors.push(FieldError::required(&path.child("monitors"), ""));
        }
        "fc" => errors.extend(fibre_channel(source, path)),
        "projected" => errors.extend(projected::volume(source, path)),
        "csi" => errors.extend(csi(source, path)),
        "ephemeral" if !json::has(source, "volumeClaimTemplate") => {
            errors.push(FieldError::required(&path.child("volumeClaimTemplate"), ""));
        }
        "image" => {
            if json::text(source, "reference").is_empty() {
                errors.push(FieldError::required(&path.child("reference"), ""));
            }
            let policies = &["Always", "IfNotPresent", "Never"];
            let policy = json::text(source, "pullPolicy");
            checks::required_one_of(&mut errors, policy, policies, &path.child("pullPolicy"));
        }
        _ => {}
    }
    errors
}

fn host_path(source: &Value, path: &Path) -> ErrorList {
    const KINDS: &[&str] = &[
        "",
        "BlockDevice",
        "CharDevice",
        "Directory",
        "DirectoryOrCreate",
        "File",
        "FileOrCreate",
        "Socket",
    ];
    let target = json::text(source, "path");
    if target.is_empty() {
        return vec![FieldError::required(&path.child("path"), "")];
    }
    let mut errors = paths::no_backsteps(target, &path.child("path"));
    checks::one_of(
        &mut errors,
        json::text(source, "type"),
        KINDS,
        &path.child("type"),
    );
    errors
}

fn fibre_channel(source: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let targets = json::list(source, "targetWWNs");
    let targets_path = path.child("targetWWNs");
    match (targets.is_empty(), json::list(source, "wwids").is_empty()) {
        (true, true) => {
            let detail = "must specify either targetWWNs or wwids, but not both";
            errors.push(FieldError::required(&targets_path, detail));
        }
        (false, false) => {
            let detail = "targetWWNs and wwids can not be specified simultaneously";
            errors.push(FieldError::invalid(
                &targets_path,
                Value::from(targets),
                detail,
            ));
        }
        _ => {}
    }
    let lun_path = path.child("lun");
    match json::int(source, "lun") {
        _ if targets.is_empty() => {}
        None => {
            let detail = "lun is required if targetWWNs is specified";
            errors.push(FieldError::required(&lun_path, detail));
        }
        Some(lun) => {
            let details = names::between(lun, 0, 255).into_iter();
            errors.extend(details.map(|detail| FieldError::invalid(&lun_path, lun, detail)));
        }
    }
    errors
}

fn csi(source: &Value, path: &Path) -> ErrorList {
    const DRIVER_BYTES_MAX: usize = 63;
    let mut errors = ErrorList::new();
    let driver = json::text(source, "driver");
    let driver_path = path.child("driver");
    if driver.is_empty() {
        errors.push(FieldError::required(&driver_path, ""));
    }
    if driver.len() > DRIVER_BYTES_MAX {
        errors.push(FieldError::too_long(&driver_path, DRIVER_BYTES_MAX));
    }
    if !driver.is_empty() {
        let details = names::dns_subdomain(&driver.to_lowercase());
        invalid_each(&mut errors, &driver_path, driver, details);
    }
    if let Some(secret) = json::some(source, "nodePublishSecretRef") {
        let path = path.child("nodePublishSecretRef").child("name");
        match json::text(secret, "name") {
            "" => errors.push(FieldError::required(&path, "")),
            name => invalid_each(&mut errors, &path, name, names::dns_subdomain(name)),
        }
    }
    errors
}
