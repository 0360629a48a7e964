//! What every cluster has from its first start: namespaces, priority classes, the Service
//! `kubernetes` with its endpoints, that of the cluster's DNS, whether nodes encrypt, and the CA for
//! those who check clients themselves.
//!
//! Runs at each start, as a client of the API. What is there already is left as it is, but for what
//! follows this server's settings (addresses, ports, the CA, the domain of names), which is brought
//! up to date; an object whose address cannot be changed is made anew. Where this server is found
//! is looked after while it runs, too, and so is since when the use of old tokens is noted.

mod cluster_dns; // The Service `kube-dns`.
mod legacy_tokens; // Since when their use is noted.
mod pod_encryption; // Of the pods' network, between nodes.

pub use cluster_dns::ClusterDns;
pub use pod_encryption::PodEncryption;

use crate::allocate;
use crate::bootstrap::{self, send};
use crate::config::Clock;
use crate::server::InProcess;
use coracle_api::object::Object;
use coracle_api::timestamp;
use http::{Method, StatusCode};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::net::IpAddr;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Upstream's period of looking after the Service `kubernetes`.
const LOOK_AFTER_PERIOD: Duration = Duration::from_secs(10);
const NAMESPACES: &[&str] = &["default", "kube-system", "kube-public", "kube-node-lease"];

#[derive(Debug, thiserror::Error)]
#[error("cannot make {what}")]
pub struct ReconcileError {
    what: String,
    source: bootstrap::ReconcileError,
}

#[derive(Clone, Debug)]
pub struct Settings {
    pub service_cidr: String,
    pub advertise_address: IpAddr,
    pub port: u16,
    pub ca_pem: String,
    /// Of the certificate that this server shows to servers of other APIs.
    pub front_proxy_ca_pem: String,
    /// None leaves names to others.
    pub cluster_dns: Option<ClusterDns>,
    /// None: what pods of different nodes send each other is not encrypted.
    pub pod_encryption: Option<PodEncryption>,
}

type Path = &'static [&'static str];

/// An object, where it is served, and which of its fields are kept up to date.
struct Wanted {
    collection: String,
    object: Value,
    follows: &'static [Path],
    /// These cannot be changed: an object in which one differs is made anew.
    fixed: &'static [Path],
}

pub async fn reconcile_namespaces(api: InProcess) -> Result<(), ReconcileError> {
    for name in NAMESPACES {
        let object =
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        ensure(&api, new("/api/v1/namespaces", object)).await?;
    }
    Ok(())
}

/// Needs the namespaces.
pub async fn reconcile(
    api: InProcess,
    settings: &Settings,
    now: Timestamp,
) -> Result<(), ReconcileError> {
    for wanted in priority_classes() {
        ensure(&api, wanted).await?;
    }
    ensure(&api, client_ca(settings)).await?;
    legacy_tokens::reconcile(&api, &timestamp::format_day(now)).await?;
    service_cidr(&api, settings).await?;
    ensure(&api, service(settings)).await?;
    pod_encryption::reconcile(&api, settings.pod_encryption.as_ref()).await?;
    if let Some(dns) = &settings.cluster_dns {
        cluster_dns::reconcile(&api, dns, &settings.service_cidr).await;
    }
    if !is_reachable(settings.advertise_address) {
        let address = settings.advertise_address;
        tracing::info!(%address, "the Service kubernetes has no endpoints: the address is local");
    }
    reconcile_endpoints(&api, settings).await
}

/// Makes again what says where this server is, should somebody delete it or change it.
pub async fn look_after(api: InProcess, settings: Settings, clock: Clock, stop: CancellationToken) {
    let wait = || tokio::time::sleep(LOOK_AFTER_PERIOD);
    while stop.run_until_cancelled(wait()).await.is_some() {
        if let Err(error) = look(&api, &settings, clock()).await {
            tracing::warn!(what = error.what, error = %error.source, "cannot be looked after");
        }
    }
}

async fn look(api: &InProcess, settings: &Settings, now: Timestamp) -> Result<(), ReconcileError> {
    // What people made of its ports is theirs until the next start.
    let service = Wanted {
        follows: &[],
        fixed: &[],
        ..service(settings)
    };
    ensure(api, service).await?;
    if let Some(encryption) = &settings.pod_encryption {
        pod_encryption::reconcile(api, Some(encryption)).await?;
    }
    reconcile_endpoints(api, settings).await?;
    legacy_tokens::reconcile(api, &timestamp::format_day(now)).await
}

async fn reconcile_endpoints(api: &InProcess, settings: &Settings) -> Result<(), ReconcileError> {
    if !is_reachable(settings.advertise_address) {
        return Ok(());
    }
    ensure(api, endpoints(settings)).await?;
    ensure(api, endpoint_slice(settings)).await
}

fn new(collection: &str, object: Value) -> Wanted {
    Wanted {
        collection: collection.to_owned(),
        object,
        follows: &[],
        fixed: &[],
    }
}

fn following(collection: &str, follows: &'static [Path], object: Value) -> Wanted {
    Wanted {
        follows,
        ..new(collection, object)
    }
}

