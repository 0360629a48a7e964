//! A file that describes a static pod. Pure.

use super::state::spec;
use coracle_api::field::ErrorList;
use coracle_api::kinds::pod::ROW;
use coracle_api::meta_validate::validate_metadata;
use coracle_api::object::Object;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, PodStatus, Toleration, Volume};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

pub const HASH: &str = "kubernetes.io/config.hash";
pub const MIRROR: &str = "kubernetes.io/config.mirror";
pub const SEEN: &str = "kubernetes.io/config.seen";
const SOURCE: &str = "kubernetes.io/config.source";
const UID_DIGITS: usize = 32;

/// Made from a file of this node, and not by the API server.
pub fn is_static(pod: &Pod) -> bool {
    annotation(pod, SOURCE).is_some_and(|source| source == "file") && !is_mirror(pod)
}

/// A pod of the API server is none of a file, whatever it says of itself.
pub fn of_server(pod: &Arc<Pod>) -> Arc<Pod> {
    if !is_static(pod) {
        return pod.clone();
    }
    let mut pod = pod.as_ref().clone();
    let annotations = pod.metadata.annotations.get_or_insert_default();
    annotations.insert(SOURCE.to_owned(), "api".to_owned());
    Arc::new(pod)
}

/// What the API server shows of a static pod.
pub fn is_mirror(pod: &Pod) -> bool {
    annotation(pod, MIRROR).is_some()
}

pub fn annotation<'a>(pod: &'a Pod, name: &str) -> Option<&'a str> {
    let all = pod.metadata.annotations.as_ref()?;
    all.get(name).map(String::as_str)
}

/// The pod that a file describes, as it runs on this node; or what is wrong with the file. Its uid
/// comes from all of it: what changes is another pod. One that is written there is not taken: it
/// names directories of this node, and may be that of another file.
pub fn parse(text: &str, file: &Path, node_name: &str) -> Result<Pod, String> {
    let value: Value = serde_yaml_ng::from_str(text).map_err(|error| error.to_string())?;
    let written = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    if (written("apiVersion"), written("kind")) != ("v1", "Pod") {
        return Err(format!(
            "it holds no Pod of v1, but apiVersion {:?} and kind {:?}",
            written("apiVersion"),
            written("kind")
        ));
    }
    let mut pod: Pod = serde_json::from_value(value.clone()).map_err(|error| error.to_string())?;
    if pod.metadata.name.as_deref().unwrap_or_default().is_empty() {
        return Err("invalid pod: name is needed for the pod".to_owned());
    }
    let uid = uid(&value, file, node_name);
    place(&mut pod, uid, node_name);
    let pod = complete(&pod)?;
    if let Some(what) = refers_to(spec(&pod)) {
        return Err(format!("static pods may not reference {what}"));
    }
    Ok(pod)
}

fn uid(value: &Value, file: &Path, node_name: &str) -> String {
    let text = format!("{value}host:{node_name}file:{}", file.display());
    let digest = crate::images::digest::of(text.as_bytes());
    crate::images::digest::digits(&digest)[..UID_DIGITS].to_owned()
}

fn place(pod: &mut Pod, uid: String, node_name: &str) {
    let meta = &mut pod.metadata;
    let name = meta.name.take().unwrap_or_default();
    meta.name = Some(format!("{name}-{}", node_name.to_lowercase()));
    let namespace = meta
        .namespace
        .take()
        .filter(|namespace| !namespace.is_empty());
    meta.namespace = Some(namespace.unwrap_or_else(|| "default".to_owned()));
    let annotations = meta.annotations.get_or_insert_default();
    annotations.insert(HASH.to_owned(), uid.clone());
    annotations.insert(SOURCE.to_owned(), "file".to_owned());
    annotations.remove(MIRROR);
    meta.uid = Some(uid);
    let spec = pod.spec.get_or_insert_default();
    spec.node_name = Some(node_name.to_owned());
    // No trouble of the node takes it away.
    let stays = Toleration {
        operator: Some("Exists".to_owned()),
        effect: Some("NoExecute".to_owned()),
        ..Toleration::default()
    };
    let tolerations = spec.tolerations.get_or_insert_default();
    if !tolerations.contains(&stays) {
        tolerations.push(stays);
    }
    pod.status = None;
}

