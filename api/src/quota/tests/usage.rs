//! What pods, Services and claims of volumes use.

use super::*;

#[test]
fn containers_together_or_the_largest_init_container() {
    let container = |cpu: &str| json!({ "name": "c", "resources": { "requests": { "cpu": cpu } } });
    let sidecar = json!({
        "name": "s", "restartPolicy": "Always", "resources": { "requests": { "cpu": "100m" } },
    });
    let spec = |init: Vec<Value>| json!({ "spec": { "containers": [container("1"), container("1")], "initContainers": init } });
    expect!["count/pods=1,cpu=2100m,pods=1,requests.cpu=2100m"]
        .assert_eq(&usage_of("pods", spec(vec![sidecar.clone()])));
    expect!["count/pods=1,cpu=3100m,pods=1,requests.cpu=3100m"]
        .assert_eq(&usage_of("pods", spec(vec![sidecar, container("3")])));
}

#[test]
fn every_counted_resource_of_a_pod() {
    let requests = json!({
        "cpu": "100m", "memory": "1Mi", "ephemeral-storage": "2Mi", "hugepages-2Mi": "4Mi",
        "example.com/gpu": "2", "deviceclass.resource.kubernetes.io/fast": "1",
        "kubernetes.io/odd": "1",
    });
    let limits = json!({ "cpu": "1", "memory": "2Mi", "ephemeral-storage": "3Mi" });
    let mut all = pod(requests, limits);
    all["spec"]["overhead"] = json!({ "memory": "1Mi", "pods": "1" });
    expect!["count/pods=1,cpu=100m,ephemeral-storage=2Mi,hugepages-2Mi=4Mi,limits.cpu=1,limits.ephemeral-storage=3Mi,limits.memory=3Mi,memory=2Mi,pods=1,requests.cpu=100m,requests.deviceclass.resource.kubernetes.io/fast=1,requests.ephemeral-storage=2Mi,requests.example.com/gpu=2,requests.hugepages-2Mi=4Mi,requests.memory=2Mi"]
        .assert_eq(&usage_of("pods", all));
}

#[test]
fn what_a_pod_says_as_a_whole_stands_for_its_containers() {
    let mut all = pod(
        json!({ "cpu": "1", "memory": "1Mi" }),
        json!({ "cpu": "1" }),
    );
    all["spec"]["resources"] = json!({
        "requests": { "cpu": "3", "example.com/gpu": "1" }, "limits": { "cpu": "4" },
    });
    expect!["count/pods=1,cpu=3,limits.cpu=4,memory=1Mi,pods=1,requests.cpu=3,requests.memory=1Mi"]
        .assert_eq(&usage_of("pods", all));
}

#[test]
fn a_resize_is_charged_at_its_most_until_it_is_done() {
    let resized = |reason: &str| {
        let mut pod = pod(json!({ "cpu": "1" }), json!({ "cpu": "1" }));
        pod["status"] = json!({
            "containerStatuses": [{
                "name": "c",
                "allocatedResources": { "cpu": "2" },
                "resources": { "requests": { "cpu": "500m" }, "limits": { "cpu": "500m" } },
            }],
            "conditions": [{ "type": "PodResizePending", "reason": reason }],
        });
        pod["spec"]["containers"][0]["resources"] =
            json!({ "requests": { "cpu": "3" }, "limits": { "cpu": "3" } });
        pod
    };
    expect!["count/pods=1,cpu=3,limits.cpu=3,pods=1,requests.cpu=3"]
        .assert_eq(&usage_of("pods", resized("Deferred")));
    expect!["count/pods=1,cpu=2,limits.cpu=500m,pods=1,requests.cpu=2"]
        .assert_eq(&usage_of("pods", resized("Infeasible")));
}

