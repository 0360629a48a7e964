//! Volumes from their claims to a node and back, and beside them a network of Services that comes
//! and goes; the test is the driver's attacher, and says what the nodes use.

use crate::site::Site;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams};
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

const CLAIM: (&str, &str) = ("", "PersistentVolumeClaim");
const VOLUME: (&str, &str) = ("", "PersistentVolume");
const CLASS: (&str, &str) = ("storage.k8s.io", "StorageClass");
const ATTACHMENT: (&str, &str) = ("storage.k8s.io", "VolumeAttachment");
const NODE: (&str, &str) = ("", "Node");
const POD: (&str, &str) = ("", "Pod");
const ACCOUNT: (&str, &str) = ("", "ServiceAccount");
const SERVICE: (&str, &str) = ("", "Service");
const NETWORK: (&str, &str) = ("networking.k8s.io", "ServiceCIDR");
/// Of volumes that the driver calls by their own names.
const UNIQUE_NAME: &str = "kubernetes.io/csi/d^";

pub fn run(seed: u64) {
    let mut site = Site::new(seed);
    make(&mut site);
    let both = "claim data Bound v, claim own-v Bound w, network more True, one has v, two has w, \
                v is on one, volume v Bound, volume w Bound, w is on two";
    is_reached(&mut site, seed, "both are attached", both);

    uses(&site, "one", &["v"]);
    create(&site, POD, pod("second", "two", of_claim()));
    let service = json!({"clusterIP": "10.99.0.7", "ports": [{"port": 80}]});
    let service = json!({"metadata": {"name": "web"}, "spec": service});
    create(&site, SERVICE, service);
    for (kind, name) in [(POD, "first"), (POD, "own"), (NETWORK, "more")] {
        delete(&site, kind, name);
    }
    let waits = "claim data Bound v, network more False, one has v, v is on one, volume v Bound, \
                 volume w Released";
    is_reached(&mut site, seed, "a pod waits for another node", waits);

    uses(&site, "one", &[]);
    delete(&site, SERVICE, "web");
    let follows = "claim data Bound v, two has v, v is on two, volume v Bound, volume w Released";
    is_reached(&mut site, seed, "the volume follows", follows);

    delete(&site, POD, "second");
    delete(&site, CLAIM, "data");
    let released = "volume v Released, volume w Released";
    is_reached(&mut site, seed, "nothing else is left", released);
    let counted = site.faults.take_counted();
    assert!(counted.created.is_empty() && counted.deleted.is_empty());
}

fn make(site: &mut Site) {
    site.until("the pods' account", |site| {
        let account = site.block_on(api(site, ACCOUNT).get_opt("default"));
        let account = account.expect("an answer");
        account.map(drop).ok_or_else(|| "none".to_owned())
    });
    let data = json!({"metadata": {"name": "data"}, "spec": claim("1Gi")});
    let template = json!({"volumeClaimTemplate": {"spec": claim("2Gi")}});
    let own = json!({"name": "v", "ephemeral": template});
    let network = json!({"metadata": {"name": "more"}, "spec": {"cidrs": ["10.99.0.0/24"]}});
    create(site, CLASS, class());
    create(site, VOLUME, volume("v", "1Gi"));
    create(site, VOLUME, volume("w", "2Gi"));
    create(site, CLAIM, data);
    create(site, POD, pod("own", "two", own));
    create(site, POD, pod("first", "one", of_claim()));
    create(site, NETWORK, network);
}

fn is_reached(site: &mut Site, seed: u64, what: &str, expected: &str) {
    site.until(&format!("{what}, seed {seed}"), |site| {
        attach(site);
        let found = state(site);
        (found == expected).then_some(()).ok_or(found)
    });
    // And it stays so, whatever is still under way.
    site.faults.wait_idle();
    assert_eq!(state(site), expected, "{what}, seed {seed}");
}

