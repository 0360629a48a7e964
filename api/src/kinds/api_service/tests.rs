//! Defaults, validation and printed columns of API services, and those of our own groups.

use super::*;
use crate::kinds::testing::{check_errors, check_row, check_spec, object, update_errors};
use expect_test::expect;

const PLURAL: &str = "apiservices";

fn service(more: Value) -> Value {
    let mut spec = json!({
        "group": "acme.io", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 15,
        "service": { "name": "s", "namespace": "n" },
    });
    for (field, value) in more.as_object().unwrap() {
        spec[field] = value.clone();
    }
    json!({ "kind": "APIService", "metadata": { "name": "v1.acme.io" }, "spec": spec })
}

#[test]
fn each_group_version_has_its_own() {
    let all: Vec<Object> = local().collect();
    let versions: usize = catalogue::groups().map(|group| group.versions.len()).sum();
    // Of itself a registry has none.
    assert_eq!(all.len(), versions - 1);
    for one in all {
        assert_eq!(ROW.rules.validate_create(&one), []);
    }
}

#[test]
fn what_is_local_is_there_at_once() {
    let mut one = local().next().unwrap();
    let by = Requester::default();
    ROW.rules.prepare_create(&mut one);
    ROW.rules
        .stamp(&mut one, None, Part::Main, &by, "2026-06-01T00:00:00Z");
    expect![[r#"{"conditions":[{"lastTransitionTime":"2026-06-01T00:00:00Z","message":"Local APIServices are always available","reason":"Local","status":"True","type":"Available"}]}"#]].assert_eq(&one.get(&["status"]).unwrap().to_string());
    // Also what another server had before.
    let mut others = one.clone();
    others.set(
        &["spec", "service"],
        json!({ "namespace": "n", "name": "s" }),
    );
    others.set(
        &["status", "conditions"],
        json!([{ "type": "Available", "status": "False" }]),
    );
    let mut taken_back = others.clone();
    taken_back.remove(&["spec", "service"]);
    let stamp = |object: &mut Object, old: &Object| {
        ROW.rules
            .stamp(object, Some(old), Part::Main, &by, "2026-06-01T00:00:00Z");
    };
    stamp(&mut taken_back, &others);
    assert_eq!(taken_back.get(&["status"]), one.get(&["status"]));
    // And it is not stamped at each change.
    let mut changed = one.clone();
    changed.set(&["status", "conditions"], json!([]));
    stamp(&mut changed, &one);
    assert_eq!(changed.get(&["status", "conditions"]), Some(&json!([])));
    check_row(
        PLURAL,
        one.into_value(),
        0,
        expect![[r#"
        Name: v1.
        Service: Local
        Available: True
        Age: <unknown>"#]],
    );
}

#[test]
fn printed() {
    check_row(
        PLURAL,
        service(json!({})),
        0,
        expect![[r#"
        Name: v1.acme.io
        Service: n/s
        Available: Unknown
        Age: <unknown>"#]],
    );
    let mut gone = object(service(json!({})));
    let condition = json!({ "type": "Available", "status": "False", "reason": "Gone" });
    gone.set(&["status", "conditions"], json!([condition]));
    assert_eq!(ROW.rules.cells(&gone, 0)[2], "False (Gone)");
}

#[test]
fn defaulted() {
    check_spec(
        PLURAL,
        service(json!({})),
        expect![[r#"
        group: "acme.io"
        groupPriorityMinimum: 1000
        service: {"name":"s","namespace":"n","port":443}
        version: "v1"
        versionPriority: 15"#]],
    );
}

#[test]
fn validated() {
    check_errors(PLURAL, service(json!({})), expect![[""]]);
    check_errors(
        PLURAL,
        json!({ "metadata": { "name": "x" } }),
        expect![[r#"
            metadata.name: Invalid value: "x": must be `spec.version+"."+spec.group`: "."
            spec.group: Required value: only v1 may have an empty group and it better be legacy kube
            spec.version: Invalid value: "": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')
            spec.groupPriorityMinimum: Invalid value: 0: must be positive and less than 20000
            spec.versionPriority: Invalid value: 0: must be positive and less than 1000"#]],
    );
    check_errors(
        PLURAL,
        service(json!({
            "group": "A", "groupPriorityMinimum": 20_001, "versionPriority": 1001,
            "service": { "port": 0 }, "caBundle": "YQ==", "insecureSkipTLSVerify": true,
        })),
        expect![[r#"
            metadata.name: Invalid value: "v1.acme.io": must be `spec.version+"."+spec.group`: "v1.A"
            spec.group: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
            spec.groupPriorityMinimum: Invalid value: 20001: must be positive and less than 20000
            spec.versionPriority: Invalid value: 1001: must be positive and less than 1000
            spec.service.namespace: Required value
            spec.service.name: Required value
            spec.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive
            spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present"#]],
    );
    check_errors(
        PLURAL,
        service(json!({ "service": null, "caBundle": "YQ==", "insecureSkipTLSVerify": true })),
        expect![[r#"
            spec.caBundle: Invalid value: "1 bytes": local APIServices may not have a caBundle
            spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have insecureSkipTLSVerify"#]],
    );
    let mut new = service(json!({}));
    new["status"] = json!({ "conditions": [{ "type": "Available", "status": "Maybe" }] });
    update_errors(
        PLURAL,
        new,
        service(json!({})),
        Part::Status,
        expect![[
            r#"status.conditions[0].status: Unsupported value: "Maybe": supported values: "True", "False", "Unknown""#
        ]],
    );
}
