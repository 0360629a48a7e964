//! What is filled into a pod spec, in pods and in pod templates alike.

use super::resources::{self, asked};
use crate::json;
use crate::quantity::Quantity;
use serde_json::{Map, Value, json};

const MODE_0644: i64 = 0o644;
const MILLI: &str = "m";

/// Where a container of a pod spec may stand.
pub const CONTAINER_LISTS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

/// Defaults of a PodTemplateSpec under `template`.
pub fn template(template: &mut Value) {
    if template.is_object() {
        json::default(template, "spec", json!({}));
        spec(&mut template["spec"]);
    }
}

/// Defaults of a PodSpec.
pub fn spec(spec: &mut Value) {
    if !spec.is_object() {
        return;
    }
    json::default_text(spec, "dnsPolicy", "ClusterFirst");
    json::default_text(spec, "restartPolicy", "Always");
    json::default(spec, "securityContext", json!({}));
    json::default(spec, "terminationGracePeriodSeconds", 30);
    json::default_text(spec, "schedulerName", "default-scheduler");
    service_account(spec);
    for volume in json::list_mut(spec, "volumes") {
        default_volume(volume);
    }
    for list in CONTAINER_LISTS {
        for container in json::list_mut(spec, list) {
            default_container(container);
        }
    }
    if let Some(resources) = json::object_mut(spec, "resources") {
        default_resources(resources);
    }
    if let Some(overhead) = json::object_mut(spec, "overhead") {
        round_quantities(overhead);
    }
}

/// The account has an old name and a new one; both are shown.
fn service_account(spec: &mut Value) {
    let name = match json::text(spec, "serviceAccountName") {
        "" => json::text(spec, "serviceAccount").to_owned(),
        name => name.to_owned(),
    };
    if !name.is_empty() {
        spec["serviceAccountName"] = name.clone().into();
        spec["serviceAccount"] = name.into();
    }
}

fn default_container(container: &mut Value) {
    if !container.is_object() {
        return;
    }
    let policy = pull_policy(json::text(container, "image"));
    json::default_text(container, "imagePullPolicy", policy);
    json::default_text(container, "terminationMessagePath", "/dev/termination-log");
    json::default_text(container, "terminationMessagePolicy", "File");
    json::default(container, "resources", json!({}));
    for port in json::list_mut(container, "ports") {
        json::default_text(port, "protocol", "TCP");
    }
    for variable in json::list_mut(container, "env") {
        if let Some(source) = json::object_mut(variable, "valueFrom") {
            default_field_ref(source);
            default_divisor(source);
            if let Some(file) = json::object_mut(source, "fileKeyRef") {
                json::default(file, "optional", false);
            }
        }
    }
    if let Some(resources) = json::object_mut(container, "resources") {
        default_resources(resources);
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = json::object_mut(container, name) {
            default_probe(probe);
        }
    }
    if let Some(lifecycle) = json::object_mut(container, "lifecycle") {
        for name in ["postStart", "preStop"] {
            if let Some(handler) = json::object_mut(lifecycle, name) {
                default_http_get(handler);
            }
        }
    }
}

fn default_probe(probe: &mut Value) {
    default_http_get(probe);
    if let Some(grpc) = json::object_mut(probe, "grpc") {
        json::default(grpc, "service", "");
    }
    json::default_int(probe, "timeoutSeconds", 1);
    json::default_int(probe, "periodSeconds", 10);
    json::default_int(probe, "successThreshold", 1);
    json::default_int(probe, "failureThreshold", 3);
}

fn default_http_get(handler: &mut Value) {
    if let Some(get) = json::object_mut(handler, "httpGet") {
        json::default_text(get, "path", "/");
        json::default_text(get, "scheme", "HTTP");
    }
}

fn default_field_ref(source: &mut Value) {
    if let Some(reference) = json::object_mut(source, "fieldRef") {
        json::default_text(reference, "apiVersion", "v1");
    }
}

/// The divisor is no pointer upstream: it is always shown, as zero when not given.
fn default_divisor(source: &mut Value) {
    if let Some(reference) = json::object_mut(source, "resourceFieldRef") {
        json::default(reference, "divisor", "0");
        canonical(&mut reference["divisor"]);
    }
}

