//! Defaults, validation, updates, warnings and cells of a CSIDriver.

use crate::kinds::testing::{check_errors, check_row, check_spec, object, resource, update_errors};
use crate::resource::Part;
use expect_test::expect;
use serde_json::{Value, json};

fn driver() -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver",
        "metadata": { "name": "disk.example.com", "creationTimestamp": "1970-01-01T00:00:00Z" },
        "spec": { "tokenRequests": [{ "audience": "a", "expirationSeconds": 3600 }] },
    })
}

#[test]
fn defaults() {
    check_spec(
        "csidrivers",
        driver(),
        expect![[r#"
        attachRequired: true
        fsGroupPolicy: "ReadWriteOnceWithFSType"
        podInfoOnMount: false
        requiresRepublish: false
        seLinuxMount: false
        storageCapacity: false
        tokenRequests: [{"audience":"a","expirationSeconds":3600}]
        volumeLifecycleModes: ["Persistent"]"#]],
    );
}

#[test]
fn printed() {
    check_row(
        "csidrivers",
        driver(),
        60,
        expect![[r#"
        Name: disk.example.com
        AttachRequired: true (number)
        PodInfoOnMount: false (number)
        StorageCapacity: false (number)
        TokenRequests: a
        RequiresRepublish: false (number)
        Modes: Persistent
        Age: 60s"#]],
    );
}

#[test]
fn wrong_in_many_ways() {
    let mut bad = driver();
    bad["spec"] = json!({
        "fsGroupPolicy": "Maybe", "volumeLifecycleModes": ["Sometimes"],
        "nodeAllocatableUpdatePeriodSeconds": 9,
        "tokenRequests": [
            { "audience": "a", "expirationSeconds": 599 }, { "audience": "a" },
            { "audience": "b", "expirationSeconds": 4_294_967_297_i64 },
        ],
    });
    check_errors(
        "csidrivers",
        bad,
        expect![[r#"
        spec.fsGroupPolicy: Unsupported value: "Maybe": supported values: "File", "None", "ReadWriteOnceWithFSType"
        spec.tokenRequests[0].expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes
        spec.tokenRequests[1].audience: Duplicate value: "a"
        spec.tokenRequests[2].expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds
        spec.volumeLifecycleModes: Unsupported value: "Sometimes": supported values: "Persistent", "Ephemeral"
        spec.nodeAllocatableUpdatePeriodSeconds: Invalid value: 9: must be greater than or equal to 10 seconds"#]],
    );
    let secrets = json!({ "metadata": { "name": "a" }, "spec": {
        "serviceAccountTokenInSecrets": true,
    } });
    check_errors(
        "csidrivers",
        secrets,
        expect![
            "spec.serviceAccountTokenInSecrets: Invalid value: true: serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        ],
    );
}

#[test]
fn how_volumes_are_attached_stays() {
    let mut new = driver();
    new["spec"]["attachRequired"] = false.into();
    new["spec"]["volumeLifecycleModes"] = json!(["Ephemeral"]);
    update_errors(
        "csidrivers",
        new,
        driver(),
        Part::Main,
        expect![[r#"
        spec.attachedRequired: Invalid value: false: field is immutable
        spec.volumeLifecycleModes: Invalid value: ["Ephemeral"]: field is immutable"#]],
    );
}

#[test]
fn tokens_are_warned_of_when_they_are_new() {
    let rules = resource("csidrivers").rules;
    assert_eq!(rules.warnings(&object(driver())).len(), 1);
    let same = object(driver());
    assert!(rules.warnings_on_update(&same, &same).is_empty());
    assert_eq!(rules.first_generation(), 0);
}
