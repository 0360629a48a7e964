//! Loops that seldom write do so within their own roles: each as its service account, over the real
//! authorizer and admission.

use crate::site::Site;
use k8s_openapi::api::core::v1::{
    ConfigMap, Event, Node, PersistentVolume, PersistentVolumeClaim, Secret, ServiceAccount,
};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;

fn create<K>(site: &Site, api: &Api<K>, object: Value)
where
    K: Clone + Debug + Serialize + DeserializeOwned,
{
    let object: K = serde_json::from_value(object).expect("an object");
    let created = site.block_on(api.create(&PostParams::default(), &object));
    created.expect("it is made");
}

fn change<K>(site: &Site, api: &Api<K>, name: &str, change: Value)
where
    K: Clone + Debug + Serialize + DeserializeOwned,
{
    let patch = Patch::Merge(change);
    let patched = site.block_on(api.patch(name, &PatchParams::default(), &patch));
    patched.expect("it is changed");
}

fn annotation<K>(site: &Site, api: &Api<K>, name: &str, annotation: &str) -> Result<String, String>
where
    K: Clone + Debug + Serialize + DeserializeOwned,
{
    let found = site
        .block_on(api.get(name))
        .map_err(|error| error.to_string())?;
    let found = serde_json::to_value(found).expect("an object");
    let said = found["metadata"]["annotations"][annotation].as_str();
    said.map(str::to_owned)
        .ok_or_else(|| found["metadata"].to_string())
}

fn is(found: Result<String, String>, wanted: &str) -> Result<(), String> {
    let found = found?;
    (found == wanted).then_some(()).ok_or(found)
}

pub fn run() {
    let mut site = Site::new(0);
    let admin = site.admin.clone();
    let secrets: Api<Secret> = Api::namespaced(admin.clone(), "default");
    tokens(&site, &secrets);
    site.live_unharmed();

    site.until("the tokens to be looked at", |site| {
        let listed = site.block_on(secrets.list(&ListParams::default()));
        let listed = listed.expect("the secrets").items;
        let is_marked = |secret: &Secret| {
            let labels = secret.metadata.labels.as_ref();
            labels.is_some_and(|all| all.contains_key(INVALID_SINCE))
        };
        let names: Vec<_> = listed
            .iter()
            .filter_map(|one| one.metadata.name.as_deref())
            .collect();
        let is_done = names == ["unused"] && listed.iter().all(is_marked);
        is_done.then_some(()).ok_or_else(|| format!("{listed:?}"))
    });
    let nodes: Api<Node> = Api::all(admin.clone());
    site.until("the nodes to be told", |site| {
        is(
            annotation(site, &nodes, "one", "node.alpha.kubernetes.io/ttl"),
            "0",
        )
    });
    grown(&mut site);
}

const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";

/// One that nobody used for longer than the loops of this site bear, and one marked for as long.
fn tokens(site: &Site, secrets: &Api<Secret>) {
    let admin = &site.admin;
    let tracking = "kube-apiserver-legacy-service-account-token-tracking";
    let maps: Api<ConfigMap> = Api::namespaced(admin.clone(), "kube-system");
    let since = json!({"data": {"since": "2020-01-01"}});
    change(site, &maps, tracking, since);
    let account = json!({
        "metadata": {"name": "bot"}, "secrets": [{"name": "unused"}, {"name": "marked"}],
    });
    create::<ServiceAccount>(site, &Api::namespaced(admin.clone(), "default"), account);
    for (name, labels) in [
        ("unused", json!({})),
        ("marked", json!({INVALID_SINCE: "2020-01-01"})),
    ] {
        let secret = json!({
            "metadata": {
                "name": name, "labels": labels,
                "annotations": {"kubernetes.io/service-account.name": "bot"},
            },
            "type": "kubernetes.io/service-account-token",
        });
        create(site, secrets, secret);
    }
}

/// A claim whose volume is of a kind that was once built in asks for more.
fn grown(site: &mut Site) {
    let admin = site.admin.clone();
    let class = json!({
        "metadata": {"name": "grows"}, "provisioner": "kubernetes.io/cinder",
        "allowVolumeExpansion": true,
    });
    create::<StorageClass>(site, &Api::all(admin.clone()), class);
    let one = json!({"storage": "1Gi"});
    let volume = json!({
        "metadata": {"name": "v"},
        "spec": {
            "capacity": one, "accessModes": ["ReadWriteOnce"], "storageClassName": "grows",
            "cinder": {"volumeID": "i"},
            "claimRef": {"namespace": "default", "name": "c"},
        },
    });
    create::<PersistentVolume>(site, &Api::all(admin.clone()), volume);
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(admin.clone(), "default");
    let claim = json!({
        "metadata": {"name": "c"},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "grows", "volumeName": "v",
            "resources": {"requests": one},
        },
    });
    create(site, &claims, claim);
    site.until("the claim to be bound", |site| {
        let claim = site.block_on(claims.get("c")).expect("the claim");
        let phase = claim.status.and_then(|status| status.phase);
        (phase.as_deref() == Some("Bound"))
            .then_some(())
            .ok_or_else(|| format!("{phase:?}"))
    });
    let more = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
    change(site, &claims, "c", more);
    site.until("the resizer to be named", |site| {
        let resizer = annotation(site, &claims, "c", "volume.kubernetes.io/storage-resizer");
        is(resizer, "cinder.csi.openstack.org")
    });
    let events: Api<Event> = Api::namespaced(admin, "default");
    site.until("the claim to be told", |site| {
        let told = site.block_on(events.list(&ListParams::default()));
        let told = told.expect("the events").items;
        let mut reasons = told.iter().filter_map(|event| event.reason.as_deref());
        reasons
            .any(|reason| reason == "ExternalExpanding")
            .then_some(())
            .ok_or_else(|| format!("{told:?}"))
    });
}
