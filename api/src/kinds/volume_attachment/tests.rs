//! Validation, updates and cells of a VolumeAttachment.

use crate::kinds::testing::{check_errors, check_row, update_errors};
use crate::resource::Part;
use expect_test::expect;
use serde_json::{Value, json};

fn attachment() -> Value {
    json!({
        "metadata": { "name": "a" },
        "spec": { "attacher": "d", "nodeName": "n", "source": { "persistentVolumeName": "pv" } },
    })
}

#[test]
fn printed() {
    check_row(
        "volumeattachments",
        attachment(),
        60,
        expect![[r#"
        Name: a
        Attacher: d
        PV: pv
        Node: n
        Attached: false (number)
        Age: <unknown>"#]],
    );
}

#[test]
fn what_is_attached_is_named_once() {
    let mut bad = attachment();
    bad["spec"] = json!({ "attacher": "", "nodeName": "A", "source": {} });
    check_errors(
        "volumeattachments",
        bad.clone(),
        expect![[r#"
        spec.attacher: Required value
        spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName
        spec.nodeName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#]],
    );
    bad["spec"] = json!({ "attacher": "d", "nodeName": "n", "source": { "inlineVolumeSpec": {
        "capacity": { "storage": "1" }, "hostPath": { "path": "/" }, "volumeMode": "Block",
        "storageClassName": "a", "nodeAffinity": {}, "accessModes": ["ReadWriteOnce"],
    } } });
    check_errors(
        "volumeattachments",
        bad,
        expect![[r#"
        spec.source.inlineVolumeSpec.capacity: Forbidden: may not be specified in the context of inline volumes
        spec.source.inlineVolumeSpec.csi: Required value: has to be specified in the context of inline volumes
        spec.source.inlineVolumeSpec.nodeAffinity: Forbidden: may not be specified in the context of inline volumes
        spec.source.inlineVolumeSpec.storageClassName: Forbidden: may not be specified in the context of inline volumes
        spec.source.inlineVolumeSpec.volumeMode: Forbidden: may not specify volumeMode other than Filesystem in the context of inline volumes"#]],
    );
}

#[test]
fn the_wish_stays_and_the_status_is_bounded() {
    let mut new = attachment();
    new["spec"]["nodeName"] = "m".into();
    update_errors(
        "volumeattachments",
        new,
        attachment(),
        Part::Main,
        expect![[
            r#"spec: Invalid value: {"Attacher":"d","Source":{"PersistentVolumeName":"pv","InlineVolumeSpec":null},"NodeName":"m"}: field is immutable"#
        ]],
    );
    let mut new = attachment();
    let message = "m".repeat(1025);
    new["status"] = json!({ "attachError": { "message": message, "errorCode": -1 } });
    update_errors(
        "volumeattachments",
        new,
        attachment(),
        Part::Status,
        expect![[r#"
        status.attachError.message: Too long: may not be more than 262144 bytes
        status.attachError.errorCode: Invalid value: -1: must be between 0 and 2147483647, inclusive"#]],
    );
}
