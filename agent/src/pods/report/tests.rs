//! What a status patch carries.

use super::body;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use serde_json::json;

#[test]
fn carries_only_what_changed() {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "p", "uid": "u"},
        "status": {
            "phase": "Pending",
            "qosClass": "BestEffort",
            "conditions": [
                {"type": "Mine", "status": "True"},
                {"type": "Ready", "status": "False"},
            ],
        },
    }))
    .unwrap();
    let mut status = pod.status.clone().unwrap();
    assert_eq!(body(&pod, &status), None);
    status.phase = Some("Running".into());
    status.conditions.as_mut().unwrap()[1].status = "True".into();
    assert_eq!(
        body(&pod, &status).unwrap(),
        json!({
            "metadata": {"uid": "u"},
            "status": {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        })
    );
    let bare = Pod::default();
    assert!(body(&bare, &PodStatus::default()).is_none());
}

#[test]
fn a_condition_that_turned_loses_its_reason_and_message() {
    let ready = |condition: serde_json::Value| -> Pod {
        let status = json!({ "conditions": [condition] });
        serde_json::from_value(json!({ "metadata": {"uid": "u"}, "status": status })).unwrap()
    };
    let pod = ready(json!({
        "type": "Ready",
        "status": "False",
        "reason": "ContainersNotReady",
        "message": "containers with unready status: [a]",
    }));
    let turned = ready(json!({ "type": "Ready", "status": "True" }));
    assert_eq!(
        body(&pod, &turned.status.unwrap()).unwrap()["status"]["conditions"],
        json!([{ "type": "Ready", "status": "True", "reason": null, "message": null }])
    );
}

#[test]
fn another_address_takes_the_place_of_the_former() {
    let at = |ip: &str| -> Pod {
        let status = json!({ "hostIP": "192.0.2.1", "podIP": ip, "podIPs": [{ "ip": ip }] });
        serde_json::from_value(json!({ "metadata": {"uid": "u"}, "status": status })).unwrap()
    };
    let status = at("10.0.0.3").status.unwrap();
    assert_eq!(
        body(&at("10.0.0.2"), &status).unwrap()["status"],
        json!({
            "podIP": "10.0.0.3",
            "podIPs": [{ "ip": "10.0.0.3" }, { "$patch": "replace" }],
        })
    );
    let first = body(&Pod::default(), &status).unwrap();
    assert_eq!(first["status"]["podIPs"], json!([{ "ip": "10.0.0.3" }]));
}

#[test]
fn conditions_of_resizes_go_when_they_no_longer_hold() {
    let with = |conditions: serde_json::Value| -> Pod {
        let status = json!({ "conditions": conditions });
        serde_json::from_value(json!({ "metadata": {"uid": "u"}, "status": status })).unwrap()
    };
    let pod = with(json!([
        {"type": "Mine", "status": "True"},
        {"type": "PodResizePending", "status": "True", "reason": "Deferred"},
    ]));
    let next = with(json!([{"type": "PodResizeInProgress", "status": "True"}]));
    assert_eq!(
        body(&pod, &next.status.unwrap()).unwrap()["status"]["conditions"],
        json!([
            {"type": "PodResizeInProgress", "status": "True"},
            {"type": "PodResizePending", "$patch": "delete"},
        ])
    );
}
