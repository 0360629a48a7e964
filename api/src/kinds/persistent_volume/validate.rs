//! What is wrong with a persistent volume, or with the spec of one inside a volume attachment.

use crate::field::{ErrorList, FieldError, Path};
use crate::json;
use crate::kinds::persistent_volume_claim::validate::basic;
use crate::kinds::{checks, storage};
use crate::object::Object;
use crate::pod_spec::validate::node_selector;
use crate::pod_spec::validate::sources::{self, Owner};
use serde_json::Value;

pub const BETA_MOUNT_OPTIONS: &str = "volume.beta.kubernetes.io/mount-options";

/// Sources in the order upstream looks for them, and the name it gives the second of two.
const SOURCES: &[(&str, &str)] = &[
    ("hostPath", "hostPath"),
    ("gcePersistentDisk", "gcePersistentDisk"),
    ("awsElasticBlockStore", "awsElasticBlockStore"),
    ("glusterfs", "glusterfs"),
    ("flocker", "flocker"),
    ("nfs", "nfs"),
    ("rbd", "rbd"),
    ("quobyte", "quobyte"),
    ("cephfs", "cephFS"),
    ("iscsi", "iscsi"),
    ("cinder", "cinder"),
    ("fc", "fc"),
    ("flexVolume", "flexVolume"),
    ("azureFile", "azureFile"),
    ("vsphereVolume", "vsphereVolume"),
    ("photonPersistentDisk", "photonPersistentDisk"),
    ("portworxVolume", "portworxVolume"),
    ("azureDisk", "azureDisk"),
    ("scaleIO", "scaleIO"),
    ("local", "local"),
    ("storageos", "storageos"),
    ("csi", "csi"),
];

/// Sources that know mount options, when they come by the old annotation.
const WITH_MOUNT_OPTIONS: &[&str] = &[
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "nfs",
    "rbd",
    "quobyte",
    "iscsi",
    "cinder",
    "cephfs",
    "azureFile",
    "vsphereVolume",
    "azureDisk",
    "photonPersistentDisk",
];

const INLINE: &str = "in the context of inline volumes";

/// A whole volume.
pub fn volume(volume: &Object) -> ErrorList {
    let spec = volume.get(&["spec"]).unwrap_or(&Value::Null);
    let mut errors = own(spec, volume.name());
    let knows_options = |spec: &Value| WITH_MOUNT_OPTIONS.iter().any(|one| json::has(spec, one));
    if volume.annotation(BETA_MOUNT_OPTIONS).is_some() && !knows_options(spec) {
        let path = Path::root("metadata")
            .child("annotations")
            .child(BETA_MOUNT_OPTIONS);
        let detail = "may not specify mount options for this volume type";
        errors.push(FieldError::forbidden(&path, detail));
    }
    errors
}

/// The spec of a volume that is an object of its own.
fn own(spec: &Value, name: &str) -> ErrorList {
    let path = Path::root("spec");
    let mut errors = modes(spec, &path);
    errors.extend(capacity(
        json::get(spec, "capacity"),
        &path.child("capacity"),
    ));
    let policy = json::text(spec, "persistentVolumeReclaimPolicy");
    if !policy.is_empty() {
        let path = path.child("persistentVolumeReclaimPolicy");
        let policies = &["Delete", "Recycle", "Retain"];
        checks::one_of(&mut errors, policy, policies, &path);
    }
    if let Some(affinity) = json::some(spec, "nodeAffinity") {
        let path = path.child("nodeAffinity").child("required");
        match json::some(affinity, "required") {
            Some(selector) => errors.extend(node_selector(selector, &path)),
            None => {
                let detail = "must specify required node constraints";
                errors.push(FieldError::required(&path, detail));
            }
        }
    }
    errors.extend(source(spec, name, &path));
    if json::text(spec, "persistentVolumeReclaimPolicy") == "Recycle" && is_root(spec) {
        let path = path.child("persistentVolumeReclaimPolicy");
        let detail = "may not be 'recycle' for a hostPath mount of '/'";
        errors.push(FieldError::forbidden(&path, detail));
    }
    let class = json::text(spec, "storageClassName");
    if !class.is_empty() {
        errors.extend(storage::class_name(class, &path.child("storageClassName")));
    }
    if let Some(mode) = json::some(spec, "volumeMode").and_then(Value::as_str) {
        let path = path.child("volumeMode");
        checks::one_of(&mut errors, mode, storage::VOLUME_MODES, &path);
    }
    errors.extend(attributes_class(spec, &path));
    errors
}

