//! Sources that are reached over a network.

use super::{Owner, source};
use crate::field::Path;
use expect_test::{Expect, expect};
use serde_json::{Value, json};

fn check(kind: &str, value: Value, owner: Owner<'_>, expected: Expect) {
    let errors = source(kind, &value, owner, &Path::root(kind));
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn iscsi_names() {
    let names = [
        "iqn.2001-04.com.example:disk",
        "eui.0123456789abcdef",
        "iqn.2001:x",
        "disk",
    ];
    for (name, expected) in names.into_iter().zip([expect![], expect![], expect![[r#"iscsi.iqn: Invalid value: "iqn.2001:x": must be valid format"#]], expect![[r#"iscsi.iqn: Invalid value: "disk": must be valid format starting with iqn, eui, or naa"#]]]) {
        let value = json!({ "targetPortal": "a", "iqn": name });
        check("iscsi", value, Owner::Pod, expected);
    }
    let chap = json!({ "iqn": "disk", "lun": 256, "chapAuthSession": true });
    check(
        "iscsi",
        chap,
        Owner::Volume("pv"),
        expect![[r#"
        iscsi.targetPortal: Required value
        iscsi.iqn: Invalid value: "disk": must be valid format
        iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive
        iscsi.secretRef: Required value"#]],
    );
}

#[test]
fn others() {
    let azure = json!({ "diskName": "a", "diskURI": "x", "kind": "Managed", "cachingMode": "No" });
    check(
        "azureDisk",
        azure,
        Owner::Pod,
        expect![[r#"
        azureDisk.cachingMode: Unsupported value: "No": supported values: "None", "ReadOnly", "ReadWrite"
        azureDisk.diskURI: Unsupported value: "x": supported values: "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}""#]],
    );
    let quobyte = json!({ "registry": "a:1,b", "volume": "" });
    check(
        "quobyte",
        quobyte,
        Owner::Pod,
        expect![[r#"
        quobyte.registry: Invalid value: "a:1,b": must be a host:port pair or multiple pairs separated by commas
        quobyte.volume: Required value"#]],
    );
    let flex = json!({ "driver": "d", "options": { "a.k8s.io/x": "y" } });
    check(
        "flexVolume",
        flex,
        Owner::Pod,
        expect![[
            r#"flexVolume.options[a.k8s.io/x]: Invalid value: "a.k8s.io/x": kubernetes.io and k8s.io namespaces are reserved"#
        ]],
    );
    let cinder = json!({ "volumeID": "a", "secretRef": {} });
    check(
        "cinder",
        cinder,
        Owner::Volume("pv"),
        expect![[r#"
        cinder.secretRef.name: Required value
        cinder.secretRef.namespace: Required value"#]],
    );
    check(
        "gcePersistentDisk",
        json!({ "pdName": "a", "partition": 256 }),
        Owner::Pod,
        expect![
            "gcePersistentDisk.partition: Invalid value: 256: must be between 1 and 255, inclusive"
        ],
    );
    check(
        "storageos",
        json!({ "volumeName": "A" }),
        Owner::Pod,
        expect![[
            r#"storageos.volumeName: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"#
        ]],
    );
}
