//! A volume is mounted once it is attached, and not before the controller knows that it is used.

use super::{check, is_attached};
use k8s_openapi::api::core::v1::NodeStatus;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use serde_json::{Value, json};

#[test]
fn a_volume_counts_once_both_sides_have_noted_it() {
    let status = |in_use: &[&str], attached: &[&str]| -> NodeStatus {
        let attached = attached.iter();
        let attached: Vec<Value> = attached
            .map(|name| json!({"name": name, "devicePath": ""}))
            .collect();
        let status = json!({"volumesInUse": in_use, "volumesAttached": attached});
        serde_json::from_value(status).unwrap()
    };
    assert!(!is_attached(&status(&["v"], &[]), "v"));
    assert!(!is_attached(&status(&[], &["v"]), "v"));
    assert!(!is_attached(&status(&["w"], &["v"]), "v"));
    assert!(is_attached(&status(&["w", "v"], &["v"]), "v"));
}

#[test]
fn an_attachment_that_is_none_says_why() {
    let of = |meta: Value, status: Value| {
        let spec = json!({"attacher": "d", "nodeName": "n", "source": {}});
        let object = json!({"metadata": meta, "spec": spec, "status": status});
        let object: VolumeAttachment = serde_json::from_value(object).unwrap();
        check(&object, "h", "csi-1")
    };
    assert_eq!(of(json!({}), json!({"attached": true})), Ok(()));
    assert_eq!(
        of(json!({}), json!({"attached": false})).unwrap_err(),
        "volume h is not attached for volume attachment csi-1"
    );
    let error = json!({"attached": false, "attachError": {"message": "no"}});
    assert_eq!(of(json!({}), error).unwrap_err(), "no");
    let going = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
    assert_eq!(
        of(going, json!({"attached": true})).unwrap_err(),
        "volume attachment is being deleted"
    );
}
