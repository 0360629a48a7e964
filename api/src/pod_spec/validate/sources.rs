//! What is wrong with one source of a volume: in a pod, or in a persistent volume, where some have
//! more fields.

use super::{paths, projected};
use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::{checks, storage};
use crate::meta_validate::invalid_each;
use crate::quantity::Quantity;
use crate::{json, names};
use serde_json::Value;

/// Where the source stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner<'a> {
    Pod,
    /// A persistent volume, by name.
    Volume(&'a str),
}

/// Fields that a source cannot do without.
const REQUIRED_FIELDS: &[(&str, &[&str])] = &[
    ("gitRepo", &["repository"]),
    ("gcePersistentDisk", &["pdName"]),
    ("awsElasticBlockStore", &["volumeID"]),
    ("secret", &["secretName"]),
    ("nfs", &["server", "path"]),
    ("iscsi", &["targetPortal"]),
    ("glusterfs", &["endpoints", "path"]),
    ("persistentVolumeClaim", &["claimName"]),
    ("rbd", &["image"]),
    ("cinder", &["volumeID"]),
    ("flexVolume", &["driver"]),
    ("configMap", &["name"]),
    ("azureFile", &["secretName", "shareName"]),
    ("vsphereVolume", &["volumePath"]),
    ("photonPersistentDisk", &["pdID"]),
    ("portworxVolume", &["volumeID"]),
    ("azureDisk", &["diskName", "diskURI"]),
    ("scaleIO", &["gateway", "system", "volumeName"]),
    ("local", &["path"]),
];

/// What is wrong with the source named `kind`.
pub fn source(kind: &str, source: &Value, owner: Owner<'_>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if matches!(kind, "rbd" | "cephfs") && json::list(source, "monitors").is_empty() {
        errors.push(FieldError::required(&path.child("monitors"), ""));
    }
    for (_, fields) in REQUIRED_FIELDS.iter().filter(|(name, _)| *name == kind) {
        for field in *fields {
            checks::required(&mut errors, source, field, path);
        }
    }
    errors.extend(local(kind, source, path));
    errors.extend(remote(kind, source, owner, path));
    errors
}