/// With the API server's defaults, after its checks.
fn complete(pod: &Pod) -> Result<Pod, String> {
    let value = serde_json::to_value(pod).map_err(|error| error.to_string())?;
    let mut object = Object::from_value(value).ok_or("it is no object")?;
    ROW.rules.default(&mut object);
    ROW.drop_gated(&mut object);
    let mut errors: ErrorList = validate_metadata(&object, &ROW);
    errors.extend(ROW.rules.validate_create(&object));
    if !errors.is_empty() {
        let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
        return Err(format!("invalid pod: {}", texts.join(", ")));
    }
    let mut value = object.into_value();
    let quality = coracle_api::pod_spec::resources::quality_of_service(&value["spec"]);
    value["status"] = serde_json::json!({ "phase": "Pending", "qosClass": quality });
    serde_json::from_value(value).map_err(|error| error.to_string())
}

/// The first that it needs of the API: the node makes such pods without it.
fn refers_to(spec: &PodSpec) -> Option<&'static str> {
    let account = spec.service_account_name.as_deref().unwrap_or_default();
    if !account.is_empty() {
        return Some("serviceaccounts");
    }
    if spec.image_pull_secrets.iter().flatten().next().is_some() {
        return Some("secrets");
    }
    if spec.resource_claims.iter().flatten().next().is_some() {
        return Some("resourceclaims");
    }
    let inits = spec.init_containers.iter().flatten();
    let mut containers = inits.chain(&spec.containers);
    let volumes = || spec.volumes.iter().flatten();
    containers
        .find_map(of_container)
        .or_else(|| volumes().find_map(of_volume))
}

fn of_container(container: &Container) -> Option<&'static str> {
    let needs = super::environment::needs(container);
    if !needs.secrets.is_empty() {
        Some("secrets")
    } else if !needs.config_maps.is_empty() {
        Some("configmaps")
    } else {
        None
    }
}

fn of_volume(volume: &Volume) -> Option<&'static str> {
    let projected = volume.projected.as_ref();
    let mut sources = projected
        .into_iter()
        .flat_map(|from| from.sources.iter().flatten());
    if volume.config_map.is_some() {
        Some("configmaps (via configmap volumes)")
    } else if volume.secret.is_some() {
        Some("secrets (via secret volumes)")
    } else if volume.csi.is_some() {
        Some("csidrivers (via CSI volumes)")
    } else if volume.persistent_volume_claim.is_some() {
        Some("persistentvolumeclaims")
    } else if volume.ephemeral.is_some() {
        Some("persistentvolumeclaims (via ephemeral volumes)")
    } else {
        sources.find_map(|source| {
            if source.config_map.is_some() {
                Some("configmaps (via projected volumes)")
            } else if source.secret.is_some() {
                Some("secrets (via projected volumes)")
            } else if source.service_account_token.is_some() {
                Some("serviceaccounts (via projected volumes)")
            } else if source.cluster_trust_bundle.is_some() {
                Some("clustertrustbundles")
            } else if source.pod_certificate.is_some() {
                Some("podcertificates")
            } else {
                None
            }
        })
    }
}

/// The static pod with what the API server knows of how it is.
pub fn with_status_of(pod: &Pod, mirror: Option<&Pod>) -> Pod {
    let mut shown = pod.clone();
    let known = mirror.and_then(|mirror| mirror.status.clone());
    let is_known = |status: &PodStatus| status.phase.is_some();
    if let Some(status) = known.filter(is_known) {
        shown.status = Some(status);
    }
    shown
}

#[cfg(test)]
mod tests;