/// `Always` for an image whose tag is `latest`, said or not; a digest needs no tag.
pub fn pull_policy(image: &str) -> &'static str {
    let (name, digest) = match image.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (image, None),
    };
    let last = name.rsplit('/').next().unwrap_or(name);
    let latest = match last.split_once(':') {
        Some((_, tag)) => tag == "latest",
        None => digest.is_none() && is_reference(name),
    };
    if latest { "Always" } else { "IfNotPresent" }
}

/// Whether it is the name of an image at all; capitals may only stand in a registry's name.
fn is_reference(name: &str) -> bool {
    /// The registry's name and all that upstream puts before a short name count.
    const BYTES_MAX: usize = 255;
    const HUB: &str = "docker.io/library/";
    let (implied, path) = match name.split_once('/') {
        Some((registry, path)) if registry.contains(['.', ':']) || registry == "localhost" => {
            (0, path)
        }
        Some(_) => ("docker.io/".len(), name),
        None => (HUB.len(), name),
    };
    // What looks like the identity of an image is none.
    let is_identity = name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    implied + name.len() <= BYTES_MAX && !is_identity && path.split('/').all(is_component)
}

/// Words of small letters and digits, with a dot, one underscore or two, or dashes between them.
fn is_component(part: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = part.as_bytes();
    let edges = [bytes.first(), bytes.last()];
    if !edges
        .iter()
        .all(|edge| edge.is_some_and(|byte| is_word(*byte)))
    {
        return false;
    }
    let separators = part.split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    separators
        .filter(|separator| !separator.is_empty())
        .all(|separator| {
            matches!(separator, "." | "_" | "__") || separator.bytes().all(|byte| byte == b'-')
        })
}

fn default_resources(resources: &mut Value) {
    for name in ["limits", "requests"] {
        if let Some(list) = json::object_mut(resources, name) {
            round_quantities(list);
        }
    }
}

/// A list of resources in canonical form, nothing finer than thousandths.
pub fn round_quantities(list: &mut Value) {
    for (_, value) in list.as_object_mut().into_iter().flatten() {
        if let Ok(quantity) = Quantity::from_value(value) {
            *value = if quantity.is_whole_milli() {
                quantity.to_string().into()
            } else {
                let milli = format!("{}{MILLI}", quantity.milli_value());
                Quantity::parse(&milli)
                    .map_or(milli, |q| q.to_string())
                    .into()
            };
        }
    }
}

/// A quantity in canonical form; what is none stays for validation to name.
pub fn canonical(value: &mut Value) {
    if let Ok(quantity) = Quantity::from_value(value) {
        *value = quantity.to_string().into();
    }
}

fn default_volume(volume: &mut Value) {
    let Value::Object(map) = volume else { return };
    if map
        .iter()
        .all(|(key, value)| key == "name" || value.is_null())
    {
        map.insert("emptyDir".to_owned(), json!({}));
    }
    for name in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = json::object_mut(volume, name) {
            json::default(source, "defaultMode", MODE_0644);
            downward_items(source);
        }
    }
    if let Some(projected) = json::object_mut(volume, "projected") {
        for source in json::list_mut(projected, "sources") {
            if let Some(token) = json::object_mut(source, "serviceAccountToken") {
                json::default(token, "expirationSeconds", 3600);
            }
            if let Some(downward) = json::object_mut(source, "downwardAPI") {
                downward_items(downward);
            }
        }
    }
    if let Some(empty_dir) = json::object_mut(volume, "emptyDir")
        && let Some(limit) = empty_dir.get_mut("sizeLimit")
        && !limit.is_null()
    {
        canonical(limit);
    }
    remote_sources(volume);
    if let Some(image) = json::object_mut(volume, "image") {
        let policy = pull_policy(json::text(image, "reference"));
        json::default_text(image, "pullPolicy", policy);
    }
    if let Some(ephemeral) = json::object_mut(volume, "ephemeral")
        && let Some(template) = json::object_mut(ephemeral, "volumeClaimTemplate")
    {
        claim_template(template);
    }
}

