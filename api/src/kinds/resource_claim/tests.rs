//! Defaults, validation, status and state of a ResourceClaim.

use crate::kinds::testing::resource;
use crate::kinds::testing::{check_errors, check_row, check_spec, defaulted, update_errors};
use crate::resource::Part;
use expect_test::expect;
use serde_json::{Value, json};

fn claim() -> Value {
    json!({
        "metadata": { "name": "c", "namespace": "n" },
        "spec": { "devices": { "requests": [
            { "name": "r", "exactly": { "deviceClassName": "gpu" } },
        ] } },
    })
}

fn allocated() -> Value {
    let device = json!({ "request": "r", "driver": "d", "pool": "p", "device": "a" });
    json!({ "allocation": { "devices": { "results": [device] } } })
}

#[test]
fn defaults() {
    check_spec(
        "resourceclaims",
        claim(),
        expect![[
            r#"devices: {"requests":[{"exactly":{"allocationMode":"ExactCount","count":1,"deviceClassName":"gpu"},"name":"r"}]}"#
        ]],
    );
}

#[test]
fn wrong_in_many_ways() {
    let mut bad = claim();
    bad["spec"]["devices"] = json!({
        "requests": [
            { "name": "r", "exactly": { "deviceClassName": "", "count": -1 } },
            { "name": "r" },
            { "name": "A", "firstAvailable": [
                { "name": "s", "deviceClassName": "gpu", "allocationMode": "All", "count": 1,
                  "tolerations": [{ "operator": "Exists", "value": "x", "effect": "Never" }] },
                { "name": "s", "deviceClassName": "gpu", "allocationMode": "Some" },
            ] },
        ],
        "constraints": [{ "requests": ["x", "A/s"], "matchAttribute": "model" }, {}],
        "config": [{ "requests": ["r", "r"] }],
    });
    check_errors(
        "resourceclaims",
        bad,
        expect![[r#"
        spec.devices.requests[0].exactly.deviceClassName: Required value
        spec.devices.requests[0].exactly.count: Invalid value: -1: must be greater than zero
        spec.devices.requests[1]: Required value: exactly one of `exactly` or `firstAvailable` is required
        spec.devices.requests[2].name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
        spec.devices.requests[2].firstAvailable[0].count: Invalid value: 1: must not be specified when allocationMode is 'All'
        spec.devices.requests[2].firstAvailable[0].tolerations[0].value: Invalid value: "x": must be empty for operator `Exists`
        spec.devices.requests[2].firstAvailable[0].tolerations[0].effect: Unsupported value: "Never": supported values: "NoExecute", "NoSchedule", "None"
        spec.devices.requests[2].firstAvailable[1].allocationMode: Unsupported value: "Some": supported values: "All", "ExactCount"
        spec.devices.requests[2].firstAvailable[1]: Duplicate value: "s"
        spec.devices.requests[1]: Duplicate value: "r"
        spec.devices.constraints[0].requests[0]: Invalid value: "x": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'
        spec.devices.constraints[0].requests[1]: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
        spec.devices.constraints[0].matchAttribute: Invalid value: "model": a fully qualified name must be a domain and a name separated by a slash
        spec.devices.constraints[1]: Required value: exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set
        spec.devices.config[0].requests[1]: Duplicate value: "r"
        spec.devices.config[0].opaque: Required value"#]],
    );
}

#[test]
fn the_wish_stays() {
    let mut new = claim();
    new["spec"]["devices"]["requests"][0]["name"] = "other".into();
    update_errors(
        "resourceclaims",
        new,
        claim(),
        Part::Main,
        expect![[
            r#"spec: Invalid value: {"Devices":{"Requests":[{"Name":"other","Exactly":{"DeviceClassName":"gpu","Selectors":null,"AllocationMode":"ExactCount","Count":1,"AdminAccess":null,"Tolerations":null,"Capacity":null},"FirstAvailable":null}],"Constraints":null,"Config":null}}: field is immutable"#
        ]],
    );
}

#[test]
fn a_status_names_what_was_asked_for() {
    let mut new = claim();
    new["status"] = allocated();
    new["status"]["reservedFor"] = json!([{ "resource": "pods", "name": "p", "uid": "u" }]);
    update_errors(
        "resourceclaims",
        new.clone(),
        claim(),
        Part::Status,
        expect![],
    );
    check_row(
        "resourceclaims",
        new.clone(),
        0,
        expect![[r#"
        Name: c
        State: allocated,reserved
        Age: <unknown>"#]],
    );
    new["status"]["allocation"]["devices"]["results"][0]["request"] = "x".into();
    new["status"]["allocation"]["devices"]["results"][0]["shareID"] = "x".into();
    new["status"]["devices"] = json!([{
        "driver": "d", "pool": "p", "device": "b", "networkData": { "ips": ["1.2.3.4"] },
    }]);
    update_errors(
        "resourceclaims",
        new,
        claim(),
        Part::Status,
        expect![[r#"
        status.devices[0]: Invalid value: "d/p/b": must be an allocated device in the claim
        status.devices[0].networkData.ips[0]: Invalid value: "1.2.3.4": must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)
        status.allocation.devices.results[0].request: Invalid value: "x": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'
        status.allocation.devices.results[0].shareID: Invalid value: "x": error validating uid: invalid UUID length: 1"#]],
    );
    let mut unallocated = claim();
    unallocated["status"] = json!({ "reservedFor": [{ "name": "p" }] });
    update_errors(
        "resourceclaims",
        unallocated,
        claim(),
        Part::Status,
        expect![[r#"
        status.reservedFor[0].resource: Required value
        status.reservedFor[0].uid: Required value
        status.reservedFor: Forbidden: may not be specified when `allocated` is not set"#]],
    );
}

#[test]
fn what_is_given_back_is_not_spoken_of() {
    let mut old = claim();
    old["status"] = allocated();
    let mut new = claim();
    new["status"] = json!({ "devices": [{ "driver": "d", "pool": "p", "device": "a" }] });
    let [mut new, old] = [new, old].map(|value| defaulted("resourceclaims", value));
    let rules = resource("resourceclaims").rules;
    rules.prepare_update(&mut new, &old, Part::Status);
    assert_eq!(new.get(&["status", "devices"]), None);
}
