//! What is dropped, and from where.

use super::*;
use serde_json::json;

#[test]
fn what_gates_keep_out_is_dropped_from_pods_and_templates() {
    let spec = || {
        json!({
            "initContainers": [{ "lifecycle": { "stopSignal": "SIGTERM", "preStop": {} } }],
            "containers": [{ "lifecycle": { "stopSignal": "SIGTERM" } }, { "lifecycle": {} }],
            "volumes": [{}, { "projected": { "sources": [
                { "clusterTrustBundle": {} }, { "podCertificate": {} }, { "secret": {} },
            ] } }],
        })
    };
    let left = json!({
        "initContainers": [{ "lifecycle": { "preStop": {} } }],
        "containers": [{}, { "lifecycle": {} }],
        "volumes": [{}, { "projected": { "sources": [{}, {}, { "secret": {} }] } }],
    });
    let template = || json!({ "spec": spec() });
    for (group, plural, object, path) in [
        ("", "pods", json!({ "spec": spec() }), "/spec"),
        (
            "",
            "podtemplates",
            json!({ "template": template() }),
            "/template/spec",
        ),
        (
            "apps",
            "deployments",
            json!({ "spec": { "template": template() } }),
            "/spec/template/spec",
        ),
        (
            "batch",
            "cronjobs",
            json!({ "spec": { "jobTemplate": { "spec": { "template": template() } } } }),
            "/spec/jobTemplate/spec/template/spec",
        ),
    ] {
        let mut object = Object::from_value(object).unwrap();
        drop(group, plural, &mut object);
        assert_eq!(object.into_value().pointer(path), Some(&left), "{plural}");
    }
    let mut other = Object::from_value(json!({ "spec": spec() })).unwrap();
    drop("", "services", &mut other);
    assert_eq!(other.into_value()["spec"], spec());
}
