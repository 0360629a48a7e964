//! Data sources, validation, updates, status and cells of a PersistentVolumeClaim.

use crate::kinds::testing::{check_errors, check_row, defaulted, resource, update_errors};
use crate::resource::Part;
use expect_test::expect;
use serde_json::{Value, json};

fn claim() -> Value {
    json!({
        "metadata": {
            "name": "c", "namespace": "n", "creationTimestamp": "1970-01-01T00:00:00Z",
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "fast",
            "resources": { "requests": { "storage": "2Gi" } }, "volumeName": "pv",
        },
        "status": {
            "phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1Gi" },
        },
    })
}

#[test]
fn printed() {
    check_row(
        "persistentvolumeclaims",
        claim(),
        60,
        expect![[r#"
        Name: c
        Status: Bound
        Volume: pv
        Capacity: 1Gi
        Access Modes: RWO
        StorageClass: fast
        VolumeAttributesClass: <unset>
        Age: 60s
        VolumeMode: Filesystem"#]],
    );
}

#[test]
fn wrong_in_many_ways() {
    let mut bad = claim();
    bad["spec"] = json!({
        "accessModes": [], "resources": { "requests": { "storage": "0" } },
        "storageClassName": "A", "volumeMode": "Tape", "volumeAttributesClassName": "B",
        "dataSource": { "kind": "PersistentVolumeClaim", "name": "a" },
        "dataSourceRef": { "apiGroup": "A", "kind": "", "name": "" },
    });
    check_errors(
        "persistentvolumeclaims",
        bad,
        expect![[r#"
        spec.accessModes: Required value: at least 1 access mode is required
        spec.resources[storage]: Invalid value: "0": must be greater than zero
        spec.storageClassName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        spec.volumeMode: Unsupported value: "Tape": supported values: "Block", "Filesystem"
        spec.dataSourceRef.name: Required value
        spec.dataSourceRef.kind: Required value
        spec.dataSourceRef.apiGroup: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        spec: Invalid value: {}: must match dataSourceRef
        spec.volumeAttributesClassName: Invalid value: "B": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#]],
    );
}

#[test]
fn data_sources_have_two_names() {
    let source = |spec: Value| {
        let mut claim = defaulted("persistentvolumeclaims", json!({ "spec": spec }));
        resource("persistentvolumeclaims")
            .rules
            .prepare_create(&mut claim);
        ["dataSource", "dataSourceRef"].map(|field| claim.get(&["spec", field]).is_some())
    };
    let snapshot = json!({
        "apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s",
    });
    assert_eq!(source(json!({ "dataSource": snapshot })), [true, true]);
    let other = json!({ "apiGroup": "example.com", "kind": "Disk", "name": "d" });
    assert_eq!(source(json!({ "dataSource": other })), [false, false]);
    assert_eq!(source(json!({ "dataSourceRef": other })), [true, true]);
    let elsewhere = json!({ "kind": "PersistentVolumeClaim", "name": "d", "namespace": "x" });
    assert_eq!(
        source(json!({ "dataSourceRef": elsewhere })),
        [false, false]
    );
}

#[test]
fn a_bound_claim_grows_and_shrinks_to_what_it_has() {
    let sized = |size: &str| {
        let mut new = claim();
        new["spec"]["resources"]["requests"]["storage"] = size.into();
        new
    };
    for good in ["3Gi", "1500Mi"] {
        update_errors(
            "persistentvolumeclaims",
            sized(good),
            claim(),
            Part::Main,
            expect![],
        );
    }
    update_errors(
        "persistentvolumeclaims",
        sized("1Gi"),
        claim(),
        Part::Main,
        expect![
            "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"
        ],
    );
    let mut other = claim();
    other["spec"]["storageClassName"] = "slow".into();
    update_errors(
        "persistentvolumeclaims",
        other,
        claim(),
        Part::Main,
        expect![[r#"
        spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims
        - storageClassName: "fast"
        + storageClassName: "slow"
    "#]],
    );
}

#[test]
fn a_status_is_looked_at() {
    let mut new = claim();
    new["status"] = json!({
        "phase": "Bound", "capacity": { "storage": "-1" },
        "allocatedResources": { "cpu": "1", "storage": "1" },
        "allocatedResourceStatuses": { "storage": "Never" },
    });
    update_errors(
        "persistentvolumeclaims",
        new,
        claim(),
        Part::Status,
        expect![[r#"
        status.capacity[storage]: Invalid value: -1: must be a valid resource quantity
        status.allocatedResourceStatuses: Unsupported value: "storage": supported values: "ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress", "NodeResizeInfeasible", "NodeResizePending"
        status.allocatedResources: Unsupported value: "cpu": supported values: "storage""#]],
    );
}