#[test]
fn a_pod_that_ended_or_should_be_gone_keeps_its_place_alone() {
    let mut ended = pod(json!({ "cpu": "1" }), json!({}));
    ended["status"]["phase"] = "Succeeded".into();
    expect!["count/pods=1"].assert_eq(&usage_of("pods", ended));
    let deleted = |at: &str| {
        let mut pod = pod(json!({ "cpu": "1" }), json!({}));
        pod["metadata"] = json!({ "deletionTimestamp": at, "deletionGracePeriodSeconds": 30 });
        pod
    };
    let late = deleted("2025-12-31T23:59:29Z");
    expect!["count/pods=1"].assert_eq(&usage_of("pods", late));
    let soon = deleted("2025-12-31T23:59:30Z");
    expect!["count/pods=1,cpu=1,pods=1,requests.cpu=1"].assert_eq(&usage_of("pods", soon));
}

#[test]
fn services_count_node_ports_that_they_have_or_will_get() {
    let service = |spec: Value| usage_of("services", json!({ "spec": spec }));
    let ports = json!([{ "port": 1, "nodePort": 30001 }, { "port": 2 }]);
    expect!["count/services=1,services=1,services.loadbalancers=0,services.nodeports=0"]
        .assert_eq(&service(json!({ "type": "ClusterIP", "ports": ports })));
    expect!["count/services=1,services=1,services.loadbalancers=0,services.nodeports=2"]
        .assert_eq(&service(json!({ "type": "NodePort", "ports": ports })));
    expect!["count/services=1,services=1,services.loadbalancers=1,services.nodeports=2"]
        .assert_eq(&service(json!({ "type": "LoadBalancer", "ports": ports })));
    expect!["count/services=1,services=1,services.loadbalancers=1,services.nodeports=1"].assert_eq(
        &service(json!({
            "type": "LoadBalancer", "ports": ports, "allocateLoadBalancerNodePorts": false,
        })),
    );
}

#[test]
fn claims_of_volumes_count_in_all_and_by_class() {
    let claim = |meta: Value, spec: Value, status: Value| {
        let object = json!({ "metadata": meta, "spec": spec, "status": status });
        usage_of("persistentvolumeclaims", object)
    };
    let spec = json!({
        "storageClassName": "gold", "resources": { "requests": { "storage": "1.5" } },
    });
    expect!["count/persistentvolumeclaims=1,gold.storageclass.storage.k8s.io/persistentvolumeclaims=1,gold.storageclass.storage.k8s.io/requests.storage=2,persistentvolumeclaims=1,requests.storage=2"]
        .assert_eq(&claim(json!({}), spec.clone(), json!({})));
    let annotated = json!({ "annotations": { "volume.beta.kubernetes.io/storage-class": "" } });
    let grown = json!({ "allocatedResources": { "storage": "3" } });
    expect!["count/persistentvolumeclaims=1,persistentvolumeclaims=1,requests.storage=3"]
        .assert_eq(&claim(annotated, spec, grown));
}

#[test]
fn claims_are_in_the_scope_of_each_class_of_attributes_they_touch() {
    let scope = |operator: &str, values: &[&str]| Scope {
        name: "VolumeAttributesClass".to_owned(),
        operator: operator.to_owned(),
        values: values.iter().map(|value| (*value).to_owned()).collect(),
    };
    let moving = object(json!({
        "spec": { "volumeAttributesClassName": "new" },
        "status": { "currentVolumeAttributesClassName": "old" },
    }));
    let plain = object(json!({}));
    let evaluator = Evaluator::VolumeClaims;
    assert!(evaluator.is_in(&scope("In", &["old"]), &moving));
    assert!(evaluator.is_in(&scope("In", &["new"]), &moving));
    assert!(evaluator.is_in(&scope("Exists", &[]), &moving));
    assert!(evaluator.is_in(&scope("NotIn", &["old"]), &moving));
    assert!(!evaluator.is_in(&scope("NotIn", &["old", "new"]), &moving));
    assert!(!evaluator.is_in(&scope("Exists", &[]), &plain));
    assert!(evaluator.is_in(&scope("NotIn", &["old"]), &plain));
    assert!(evaluator.is_in(&scope("DoesNotExist", &[]), &plain));
}
