//! What may change of a pod.

use super::*;

#[test]
fn images_may_change_and_names_may_not() {
    let mut new = web();
    new["spec"]["containers"][0]["image"] = "web:2".into();
    update_errors(
        "pods",
        new.clone(),
        web(),
        Part::Main,
        expect![[r#"
        spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)
        - containers[0].imagePullPolicy: "Always"
        + containers[0].imagePullPolicy: "IfNotPresent""#]],
    );
    new["spec"]["containers"][0]["command"] = json!(["sh"]);
    new["spec"]["nodeName"] = "edge-1".into();
    update_errors(
        "pods",
        new,
        web(),
        Part::Main,
        expect![[r#"
        spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)
        - containers[0].command: null
        + containers[0].command: ["sh"]
        - containers[0].imagePullPolicy: "Always"
        + containers[0].imagePullPolicy: "IfNotPresent"
        - nodeName: null
        + nodeName: "edge-1""#]],
    );
}

#[test]
fn deadlines_tolerations_and_gates() {
    let old = with(json!({
        "activeDeadlineSeconds": 10,
        "tolerations": [{ "key": "a", "operator": "Exists", "effect": "NoExecute" }],
        "schedulingGates": [{ "name": "example.com/a" }],
        "nodeSelector": { "disk": "ssd" },
    }));
    let good = with(json!({
        "activeDeadlineSeconds": 5,
        "tolerations": [
            { "key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5 },
            { "key": "b", "operator": "Exists" },
        ],
        "nodeSelector": { "disk": "ssd", "zone": "a" },
    }));
    update_errors("pods", good, old.clone(), Part::Main, expect![]);
    let bad = with(json!({
        "tolerations": [{ "key": "b", "operator": "Exists" }],
        "schedulingGates": [{ "name": "example.com/b" }],
        "nodeSelector": { "zone": "a" },
    }));
    update_errors(
        "pods",
        bad,
        old,
        Part::Main,
        expect![[r#"
        spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value
        spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds
        spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'example.com/b'
        spec.nodeSelector: Invalid value: {"zone":"a"}: only additions to spec.nodeSelector are allowed (no mutations or deletions)"#]],
    );
}

#[test]
fn containers_do_not_come_or_go() {
    let new = with(json!({ "containers": [
        { "name": "web", "image": "web" }, { "name": "more", "image": "web" },
    ] }));
    update_errors(
        "pods",
        new,
        web(),
        Part::Main,
        expect!["spec.containers: Forbidden: pod updates may not add or remove containers"],
    );
}

#[test]
fn a_status_keeps_the_spec_and_the_class() {
    let mut old = defaulted("pods", web());
    Pod.prepare_create(&mut old);
    let mut new = old.clone();
    new.set(&["spec", "nodeName"], "edge-1".into());
    new.set(&["metadata", "labels", "a"], "b".into());
    new.set(&["status"], json!({ "phase": "Running" }));
    Pod.prepare_update(&mut new, &old, Part::Status);
    assert_eq!(new.get(&["spec"]), old.get(&["spec"]));
    assert_eq!(new.label("a"), Some("b"));
    assert_eq!(new.str(&["status", "qosClass"]), "BestEffort");
    assert!(Pod.validate_update(&new, &old, Part::Status).is_empty());
}

#[test]
fn an_ended_container_stays_ended() {
    let mut old = with(json!({ "restartPolicy": "OnFailure" }));
    let status = |state: Value| json!({ "containerStatuses": [{ "name": "web", "state": state }] });
    old["status"] = status(json!({ "terminated": { "exitCode": 0 } }));
    let mut new = old.clone();
    new["status"] = status(json!({ "running": {} }));
    new["status"]["podIPs"] = json!([{ "ip": "10.42.0.2" }, { "ip": "10.42.0.3" }]);
    update_errors(
        "pods",
        new.clone(),
        old.clone(),
        Part::Status,
        expect![[r#"
        status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state
        status.podIPs: Invalid value: [{"ip":"10.42.0.2"},{"ip":"10.42.0.3"}]: may specify no more than one IP for each IP family"#]],
    );
    old["status"] = status(json!({ "terminated": { "exitCode": 1 } }));
    new["status"]["podIPs"] = json!([]);
    update_errors("pods", new.clone(), old.clone(), Part::Status, expect![]);

    // However it ended, another may make it begin again.
    old["status"] = status(json!({ "terminated": { "exitCode": 0 } }));
    let codes = json!({ "operator": "In", "values": [42] });
    let rule = json!([{ "action": "RestartAllContainers", "exitCodes": codes }]);
    let other =
        json!({ "name": "o", "image": "i", "restartPolicy": "Never", "restartPolicyRules": rule });
    for pod in [&mut new, &mut old] {
        let containers = pod["spec"]["containers"].as_array_mut().unwrap();
        containers.push(other.clone());
    }
    update_errors("pods", new, old, Part::Status, expect![]);
}

#[test]
fn ephemeral_containers_are_only_added() {
    let old = with(json!({ "ephemeralContainers": [{ "name": "d1", "image": "busybox" }] }));
    let good = with(json!({ "ephemeralContainers": [
        { "name": "d1", "image": "busybox" },
        { "name": "d2", "image": "busybox", "targetContainerName": "web" },
    ] }));
    let part = Part::Other("ephemeralcontainers");
    update_errors("pods", good, old.clone(), part, expect![]);
    let bad = with(json!({ "ephemeralContainers": [
        { "name": "d2", "image": "busybox", "targetContainerName": "x", "ports": [
            { "containerPort": 1 },
        ] },
    ] }));
    update_errors(
        "pods",
        bad,
        old,
        part,
        expect![[r#"
        spec.ephemeralContainers[0].targetContainerName: Not found: "x"
        spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container
        spec.ephemeralContainers: Forbidden: existing ephemeral containers "d1" may not be removed
    "#]],
    );
}

#[test]
fn resize_changes_cpu_and_memory_alone() {
    let sized = |cpu: &str| {
        with(json!({ "containers": [{
            "name": "web", "image": "web", "resources": { "requests": { "cpu": cpu } },
        }] }))
    };
    let part = Part::Other("resize");
    update_errors("pods", sized("2"), sized("1"), part, expect![]);
    update_errors(
        "pods",
        web(),
        sized("1"),
        part,
        expect![[r#"
        spec: Invalid value: "": Pod QOS Class may not change as a result of resizing
        spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed"#]],
    );
    let policy = with(json!({ "containers": [{
        "name": "web", "image": "web", "resources": { "requests": { "cpu": "1" } },
        "resizePolicy": [{ "resourceName": "cpu", "restartPolicy": "RestartContainer" }],
    }] }));
    update_errors(
        "pods",
        policy,
        sized("1"),
        part,
        expect!["spec: Forbidden: only cpu and memory resources are mutable"],
    );
}

/// Nothing said and `false` are two things where the default is true.
#[test]
fn a_container_that_may_not_gain_rights_stays_so() {
    let confined = |may: Value| {
        let mut pod = web();
        pod["spec"]["containers"][0]["securityContext"] = may;
        pod
    };
    update_errors(
        "pods",
        confined(json!({})),
        confined(json!({ "allowPrivilegeEscalation": false })),
        Part::Main,
        expect![[r#"
            spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)
            - containers[0].securityContext.allowPrivilegeEscalation: false
            + containers[0].securityContext.allowPrivilegeEscalation: null"#]],
    );
}