/// Sources on the node, and those made of API objects.
fn local(kind: &str, source: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    match kind {
        "emptyDir" => {
            let limit = Quantity::from_value(json::get(source, "sizeLimit"));
            if limit.is_err() || limit.is_ok_and(|limit| limit.is_negative()) {
                let detail = "SizeLimit field must be a valid resource quantity";
                errors.push(FieldError::forbidden(&path.child("sizeLimit"), detail));
            }
        }
        "hostPath" => errors.extend(host_path(source, path)),
        "local" => {
            let target = json::text(source, "path");
            errors.extend(paths::no_backsteps(target, &path.child("path")));
        }
        "gitRepo" => {
            let directory = json::text(source, "directory");
            errors.extend(paths::descending(directory, &path.child("directory")));
        }
        "secret" | "configMap" => {
            let mode = json::int(source, "defaultMode");
            paths::mode(&mut errors, mode, &path.child("defaultMode"));
            errors.extend(projected::key_paths(source, &path.child("items")));
        }
        "downwardAPI" => {
            let mode = json::int(source, "defaultMode");
            paths::mode(&mut errors, mode, &path.child("defaultMode"));
            for item in json::list(source, "items") {
                errors.extend(projected::downward_file(item, path));
            }
        }
        "projected" => errors.extend(projected::volume(source, path)),
        "ephemeral" => errors.extend(ephemeral(source, &path.child("volumeClaimTemplate"))),
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

/// Sources that are reached over a network.
fn remote(kind: &str, source: &Value, owner: Owner<'_>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    match kind {
        "gcePersistentDisk" | "awsElasticBlockStore" => {
            let partition = json::int(source, "partition").unwrap_or(0);
            if !(0..=255).contains(&partition) {
                // The text is upstream's: zero is good.
                let detail = "must be between 1 and 255, inclusive";
                let path = path.child("partition");
                errors.push(FieldError::invalid(&path, partition, detail));
            }
        }
        "nfs" if !json::text(source, "path").starts_with('/') => {
            let detail = "must be an absolute path";
            let value = json::text(source, "path");
            errors.push(FieldError::invalid(&path.child("path"), value, detail));
        }
        "glusterfs" => {
            if let Some(namespace) = json::some(source, "endpointsNamespace") {
                let namespace = namespace.as_str().unwrap_or("");
                errors.extend(endpoints_namespace(
                    namespace,
                    &path.child("endpointsNamespace"),
                ));
            }
        }
        "iscsi" => errors.extend(iscsi(source, owner, path)),
        "fc" => errors.extend(fibre_channel(source, path)),
        "csi" => errors.extend(csi(source, owner, path)),
        "cinder" | "storageos" => {
            if kind == "storageos" {
                errors.extend(storage_os(source, path));
            }
            errors.extend(secret_reference(source, owner, path));
        }
        "quobyte" => errors.extend(quobyte(source, path)),
        "flexVolume" => errors.extend(flex_options(source, &path.child("options"))),
        "flocker" => errors.extend(flocker(source, path)),
        "azureDisk" => errors.extend(azure_disk(source, path)),
        "azureFile" if json::some(source, "secretNamespace").is_some_and(|text| text == "") => {
            errors.push(FieldError::required(&path.child("secretNamespace"), ""));
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
    let kind = json::text(source, "type");
    checks::one_of(&mut errors, kind, KINDS, &path.child("type"));
    errors
}

fn ephemeral(source: &Value, path: &Path) -> ErrorList {
    let Some(template) = json::some(source, "volumeClaimTemplate") else {
        return vec![FieldError::required(path, "")];
    };
    crate::kinds::persistent_volume_claim::validate::template(template, path)
}

fn endpoints_namespace(namespace: &str, path: &Path) -> ErrorList {
    if namespace.is_empty() {
        let detail = "if the endpointnamespace is set, it must be a valid namespace name";
        return vec![FieldError::invalid(path, namespace, detail)];
    }
    let mut errors = ErrorList::new();
    invalid_each(&mut errors, path, namespace, names::dns_label(namespace));
    errors
}

fn iscsi(source: &Value, owner: Owner<'_>, path: &Path) -> ErrorList {
    /// Portal and name of the volume together name a session.
    const SESSION_BYTES_MAX: usize = 64;
    let mut errors = ErrorList::new();
    let portal = json::text(source, "targetPortal");
    let initiator = json::some(source, "initiatorName").and_then(Value::as_str);
    if let Owner::Volume(name) = owner
        && initiator.is_some()
        && name.len() + 1 + portal.len() > SESSION_BYTES_MAX
    {
        let detail = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 \
                      characters if iscsi.initiatorName is specified.";
        let path = path.child("targetportal");
        errors.push(FieldError::invalid(&path, portal, detail));
    }
    match json::text(source, "iqn") {
        "" => errors.push(FieldError::required(&path.child("iqn"), "")),
        iqn => errors.extend(iscsi_name(iqn, owner, &path.child("iqn"))),
    }
    let lun = json::int(source, "lun").unwrap_or(0);
    let details = names::between(lun, 0, 255).into_iter();
    errors.extend(details.map(|detail| FieldError::invalid(&path.child("lun"), lun, detail)));
    let secret_path = path.child("secretRef");
    let secret = json::some(source, "secretRef");
    let chap = ["chapAuthDiscovery", "chapAuthSession"];
    if secret.is_none() && chap.iter().any(|flag| json::flag(source, flag)) {
        errors.push(FieldError::required(&secret_path, ""));
    }
    if let Some(secret) = secret.filter(|_| owner != Owner::Pod) {
        checks::required(&mut errors, secret, "name", &secret_path);
    }
    if let Some(initiator) = initiator {
        errors.extend(iscsi_name(initiator, owner, &path.child("initiatorname")));
    }
    errors
}

/// `iqn.2001-04.com.example:x`, `eui.` and 16 or `naa.` and 32 characters.
fn iscsi_name(name: &str, owner: Owner<'_>, path: &Path) -> ErrorList {
    let of_length = |rest: &str, length: usize| {
        let mut rest = rest.chars();
        rest.next().is_some() && {
            let rest: Vec<char> = rest.collect();
            rest.len() == length && rest.iter().all(char::is_ascii_alphanumeric)
        }
    };
    let good = match name.get(..3) {
        Some("iqn") => is_iqn(name),
        Some("eui") => of_length(&name[3..], 16),
        Some("naa") => of_length(&name[3..], 32),
        _ => {
            let detail = match owner {
                Owner::Pod => "must be valid format starting with iqn, eui, or naa",
                Owner::Volume(_) => "must be valid format",
            };
            return vec![FieldError::invalid(path, name, detail)];
        }
    };
    if good {
        return ErrorList::new();
    }
    vec![FieldError::invalid(path, name, "must be valid format")]
}

/// `iqn.YYYY-MM.` and a domain, a colon, and anything that needs no escape.
fn is_iqn(name: &str) -> bool {
    let Some((authority, own)) = name.split_once(':') else {
        return false;
    };
    let Some(date) = authority.strip_prefix("iqn.") else {
        return false;
    };
    let bytes = date.as_bytes();
    let is_date = bytes.len() > 8
        && bytes[..4].iter().all(u8::is_ascii_digit)
        && bytes[4] == b'-'
        && bytes[5..7].iter().all(u8::is_ascii_digit)
        && bytes[7] == b'.';
    let domain = bytes.get(8..).unwrap_or(&[]);
    let in_domain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    is_date
        && domain.iter().all(in_domain)
        && !own.is_empty()
        && !own.contains(|c: char| ",;*&$|".contains(c) || c.is_ascii_whitespace())
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
            let value = Value::from(targets);
            errors.push(FieldError::invalid(&targets_path, value, detail));
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

fn csi(source: &Value, owner: Owner<'_>, path: &Path) -> ErrorList {
    const SECRETS: [&str; 4] = [
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ];
    let driver = json::text(source, "driver");
    let mut errors = storage::driver_name(driver, &path.child("driver"));
    if owner == Owner::Pod {
        if let Some(secret) = json::some(source, "nodePublishSecretRef") {
            match json::text(secret, "name") {
                "" => {
                    let path = path.child("nodePublishSecretRef").child("name");
                    errors.push(FieldError::required(&path, ""));
                }
                // Upstream names the wrong field.
                name => invalid_each(
                    &mut errors,
                    &path.child("name"),
                    name,
                    names::dns_subdomain(name),
                ),
            }
        }
        return errors;
    }
    checks::required(&mut errors, source, "volumeHandle", path);
    for field in SECRETS {
        let Some(secret) = json::some(source, field) else {
            continue;
        };
        let path = path.child(field);
        checks::required(&mut errors, secret, "name", &path);
        let [name, namespace] = ["name", "namespace"].map(|field| json::text(secret, field));
        if !name.is_empty() {
            let details = names::dns_subdomain(name);
            invalid_each(&mut errors, &path.child("name"), name, details);
        }
        checks::required(&mut errors, secret, "namespace", &path);
        if !namespace.is_empty() {
            let details = names::dns_label(namespace);
            invalid_each(&mut errors, &path.child("namespace"), namespace, details);
        }
    }
    errors
}

/// A secret that is referred to has a name and, outside of a namespace, a namespace.
fn secret_reference(source: &Value, owner: Owner<'_>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(secret) = json::some(source, "secretRef") {
        let path = path.child("secretRef");
        checks::required(&mut errors, secret, "name", &path);
        if owner != Owner::Pod {
            checks::required(&mut errors, secret, "namespace", &path);
        }
    }
    errors
}

fn storage_os(source: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    checks::required(&mut errors, source, "volumeName", path);
    for field in ["volumeName", "volumeNamespace"] {
        let name = json::text(source, field);
        if !name.is_empty() {
            invalid_each(
                &mut errors,
                &path.child(field),
                name,
                names::dns_label(name),
            );
        }
    }
    errors
}

fn quobyte(source: &Value, path: &Path) -> ErrorList {
    const DETAIL: &str = "must be a host:port pair or multiple pairs separated by commas";
    const TENANT_BYTES_MAX: usize = 64;
    let mut errors = ErrorList::new();
    let registry = json::text(source, "registry");
    let registry_path = path.child("registry");
    if registry.is_empty() {
        errors.push(FieldError::required(&registry_path, DETAIL));
    } else if json::text(source, "tenant").len() > TENANT_BYTES_MAX {
        let detail = "must be a UUID and may not exceed a length of 64 characters";
        errors.push(FieldError::required(&path.child("tenant"), detail));
    } else {
        let bad = registry.split(',').filter(|pair| !is_host_and_port(pair));
        errors.extend(bad.map(|_| FieldError::invalid(&registry_path, registry, DETAIL)));
    }
    checks::required(&mut errors, source, "volume", path);
    errors
}

/// As Go splits one: a colon outside of brackets, and none other.
fn is_host_and_port(pair: &str) -> bool {
    let Some((host, _)) = pair.rsplit_once(':') else {
        return false;
    };
    match host.strip_prefix('[') {
        Some(inner) => inner
            .strip_suffix(']')
            .is_some_and(|inner| !inner.contains(['[', ']'])),
        None => !host.contains([':', '[', ']']),
    }
}

/// Options go to the driver beside those of Kubernetes itself.
fn flex_options(source: &Value, path: &Path) -> ErrorList {
    let reserved = |key: &str| {
        let domain = key.split_once('/').map_or(key, |(domain, _)| domain);
        let dotted = format!(".{}", domain.to_lowercase());
        dotted.ends_with(".kubernetes.io") || dotted.ends_with(".k8s.io")
    };
    let detail = "kubernetes.io and k8s.io namespaces are reserved";
    json::entries(source, "options")
        .filter(|(key, _)| reserved(key))
        .map(|(key, _)| FieldError::invalid(&path.key(key), key, detail))
        .collect()
}

fn flocker(source: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let [name, uuid] = ["datasetName", "datasetUUID"].map(|field| json::text(source, field));
    if name.is_empty() && uuid.is_empty() {
        let detail = "one of datasetName and datasetUUID is required";
        errors.push(FieldError::required(path, detail));
    }
    if !name.is_empty() && !uuid.is_empty() {
        let detail = "datasetName and datasetUUID can not be specified simultaneously";
        errors.push(FieldError::invalid(path, "resource", detail));
    }
    if name.contains('/') {
        let path = path.child("datasetName");
        errors.push(FieldError::invalid(&path, name, "must not contain '/'"));
    }
    errors
}

fn azure_disk(source: &Value, path: &Path) -> ErrorList {
    const MANAGED: &str = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/\
                           microsoft.compute/disks/{disk-id}";
    const BLOB: &str =
        "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
    let mut errors = ErrorList::new();
    let [uri, kind] = ["diskURI", "kind"].map(|field| json::text(source, field));
    for (field, supported) in [
        ("cachingMode", &["None", "ReadOnly", "ReadWrite"]),
        ("kind", &["Dedicated", "Managed", "Shared"]),
    ] {
        let value = json::text(source, field);
        checks::one_of(&mut errors, value, supported, &path.child(field));
    }
    let (start, form) = if kind == "Managed" {
        ("/subscriptions/", MANAGED)
    } else {
        ("https://", BLOB)
    };
    if !uri.starts_with(start) {
        errors.push(FieldError::not_supported(
            &path.child("diskURI"),
            uri,
            &[form],
        ));
    }
    errors
}

#[cfg(test)]
mod tests;