fn downward_items(source: &mut Value) {
    for item in json::list_mut(source, "items") {
        default_field_ref(item);
        default_divisor(item);
    }
}

/// Defaults of the sources that persistent volumes have too.
pub fn remote_sources(volume: &mut Value) {
    if let Some(host_path) = json::object_mut(volume, "hostPath") {
        json::default(host_path, "type", "");
    }
    let texts = |volume: &mut Value, source: &str, fields: &[(&str, &str)]| {
        if let Some(source) = json::object_mut(volume, source) {
            for (field, value) in fields {
                json::default_text(source, field, value);
            }
        }
    };
    texts(volume, "iscsi", &[("iscsiInterface", "default")]);
    let keyring = "/etc/ceph/keyring";
    texts(
        volume,
        "rbd",
        &[("pool", "rbd"), ("user", "admin"), ("keyring", keyring)],
    );
    texts(
        volume,
        "scaleIO",
        &[("storageMode", "ThinProvisioned"), ("fsType", "xfs")],
    );
    if let Some(disk) = json::object_mut(volume, "azureDisk") {
        json::default(disk, "cachingMode", "ReadWrite");
        json::default(disk, "fsType", "ext4");
        json::default(disk, "readOnly", false);
        json::default(disk, "kind", "Shared");
    }
}

fn claim_template(template: &mut Value) {
    json::default(template, "metadata", json!({}));
    if let Some(spec) = json::object_mut(template, "spec") {
        claim_spec(spec);
    }
}

/// Defaults of a PersistentVolumeClaimSpec.
pub fn claim_spec(spec: &mut Value) {
    json::default(spec, "volumeMode", "Filesystem");
    if let Some(resources) = json::object_mut(spec, "resources") {
        default_resources(resources);
    }
}

/// What is filled into the spec of a pod, and not into that of a template.
pub fn pod(spec: &mut Value) {
    if !spec.is_object() {
        return;
    }
    for list in ["containers", "initContainers"] {
        for container in json::list_mut(spec, list) {
            requests_from_limits(container);
        }
    }
    pod_level_requests(spec);
    let grace = "terminationGracePeriodSeconds";
    if json::int(spec, grace).is_some_and(|seconds| seconds < 0) {
        spec[grace] = 1.into();
    }
    json::default(spec, "enableServiceLinks", true);
    if json::flag(spec, "hostNetwork") {
        for list in ["containers", "initContainers"] {
            for container in json::list_mut(spec, list) {
                host_ports(container);
            }
        }
    }
}

fn requests_from_limits(container: &mut Value) {
    let Some(resources) = json::object_mut(container, "resources") else {
        return;
    };
    let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else {
        return;
    };
    json::default(resources, "requests", json!({}));
    if let Some(requests) = resources["requests"].as_object_mut() {
        for (name, limit) in limits {
            requests.entry(name).or_insert(limit);
        }
    }
}

/// A pod that states limits of its own requests what its containers do, or else its limits.
fn pod_level_requests(spec: &mut Value) {
    let limits = match spec.pointer("/resources/limits").and_then(Value::as_object) {
        Some(limits) if !limits.is_empty() => limits.clone(),
        _ => return,
    };
    let mut requests: Map<String, Value> = spec
        .pointer("/resources/requests")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    let together = resources::together(spec, |container, _| asked(container, "requests"));
    for name in ["cpu", "memory"] {
        let total = together.get(name).filter(|total| !total.is_zero());
        if let Some(total) = total.filter(|_| !requests.contains_key(name)) {
            requests.insert(name.to_owned(), total.to_string().into());
        }
    }
    for (name, limit) in limits {
        if resources::is_pod_level(&name) {
            requests.entry(name).or_insert(limit);
        }
    }
    spec["resources"]["requests"] = Value::Object(requests);
}

fn host_ports(container: &mut Value) {
    for port in json::list_mut(container, "ports") {
        if let Some(number) = json::int(port, "containerPort") {
            json::default_int(port, "hostPort", number);
        }
    }
}
