//! Claims, volumes and classes that are in use; and volumes below a node's directory.

use coracle_client::volumes;
use serde_json::{Value, json};

use super::{AT_ONCE, Step, Story, at, change, there};
use crate::Config;
use crate::fake_cluster::FakeCluster;

const VOLUME: &str = "/api/v1/persistentvolumes/disk";
const CLASS: &str = "/apis/storage.k8s.io/v1/volumeattributesclasses/fast";
const POD: &str = "/api/v1/namespaces/default/pods/web";

fn claim(name: &str) -> String {
    format!("/api/v1/namespaces/default/persistentvolumeclaims/{name}")
}

fn put_pod(cluster: &FakeCluster) {
    let volumes = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "used"}}]);
    let spec = json!({"containers": [], "nodeName": "n", "volumes": volumes});
    cluster.api.put(POD, json!({"metadata": {}, "spec": spec}));
}

fn is_kept(cluster: &FakeCluster, path: &str) -> bool {
    let finalizers = at(cluster, path, "/metadata/finalizers");
    finalizers.as_array().is_some_and(|all| all.len() == 1)
}

pub(super) static PROTECTED: Story = Story {
    loops: &["pvc-protection", "pv-protection", "vac-protection"],
    config: Config::default,
    beat: None,
    writes_min: 8,
    names_vary: false,
    steps: &[
        Step {
            what: "all are kept",
            happens: |cluster| {
                let spec = json!({"volumeAttributesClassName": "fast"});
                cluster
                    .api
                    .put(&claim("used"), json!({"metadata": {}, "spec": spec}));
                cluster
                    .api
                    .put(&claim("free"), json!({"metadata": {}, "spec": {}}));
                let bound = json!({"metadata": {}, "spec": {}, "status": {"phase": "Bound"}});
                cluster.api.put(VOLUME, bound);
                cluster
                    .api
                    .put(CLASS, json!({"metadata": {}, "driverName": "d"}));
                put_pod(cluster);
            },
            takes: AT_ONCE,
            done: |cluster| {
                let all = [claim("used"), claim("free"), VOLUME.into(), CLASS.into()];
                all.iter().all(|path| is_kept(cluster, path))
            },
        },
        Step {
            what: "what nobody uses goes",
            happens: |cluster| {
                [&*claim("used"), &*claim("free"), VOLUME, CLASS]
                    .iter()
                    .for_each(|path| cluster.delete_as(path, "Background"));
            },
            takes: AT_ONCE,
            done: |cluster| {
                !there(cluster, &claim("free"))
                    && [&*claim("used"), VOLUME, CLASS]
                        .iter()
                        .all(|path| is_kept(cluster, path))
            },
        },
        Step {
            what: "the rest goes when it is used no more, and what comes after stays",
            happens: |cluster| {
                cluster.api.delete(POD);
                change(cluster, VOLUME, &json!({"status": {"phase": "Released"}}));
                cluster.api.put(
                    &claim("free"),
                    json!({"metadata": {"uid": "second"}, "spec": {}}),
                );
            },
            takes: AT_ONCE,
            done: |cluster| {
                let gone = [&*claim("used"), VOLUME, CLASS];
                gone.iter().all(|path| !there(cluster, path)) && is_kept(cluster, &claim("free"))
            },
        },
    ],
};

const NODE: &str = "/api/v1/nodes/a";
const MADE: &str = "/api/v1/persistentvolumes/pvc-of-data";
const LOCAL_CLASS: &str = "/apis/storage.k8s.io/v1/storageclasses/local-path";
const LOCAL_FINALIZER: &str = "external-provisioner.volume.kubernetes.io/finalizer";

/// Of which the scheduler says the node, if it does.
fn put_claim(cluster: &FakeCluster, name: &str, node: Option<&str>) {
    let mut annotations = json!({volumes::PROVISIONER: volumes::LOCAL_PATH});
    if let Some(node) = node {
        annotations[volumes::SELECTED_NODE] = json!(node);
    }
    let spec = json!({"accessModes": ["ReadWriteOnce"], "storageClassName": "local-path",
        "resources": {"requests": {"storage": "1Gi"}}});
    let metadata = json!({"uid": format!("of-{name}"), "annotations": annotations});
    let status = json!({"phase": "Pending"});
    let asked = json!({"metadata": metadata, "spec": spec, "status": status});
    cluster.api.put(&claim(name), asked);
}