/// Endpoints are for others: an address that stays on this machine is refused by validation.
fn is_reachable(address: IpAddr) -> bool {
    let is_link_local = matches!(address, IpAddr::V4(address) if address.is_link_local());
    !(address.is_loopback() || address.is_unspecified() || is_link_local)
}

fn priority_classes() -> [Wanted; 2] {
    let class = |name: &str, value: i64, description: &str| {
        let object = json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": { "name": name }, "value": value, "description": description,
        });
        new("/apis/scheduling.k8s.io/v1/priorityclasses", object)
    };
    [
        class(
            "system-node-critical",
            2_000_001_000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
        class(
            "system-cluster-critical",
            2_000_000_000,
            "Used for system critical pods that must run in the cluster, but can be moved to \
             another node if necessary.",
        ),
    ]
}

fn client_ca(settings: &Settings) -> Wanted {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "extension-apiserver-authentication", "namespace": "kube-system" },
        "data": {
            "client-ca-file": settings.ca_pem,
            "requestheader-client-ca-file": settings.front_proxy_ca_pem,
            "requestheader-allowed-names": "[\"front-proxy-client\"]",
            "requestheader-username-headers": "[\"X-Remote-User\"]",
            "requestheader-uid-headers": "[\"X-Remote-Uid\"]",
            "requestheader-group-headers": "[\"X-Remote-Group\"]",
            "requestheader-extra-headers-prefix": "[\"X-Remote-Extra-\"]",
        },
    });
    let collection = "/api/v1/namespaces/kube-system/configmaps";
    following(collection, &[&["data"]], object)
}

/// The networks of this server's flag. A second family may come with a new flag; anything else that
/// differs is left to people. It is ready once, where nobody has said otherwise.
async fn service_cidr(api: &InProcess, settings: &Settings) -> Result<(), ReconcileError> {
    const COLLECTION: &str = "/apis/networking.k8s.io/v1/servicecidrs";
    let ranges = allocate::ranges(&settings.service_cidr).unwrap_or_default();
    let wanted = allocate::default_cidr(&ranges);
    let failed = |source| ReconcileError {
        what: "ServiceCIDR kubernetes".to_owned(),
        source,
    };
    ensure(api, new(COLLECTION, wanted.clone())).await?;
    let own = format!("{COLLECTION}/kubernetes");
    let Some(mut found) = read(api, &own).await.map_err(failed)? else {
        return Ok(());
    };
    let path = ["spec", "cidrs"];
    let cidrs = wanted.pointer("/spec/cidrs").cloned().unwrap_or_default();
    let is_grown = match (found.list(&path), cidrs.as_array().map(Vec::as_slice)) {
        ([one], Some([first, _])) => one == first,
        _ => false,
    };
    if is_grown {
        found.set(&path, cidrs);
        return write(api, Method::PUT, &own, Some(&found))
            .await
            .map_err(failed);
    }
    if found.get(&path) != Some(&cidrs) {
        tracing::warn!("the ServiceCIDR kubernetes is not what --service-cidr says");
        return Ok(());
    }
    let has_condition = found
        .list(&["status", "conditions"])
        .iter()
        .any(|condition| condition["type"] == "Ready" && condition["status"] != "Unknown");
    if has_condition || found.is_deleting() {
        return Ok(());
    }
    let since = found.str(&["metadata", "creationTimestamp"]).to_owned();
    let condition = json!({
        "type": "Ready", "status": "True", "reason": "", "lastTransitionTime": since,
        "message": "Kubernetes default Service CIDR is ready",
    });
    found.set(&["status", "conditions"], json!([condition]));
    write(api, Method::PUT, &format!("{own}/status"), Some(&found))
        .await
        .map_err(failed)
}

fn service(settings: &Settings) -> Wanted {
    let ranges = allocate::ranges(&settings.service_cidr).unwrap_or_default();
    let address = ranges.first().map(|range| range.first().to_string());
    let object = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": "kubernetes", "namespace": "default",
            "labels": { "component": "apiserver", "provider": "kubernetes" },
        },
        "spec": {
            "type": "ClusterIP", "sessionAffinity": "None",
            "clusterIP": address.unwrap_or_default(),
            "ports": [{
                "name": "https", "protocol": "TCP", "port": 443, "targetPort": settings.port,
            }],
        },
    });
    Wanted {
        fixed: &[&["spec", "clusterIP"]],
        ..following(
            "/api/v1/namespaces/default/services",
            &[&["spec", "ports"]],
            object,
        )
    }
}

fn endpoints(settings: &Settings) -> Wanted {
    let object = json!({
        "apiVersion": "v1", "kind": "Endpoints",
        "metadata": {
            "name": "kubernetes", "namespace": "default",
            // The slice below is its own.
            "labels": { "endpointslice.kubernetes.io/skip-mirror": "true" },
        },
        "subsets": [{
            "addresses": [{ "ip": settings.advertise_address.to_string() }],
            "ports": [{ "name": "https", "port": settings.port, "protocol": "TCP" }],
        }],
    });
    following(
        "/api/v1/namespaces/default/endpoints",
        &[
            &["subsets"],
            &[
                "metadata",
                "labels",
                "endpointslice.kubernetes.io/skip-mirror",
            ],
        ],
        object,
    )
}