/// The spec of a volume inside a volume attachment: what was once a volume of a pod.
pub fn inline(spec: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut forbid = |field: &str, what: &str| {
        let detail = format!("{what} {INLINE}");
        errors.push(FieldError::forbidden(&path.child(field), detail));
    };
    if json::has(spec, "claimRef") {
        forbid("claimRef", "may not be specified");
    }
    if json::entries(spec, "capacity").next().is_some() {
        forbid("capacity", "may not be specified");
    }
    if !json::has(spec, "csi") {
        let detail = format!("has to be specified {INLINE}");
        errors.push(FieldError::required(&path.child("csi"), detail));
    }
    errors.extend(modes(spec, path));
    let mut forbid = |field: &str, what: &str| {
        let detail = format!("{what} {INLINE}");
        errors.push(FieldError::forbidden(&path.child(field), detail));
    };
    let policy = json::text(spec, "persistentVolumeReclaimPolicy");
    if !matches!(policy, "" | "Retain") {
        forbid("persistentVolumeReclaimPolicy", "may only be Retain");
    }
    if json::has(spec, "nodeAffinity") {
        forbid("nodeAffinity", "may not be specified");
    }
    errors.extend(source(spec, "", path));
    let mut forbid = |field: &str, what: &str| {
        let detail = format!("{what} {INLINE}");
        errors.push(FieldError::forbidden(&path.child(field), detail));
    };
    if !json::text(spec, "storageClassName").is_empty() {
        forbid("storageClassName", "may not be specified");
    }
    if json::some(spec, "volumeMode").is_some_and(|mode| mode != "Filesystem") {
        forbid(
            "volumeMode",
            "may not specify volumeMode other than Filesystem",
        );
    }
    errors
}

fn modes(spec: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if json::list(spec, "accessModes").is_empty() {
        errors.push(FieldError::required(&path.child("accessModes"), ""));
    }
    errors.extend(storage::access_modes(spec, path));
    errors
}

fn capacity(capacity: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let count = capacity.as_object().map_or(0, serde_json::Map::len);
    if count == 0 {
        errors.push(FieldError::required(path, ""));
    }
    if count != 1 || !json::has(capacity, "storage") {
        let value = capacity.clone();
        errors.push(FieldError::not_supported(path, value, &["storage"]));
    }
    for (name, value) in capacity.as_object().into_iter().flatten() {
        errors.extend(basic(value, &path.key(name)));
        let size = storage::quantity(capacity, name);
        errors.extend(storage::positive(size, &path.key(name)));
    }
    errors
}

fn source(spec: &Value, name: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut found = false;
    for (kind, shown) in SOURCES {
        let Some(source) = json::some(spec, kind) else {
            continue;
        };
        // Upstream does not count this one as a second.
        if found && *kind != "flexVolume" {
            let detail = "may not specify more than 1 volume type";
            errors.push(FieldError::forbidden(&path.child(shown), detail));
            continue;
        }
        found = true;
        let at = match *kind {
            "gcePersistentDisk" => path.child("persistentDisk"),
            kind => path.child(kind),
        };
        errors.extend(sources::source(kind, source, Owner::Volume(name), &at));
        if *kind == "local" && !json::has(spec, "nodeAffinity") {
            let path = path.child("nodeAffinity");
            let detail = "Local volume requires node affinity";
            errors.push(FieldError::required(&path, detail));
        }
    }
    if !found {
        errors.push(FieldError::required(path, "must specify a volume type"));
    }
    errors
}

/// True when the host's root would be emptied for the next claim.
fn is_root(spec: &Value) -> bool {
    let path = json::at(spec, &["hostPath", "path"]).as_str();
    path.is_some_and(|path| {
        path.starts_with('/') && path.split('/').all(|part| matches!(part, "" | "." | ".."))
    })
}

fn attributes_class(spec: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(class) = json::some(spec, "volumeAttributesClassName").and_then(Value::as_str) else {
        return errors;
    };
    let at = path.child("volumeAttributesClassName");
    if class.is_empty() {
        errors.push(FieldError::required(&at, "an empty string is disallowed"));
    } else {
        errors.extend(storage::class_name(class, &at));
    }
    if !json::has(spec, "csi") {
        let detail = "has to be specified when using volumeAttributesClassName";
        errors.push(FieldError::required(&path.child("csi"), detail));
    }
    errors
}

/// An update of the volume itself. Upstream looks at the new object twice, and says so twice.
pub fn update(new: &Object, old: &Object) -> ErrorList {
    let mut errors = volume(new);
    let [now, before] = [new, old].map(|o| o.get(&["spec"]).unwrap_or(&Value::Null));
    errors.extend(own(now, new.name()));
    let [mut sources, old_sources] = [now, before].map(all_sources);
    // The secret for an expansion may come later.
    let secret = "/csi/controllerExpandSecretRef";
    if old_sources.pointer("/csi").is_some() && old_sources.pointer(secret).is_none() {
        let csi = sources.get_mut("csi").and_then(Value::as_object_mut);
        csi.map(|csi| csi.remove("controllerExpandSecretRef"));
    }
    if !json::same(&sources, &old_sources) {
        let mut lines = Vec::new();
        checks::changes(&old_sources, &sources, "", &mut lines);
        let detail = format!(
            "spec.persistentvolumesource is immutable after creation\n{}\n",
            lines.join("\n")
        );
        let path = Path::root("spec").child("persistentvolumesource");
        errors.push(FieldError::forbidden(&path, detail));
    }
    checks::immutable(&mut errors, now, before, "volumeMode", &Path::default());
    let class = "volumeAttributesClassName";
    if json::has(before, class) && !json::has(now, class) {
        let detail = "update from non-nil value to nil is forbidden";
        let path = Path::root("spec").child(class);
        errors.push(FieldError::forbidden(&path, detail));
    }
    errors
}

/// The sources alone.
fn all_sources(spec: &Value) -> Value {
    let found = SOURCES
        .iter()
        .filter_map(|(kind, _)| Some(((*kind).to_owned(), json::some(spec, kind)?.clone())));
    Value::Object(found.collect())
}