fn put_node(cluster: &FakeCluster, directory: &str) {
    let annotations = json!({volumes::LOCAL_PATH_DIRECTORY: directory});
    let meta = json!({"labels": {"kubernetes.io/hostname": "a"}, "annotations": annotations});
    let ready = json!({"conditions": [{"type": "Ready", "status": "True"}]});
    cluster
        .api
        .put(NODE, json!({"metadata": meta, "status": ready}));
}

pub(super) static LOCAL: Story = Story {
    loops: &["local-path"],
    config: Config::default,
    beat: None,
    writes_min: 4,
    names_vary: false,
    steps: &[
        Step {
            what: "the class is there",
            happens: |cluster| {
                put_node(cluster, "/srv");
                put_claim(cluster, "data", None);
            },
            takes: AT_ONCE,
            done: |cluster| there(cluster, LOCAL_CLASS),
        },
        Step {
            what: "the volume is made where the scheduler wants it",
            happens: |cluster| put_claim(cluster, "data", Some("a")),
            takes: AT_ONCE,
            done: |cluster| at(cluster, MADE, "/spec/local/path") == "/srv/pvc-of-data",
        },
        Step {
            what: "it goes when it is released",
            happens: |cluster| {
                let kept = json!({"finalizers": [LOCAL_FINALIZER]});
                let released = json!({"metadata": kept, "status": {"phase": "Released"}});
                change(cluster, MADE, &released);
                cluster.api.delete(&claim("data"));
            },
            takes: AT_ONCE,
            done: |cluster| !there(cluster, MADE),
        },
        Step {
            what: "a claim for a node without a place goes back to the scheduler",
            happens: |cluster| {
                cluster.api.put("/api/v1/nodes/b", json!({"metadata": {}}));
                put_claim(cluster, "moved", Some("b"));
            },
            takes: AT_ONCE,
            done: |cluster| {
                let annotations = at(cluster, &claim("moved"), "/metadata/annotations");
                annotations[volumes::SELECTED_NODE] == Value::Null
            },
        },
    ],
};

fn put_grown(cluster: &FakeCluster, name: &str, asks: &str) {
    let held = json!({"namespace": "default", "name": name, "uid": name});
    let volume = json!({"spec": {"cinder": {"volumeID": "i"}, "claimRef": held}});
    let path = format!("/api/v1/persistentvolumes/v-{name}");
    cluster.api.put(&path, volume);
    let spec = json!({"volumeName": format!("v-{name}"),
        "resources": {"requests": {"storage": asks}}});
    let status = json!({"phase": "Bound", "capacity": {"storage": "1Gi"}});
    let grown = json!({"metadata": {"uid": name}, "spec": spec, "status": status});
    cluster.api.put(&claim(name), grown);
}

fn resizer(cluster: &FakeCluster, name: &str) -> Value {
    let at = "/metadata/annotations/volume.kubernetes.io~1storage-resizer";
    super::at(cluster, &claim(name), at)
}

pub(super) static GROWN: Story = Story {
    loops: &[crate::volume_expander::NAME],
    config: Config::default,
    beat: None,
    writes_min: 3,
    names_vary: false,
    steps: &[
        Step {
            what: "the resizers of two are named",
            happens: |cluster| {
                put_grown(cluster, "a", "2Gi");
                put_grown(cluster, "b", "3Gi");
                put_grown(cluster, "c", "1Gi");
            },
            takes: AT_ONCE,
            done: |cluster| {
                ["a", "b"]
                    .iter()
                    .all(|name| resizer(cluster, name) == "cinder.csi.openstack.org")
                    && resizer(cluster, "c").is_null()
            },
        },
        Step {
            what: "and that of one that grows later",
            happens: |cluster| put_grown(cluster, "c", "2Gi"),
            takes: AT_ONCE,
            done: |cluster| resizer(cluster, "c") == "cinder.csi.openstack.org",
        },
    ],
};
