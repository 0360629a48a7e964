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