/// A line for each thing, in order.
fn state(site: &Site) -> String {
    let mut lines = Vec::new();
    for one in all(site, CLAIM) {
        let (phase, of) = (text(&one, "/status/phase"), text(&one, "/spec/volumeName"));
        lines.push(format!("claim {} {phase} {of}", name(&one)));
    }
    for one in all(site, VOLUME) {
        lines.push(format!(
            "volume {} {}",
            name(&one),
            text(&one, "/status/phase")
        ));
    }
    for one in all(site, ATTACHMENT) {
        let of = text(&one, "/spec/source/persistentVolumeName");
        lines.push(format!("{of} is on {}", text(&one, "/spec/nodeName")));
    }
    for one in all(site, NODE) {
        let noted = one.pointer("/status/volumesAttached");
        for volume in noted.and_then(Value::as_array).into_iter().flatten() {
            let of = text(volume, "/name").replace(UNIQUE_NAME, "");
            lines.push(format!("{} has {of}", name(&one)));
        }
    }
    for one in all(site, NETWORK)
        .iter()
        .filter(|one| name(one) != "kubernetes")
    {
        let is_ready = text(one, "/status/conditions/0/status");
        lines.push(format!("network {} {is_ready}", name(one)));
    }
    lines.sort();
    lines.join(", ")
}

/// As the driver's attacher does.
fn attach(site: &Site) {
    for one in all(site, ATTACHMENT) {
        let is_new = one.pointer("/status/attached") != Some(&Value::Bool(true));
        if is_new && one.pointer("/metadata/deletionTimestamp").is_none() {
            let patch = Patch::Merge(json!({"status": {"attached": true}}));
            let (api, params) = (api(site, ATTACHMENT), PatchParams::default());
            // It may have gone meanwhile.
            drop(site.block_on(api.patch_status(&name(&one), &params, &patch)));
        }
    }
}

/// As the node says it.
fn uses(site: &Site, node: &str, volumes: &[&str]) {
    let names = volumes
        .iter()
        .map(|volume| format!("{UNIQUE_NAME}{volume}"));
    let names: Vec<String> = names.collect();
    let patch = Patch::Merge(json!({"status": {"volumesInUse": names}}));
    let (api, params) = (api(site, NODE), PatchParams::default());
    let patched = site.block_on(api.patch_status(node, &params, &patch));
    drop(patched.expect("it is written"));
}

fn class() -> Value {
    json!({"metadata": {"name": "slow"}, "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer"})
}

fn volume(name: &str, size: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": size}, "storageClassName": "slow",
        "persistentVolumeReclaimPolicy": "Retain", "csi": {"driver": "d", "volumeHandle": name}}})
}

fn claim(size: &str) -> Value {
    json!({"accessModes": ["ReadWriteOnce"], "storageClassName": "slow",
        "resources": {"requests": {"storage": size}}})
}

fn of_claim() -> Value {
    json!({"name": "v", "persistentVolumeClaim": {"claimName": "data"}})
}

fn pod(name: &str, node: &str, volume: Value) -> Value {
    let field = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    let terms = json!({"nodeSelectorTerms": [{"matchFields": [field]}]});
    let affinity =
        json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}});
    json!({"metadata": {"name": name}, "spec": {"affinity": affinity, "volumes": [volume],
        "containers": [{"name": "main", "image": "a"}]}})
}

fn api(site: &Site, (group, kind): (&str, &str)) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
    match [ACCOUNT, CLAIM, POD, SERVICE].contains(&(group, kind)) {
        true => Api::namespaced_with(site.admin.clone(), "default", &resource),
        false => Api::all_with(site.admin.clone(), &resource),
    }
}

fn all(site: &Site, kind: (&str, &str)) -> Vec<Value> {
    let listed = site.block_on(api(site, kind).list(&ListParams::default()));
    let items = listed.expect("they are listed").items.into_iter();
    items.map(|one| json!(one)).collect()
}

fn create(site: &Site, kind: (&str, &str), object: Value) {
    let object = serde_json::from_value(object).expect("an object");
    let made = site.block_on(api(site, kind).create(&PostParams::default(), &object));
    drop(made.expect("it is made"));
}

fn delete(site: &Site, kind: (&str, &str), name: &str) {
    let deleted = site.block_on(api(site, kind).delete(name, &DeleteParams::default()));
    drop(deleted.expect("it is deleted"));
}

fn name(object: &Value) -> String {
    text(object, "/metadata/name")
}

fn text(object: &Value, path: &str) -> String {
    let found = object.pointer(path).and_then(Value::as_str);
    found.unwrap_or_default().to_owned()
}
