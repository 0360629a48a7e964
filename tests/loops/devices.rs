//! Pods that want a device each, of which each node has one: at no moment do two claims have the same
//! one, who finds none is told so, and gets that of the pod that goes. A device that is tainted loses
//! its pod.

use crate::site::Site;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{
    DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice,
};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// In upstream's words.
const NO_DEVICE: &str = "0/2 nodes are available: 2 cannot allocate all claims. still not \
                         schedulable, preemption: 0/2 nodes are available: 2 Preemption is not \
                         helpful for scheduling.";

fn create<K>(site: &Site, api: &Api<K>, object: Value)
where
    K: Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    let object: K = serde_json::from_value(object).expect("an object");
    let created = site.block_on(api.create(&PostParams::default(), &object));
    created.expect("it is made");
}

fn class() -> Value {
    let expression = "device.driver == 'gpu.example.com' \
                      && device.attributes['gpu.example.com'].?healthy.orValue(true)";
    json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    })
}

/// One device that does, and one that does not.
fn slice(node: &str) -> Value {
    json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
        "metadata": {"name": node},
        "spec": {
            "driver": "gpu.example.com", "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {"name": "broken", "attributes": {"healthy": {"bool": false}}},
                {"name": "good"},
            ],
        },
    })
}

fn template() -> Value {
    let exactly = json!({"deviceClassName": "gpu"});
    json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": {"name": "gpu"},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}},
    })
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
            "containers": [{"name": "main", "image": "i",
                            "resources": {"claims": [{"name": "gpu"}]}}],
        },
    })
}

/// Which pod has which device, by the claims. No device is there twice.
fn held(site: &Site) -> BTreeMap<String, String> {
    let claims: Api<ResourceClaim> = Api::namespaced(site.admin.clone(), "default");
    let claims = site.block_on(claims.list(&ListParams::default()));
    let mut by_device = BTreeMap::new();
    for claim in claims.expect("the claims") {
        let status = claim.status.unwrap_or_default();
        let devices = status.allocation.and_then(|allocation| allocation.devices);
        let results = devices.and_then(|devices| devices.results);
        for one in results.unwrap_or_default() {
            let holder = status.reserved_for.iter().flatten().next();
            let holder = holder.map(|holder| holder.name.clone()).unwrap_or_default();
            let device = format!("{}/{}", one.pool, one.device);
            let other = by_device.insert(device.clone(), holder);
            assert_eq!(other, None, "{device} is given to two");
        }
    }
    by_device
}

fn node_of(pod: &Pod) -> Option<String> {
    pod.spec.as_ref()?.node_name.clone()
}

fn told(pod: &Pod) -> Option<&str> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let mut conditions = conditions.iter();
    let scheduled = conditions.find(|one| one.type_ == "PodScheduled")?;
    scheduled.message.as_deref()
}

/// Until as many pods are on nodes, each with the device of its node, and the others are told why
/// they are not.
fn placed(site: &mut Site, count: usize) -> Vec<Pod> {
    let mut pods = Vec::new();
    site.until("the pods to be placed", |site| {
        let held = held(site);
        pods = site.pods("default");
        let (placed, waiting): (Vec<&Pod>, Vec<&Pod>) =
            pods.iter().partition(|pod| node_of(pod).is_some());
        let wanted: BTreeMap<String, String> = placed
            .iter()
            .map(|pod| {
                let name = pod.metadata.name.clone().expect("a name");
                (format!("{}/good", node_of(pod).expect("a node")), name)
            })
            .collect();
        let reasons: Vec<_> = waiting.iter().map(|pod| told(pod)).collect();
        let is_told = reasons.iter().all(|reason| *reason == Some(NO_DEVICE));
        match placed.len() == count && held == wanted && is_told {
            true => Ok(()),
            false => Err(format!("{held:?}, wanted {wanted:?}, told {reasons:?}")),
        }
    });
    pods
}

pub fn run(seed: u64) {
    let mut site = Site::new(seed);
    // The service account of pods is of the loops, as are claims from templates.
    site.live();
    let admin = site.admin.clone();
    create::<DeviceClass>(&site, &Api::all(admin.clone()), class());
    let templates = Api::namespaced(admin.clone(), "default");
    create::<ResourceClaimTemplate>(&site, &templates, template());
    let pods: Api<Pod> = Api::namespaced(admin.clone(), "default");
    site.until("the service account", |site| {
        let first: Pod = serde_json::from_value(pod("p0")).expect("a pod");
        let created = site.block_on(pods.create(&PostParams::default(), &first));
        created.map(|_| ()).map_err(|error| error.to_string())
    });
    for name in ["p1", "p2"] {
        create(&site, &pods, pod(name));
    }
    // Nothing is there to be given, until it is published.
    placed(&mut site, 0);
    for node in ["one", "two"] {
        create::<ResourceSlice>(&site, &Api::all(admin.clone()), slice(node));
    }
    let found = placed(&mut site, 2);
    let one = found.iter().find(|pod| node_of(pod).is_some());
    let goes = one.and_then(|pod| pod.metadata.name.clone()).expect("one");
    let at_once = DeleteParams::default().grace_period(0);
    site.block_on(pods.delete(&goes, &at_once))
        .expect("it is deleted");
    let left = placed(&mut site, 2);
    assert_eq!(left.len(), 2);
    taint(&mut site, &left);
}

/// A device that its driver taints loses its pod, and is given to nobody while it is tainted.
fn taint(site: &mut Site, placed_before: &[Pod]) {
    let slices: Api<ResourceSlice> = Api::all(site.admin.clone());
    let change = |site: &Site, taints: Value| {
        let mut devices = slice("one")["spec"]["devices"].clone();
        devices[1]["taints"] = taints;
        let patch = Patch::Merge(json!({"spec": {"devices": devices}}));
        let patched = site.block_on(slices.patch("one", &PatchParams::default(), &patch));
        patched.expect("it is changed");
    };
    change(site, json!([{"key": "sick", "effect": "NoExecute"}]));
    let on_one = placed_before
        .iter()
        .find(|pod| node_of(pod).as_deref() == Some("one"));
    let goes = on_one.and_then(|pod| pod.metadata.uid.clone());
    site.until("the pod to go", |site| {
        let pods = site.pods("default");
        let is_there = pods.iter().any(|pod| pod.metadata.uid == goes);
        (!is_there)
            .then_some(())
            .ok_or_else(|| "it stays".to_owned())
    });
    let pods: Api<Pod> = Api::namespaced(site.admin.clone(), "default");
    create(site, &pods, pod("p3"));
    placed(site, 1);
    change(site, json!([]));
    placed(site, 2);
}
