//! Claims, volumes and classes that are in use.

use serde_json::json;

use super::{AT_ONCE, Step, Story, at, change, nothing, there};
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
    beat: nothing,
    deaths_min: 8,
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
