//! What a pod template is warned of.

use super::*;
use expect_test::expect;
use serde_json::json;

#[test]
fn what_better_were_not_there() {
    let spec = json!({
        "nodeSelector": { "beta.kubernetes.io/os": "linux" },
        "topologySpreadConstraints": [{ "topologyKey": "failure-domain.beta.kubernetes.io/zone" }],
        "volumes": [{ "name": "a", "gitRepo": {} }],
        "imagePullSecrets": [{ "name": "a" }, { "name": "a" }, {}],
        "terminationGracePeriodSeconds": -1,
        "containers": [
            {
                "resources": { "limits": { "memory": "100m" } },
                "env": [
                    { "name": "A", "value": "1" }, { "name": "A", "value": "$(A)2" },
                    { "name": "A", "value": "3" },
                ],
                "ports": [
                    { "containerPort": 80, "protocol": "TCP", "name": "web" },
                    { "containerPort": 80, "protocol": "TCP", "hostPort": 80 },
                ],
            },
            { "ports": [{ "containerPort": 80, "protocol": "TCP", "name": "web" }] },
        ],
    });
    expect![[r#"
        spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead
        spec.topologySpreadConstraints[0].topologyKey: failure-domain.beta.kubernetes.io/zone is deprecated since v1.17; use "topology.kubernetes.io/zone" instead
        spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod
        spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+
        spec.imagePullSecrets[1].name: duplicate name "a"
        spec.imagePullSecrets[2].name: invalid empty name ""
        spec.containers[0].resources.limits[memory]: fractional byte value "100m" is invalid, must be an integer
        spec.containers[0].env[2]: hides previous definition of "A", which may be dropped when using apply
        spec.containers[0].ports[1]: overlapping port definition with spec.containers[0].ports[0]
        spec.containers[1].ports[0]: duplicate port definition with spec.containers[0].ports[0]
        spec.containers[1].ports[0]: overlapping port definition with spec.containers[0].ports[1]
        spec.containers[1].ports[0]: duplicate port name "web" with spec.containers[0].ports[0], services and probes that select ports by name will use spec.containers[0].ports[0]
        spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"#]].assert_eq(&of_pod(&json!({}), &spec).join("\n"));
}

#[test]
fn annotations_of_old() {
    let metadata = json!({ "annotations": {
        "scheduler.alpha.kubernetes.io/critical-pod": "",
        "seccomp.security.alpha.kubernetes.io/pod": "unconfined",
        "container.seccomp.security.alpha.kubernetes.io/a": "unconfined",
        "container.apparmor.security.beta.kubernetes.io/a": "unconfined",
    } });
    let spec = json!({ "containers": [{ "name": "a" }] });
    let of_pod = of_pod(&metadata, &spec);
    expect![[r#"
        metadata.annotations[scheduler.alpha.kubernetes.io/critical-pod]: non-functional in v1.16+; use the "priorityClassName" field instead
        metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]: non-functional in v1.27+; use the "seccompProfile" field instead
        metadata.annotations[container.seccomp.security.alpha.kubernetes.io/a]: non-functional in v1.27+; use the "seccompProfile" field instead"#]]
    .assert_eq(&of_pod.join("\n"));
    let template = json!({ "metadata": metadata, "spec": spec });
    let of_template = of_template(&template, &Path::root("template"));
    assert_eq!(of_template.len(), of_pod.len() + 1);
    expect![[r#"template.metadata.annotations[container.apparmor.security.beta.kubernetes.io/a]: deprecated since v1.30; use the "appArmorProfile" field instead"#]]
    .assert_eq(of_template.last().unwrap());
    // Nothing is said of what the fields say as well.
    let profile = json!({ "type": "Unconfined" });
    let context = json!({ "seccompProfile": profile, "appArmorProfile": profile });
    let spec = json!({
        "securityContext": context,
        "containers": [{ "name": "a", "securityContext": { "seccompProfile": profile } }],
    });
    let template = json!({ "metadata": metadata, "spec": spec });
    assert_eq!(
        super::of_template(&template, &Path::root("template")).len(),
        1
    );
}