fn endpoint_slice(settings: &Settings) -> Wanted {
    let family = if settings.advertise_address.is_ipv4() {
        "IPv4"
    } else {
        "IPv6"
    };
    let object = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "name": "kubernetes", "namespace": "default",
            "labels": { "kubernetes.io/service-name": "kubernetes" },
        },
        "addressType": family,
        "endpoints": [{
            "addresses": [settings.advertise_address.to_string()], "conditions": { "ready": true },
        }],
        "ports": [{ "name": "https", "port": settings.port, "protocol": "TCP" }],
    });
    let collection = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    Wanted {
        fixed: &[&["addressType"]],
        ..following(
            collection,
            &[
                &["endpoints"],
                &["ports"],
                &["metadata", "labels", "kubernetes.io/service-name"],
            ],
            object,
        )
    }
}

async fn ensure(api: &InProcess, wanted: Wanted) -> Result<(), ReconcileError> {
    let object =
        Object::from_value(wanted.object.clone()).expect("it was written as a JSON object above");
    let what = format!("{} {}", object.kind(), object.name());
    let done = bring_about(api, &wanted, &object).await;
    done.map_err(|source| ReconcileError { what, source })
}

async fn bring_about(
    api: &InProcess,
    wanted: &Wanted,
    object: &Object,
) -> Result<(), bootstrap::ReconcileError> {
    let own = format!("{}/{}", wanted.collection, object.name());
    let Some(existing) = read(api, &own).await? else {
        return write(api, Method::POST, &wanted.collection, Some(object)).await;
    };
    let differs = |path: &&Path| existing.get(path) != object.get(path);
    if wanted.fixed.iter().any(|path| differs(&path)) {
        return replace(api, &wanted.collection, &existing, object).await;
    }
    let changed: Vec<&Path> = wanted.follows.iter().filter(differs).collect();
    if changed.is_empty() {
        return Ok(());
    }
    // What others added beside these fields stays.
    let mut updated = existing.clone();
    for path in changed {
        updated.set(path, object.get(path).cloned().unwrap_or_default());
    }
    write(api, Method::PUT, &own, Some(&updated)).await
}

/// Where the new one is refused, the old one comes back: what worked is better than nothing.
async fn replace(
    api: &InProcess,
    collection: &str,
    existing: &Object,
    object: &Object,
) -> Result<(), bootstrap::ReconcileError> {
    let own = format!("{collection}/{}", object.name());
    write(api, Method::DELETE, &own, None).await?;
    let made = create(api, collection, object).await;
    // What cannot be read may be gone: one that is there is not made twice.
    if made.is_err() && !matches!(read(api, &own).await, Ok(Some(_))) {
        let mut again = existing.clone();
        for field in [
            "uid",
            "resourceVersion",
            "creationTimestamp",
            "managedFields",
        ] {
            again.remove(&["metadata", field]);
        }
        write(api, Method::POST, collection, Some(&again)).await?;
    }
    made
}

/// A conflict is an error here, unless another server has made the object: the old one may be
/// there still, kept by a finalizer, or a quota may have been written at the same time.
async fn create(
    api: &InProcess,
    collection: &str,
    object: &Object,
) -> Result<(), bootstrap::ReconcileError> {
    let (status, answer) = send(api, Method::POST, collection, Some(object)).await?;
    let own = format!("{collection}/{}", object.name());
    let is_made = status.is_success()
        || status == StatusCode::CONFLICT
            && read(api, &own)
                .await?
                .is_some_and(|found| !found.is_deleting());
    if is_made {
        return Ok(());
    }
    Err(bootstrap::refused(
        Method::POST,
        collection,
        status,
        &answer,
    ))
}

/// None when it is not there. Any other answer that is not the object is an error: of what could
/// not be read nothing follows.
async fn read(api: &InProcess, own: &str) -> Result<Option<Object>, bootstrap::ReconcileError> {
    let (status, found) = send(api, Method::GET, own, None).await?;
    if status == StatusCode::NOT_FOUND {
        return Ok(None);
    }
    let object = serde_json::from_slice(&found)
        .ok()
        .and_then(Object::from_value)
        .filter(|_| status == StatusCode::OK);
    let object = object.ok_or_else(|| bootstrap::refused(Method::GET, own, status, &found))?;
    Ok(Some(object))
}

async fn write(
    api: &InProcess,
    method: Method,
    path: &str,
    object: Option<&Object>,
) -> Result<(), bootstrap::ReconcileError> {
    let (status, answer) = send(api, method.clone(), path, object).await?;
    // Another server over the same store was faster.
    if status.is_success() || status == StatusCode::CONFLICT {
        return Ok(());
    }
    Err(bootstrap::refused(method, path, status, &answer))
}

#[cfg(test)]
mod tests;
