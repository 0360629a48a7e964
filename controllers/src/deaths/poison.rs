//! Objects of which no write is ever done: each loop tells people of them.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;

use super::{LOOK_EVERY, LOOPS, STORIES, Step, Story, answer};
use crate::fake_cluster::{FakeCluster, Lives, spawn_lives};

/// Ten failures in a row take five seconds, of an autoscaler two and a half minutes.
const LOOKS_MAX: usize = 600;

/// Loops that are in no story, each with something to write.
static MORE: &[Story] = &[
    story(&["horizontalpodautoscaler"], |cluster| {
        cluster.api.put(
            "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/web",
            json!({
                "metadata": {},
                "spec": {
                    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                    "minReplicas": 1, "maxReplicas": 3, "metrics": [],
                },
            }),
        );
    }),
    story(&["persistentvolume-binder"], |cluster| {
        cluster.api.put(
            "/api/v1/persistentvolumes/disk",
            json!({
                "metadata": {},
                "spec": {
                    "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                    "storageClassName": "", "hostPath": {"path": "/disk"}, "volumeMode": "Filesystem",
                },
                "status": {"phase": "Available"},
            }),
        );
        cluster.api.put(
            "/api/v1/namespaces/default/persistentvolumeclaims/data",
            json!({
                "metadata": {},
                "spec": {
                    "resources": {"requests": {"storage": "1Gi"}},
                    "accessModes": ["ReadWriteOnce"], "storageClassName": "",
                    "volumeMode": "Filesystem",
                },
                "status": {"phase": "Pending"},
            }),
        );
    }),
    story(&["ephemeral-volume"], |cluster| {
        let template = json!({"metadata": {}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        }});
        let volume = json!({"name": "data", "ephemeral": {"volumeClaimTemplate": template}});
        cluster.api.put(
            "/api/v1/namespaces/default/pods/web",
            json!({"metadata": {}, "spec": {"containers": [], "volumes": [volume]}}),
        );
    }),
    story(&["service-cidr-controller"], |cluster| {
        cluster.api.put(
            "/apis/networking.k8s.io/v1/servicecidrs/more",
            json!({"metadata": {}, "spec": {"cidrs": ["10.50.0.0/16"]}}),
        );
    }),
    story(&["resourceclaim-controller"], |cluster| {
        cluster.api.put(
            "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates/gpu",
            json!({"metadata": {}, "spec": {"spec": {"devices": {}}}}),
        );
        let claim = json!({"name": "gpu", "resourceClaimTemplateName": "gpu"});
        cluster.api.put(
            "/api/v1/namespaces/default/pods/web",
            json!({"metadata": {}, "spec": {"containers": [], "resourceClaims": [claim]}}),
        );
    }),
    story(&["persistentvolume-attach-detach"], |cluster| {
        cluster
            .api
            .put("/api/v1/nodes/here", json!({"metadata": {}}));
        cluster.api.put(
            "/api/v1/persistentvolumes/disk",
            json!({"metadata": {}, "spec": {
                "csi": {"driver": "disks.example", "volumeHandle": "1"},
                "claimRef": {"namespace": "default", "name": "data", "uid": "u-data"},
                "accessModes": ["ReadWriteOnce"],
            }, "status": {"phase": "Bound"}}),
        );
        cluster.api.put(
            "/api/v1/namespaces/default/persistentvolumeclaims/data",
            json!({
                "metadata": {"uid": "u-data"}, "spec": {"volumeName": "disk"},
                "status": {"phase": "Bound"},
            }),
        );
        let volume = json!({"name": "data", "persistentVolumeClaim": {"claimName": "data"}});
        cluster.api.put(
            "/api/v1/namespaces/default/pods/web",
            json!({"metadata": {}, "spec": {
                "nodeName": "here", "containers": [], "volumes": [volume],
            }}),
        );
    }),
];

/// Of one step, which is all there is to it.
const fn story(loops: &'static [&'static str], happens: fn(&FakeCluster)) -> Story {
    Story {
        loops,
        config: crate::Config::default,
        steps: &[],
        writes_min: 0,
        names_vary: false,
        beat: Some(happens),
    }
}

/// Whose events say why nothing is done.
const REASONS: [&str; 3] = [
    "FailedReconcile",
    "SyncLoadBalancerFailed",
    "FailedGetScale",
];

#[tokio::test(start_paused = true)]
async fn what_cannot_be_written_is_told() {
    for story in STORIES.iter().copied().chain(MORE) {
        let cluster = FakeCluster::new();
        let api = cluster.api.clone();
        cluster.on_request(move |method, path| answer(&api, method, path));
        let find = |name: &&str| LOOPS.iter().find(|one| one.name == *name).unwrap();
        let runs = story.loops.iter().map(|name| find(name).run).collect();
        let mut steps = story.steps.iter();
        let first = steps.next();
        let happens = first.map_or_else(|| story.beat.unwrap(), |step| step.happens);
        happens(&cluster);
        let config = (story.config)();
        let living = spawn_lives(&cluster, config, runs, Lives::Poisoned, 1);
        let mut is_told = wait(&cluster, first).await;
        for step in steps {
            if !is_told {
                (step.happens)(&cluster);
                is_told = wait(&cluster, Some(step)).await;
            }
        }
        assert!(is_told, "{:?}: {:#?}", story.loops, reasons(&cluster));
        drop(living);
    }
}

async fn wait(cluster: &FakeCluster, step: Option<&Step>) -> bool {
    tokio::time::sleep(step.map_or(Duration::ZERO, |step| step.takes)).await;
    for _ in 0..LOOKS_MAX {
        let told = reasons(cluster);
        if REASONS.iter().any(|reason| told.contains(*reason)) {
            return true;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    false
}

fn reasons(cluster: &FakeCluster) -> BTreeSet<String> {
    let events = cluster.api.objects("/api/v1/events");
    let reason = |event: &serde_json::Value| event["reason"].as_str().unwrap().to_owned();
    events.iter().map(reason).collect()
}
