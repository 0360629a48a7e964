//! A ResourceClaimTemplate is looked at as the claims that are made of it, and never changes.

use crate::kinds::testing::{check_errors, update_errors};
use crate::resource::Part;
use expect_test::expect;
use serde_json::{Value, json};

fn template(name: &str) -> Value {
    let request = json!({ "name": name, "exactly": { "deviceClassName": "gpu" } });
    json!({
        "metadata": { "name": "t", "namespace": "n" },
        "spec": {
            "metadata": { "labels": { "a": "b" } }, "spec": { "devices": { "requests": [request] } },
        },
    })
}

#[test]
fn looked_at_and_kept() {
    let mut bad = template("A");
    bad["spec"]["metadata"]["name"] = "x".into();
    check_errors(
        "resourceclaimtemplates",
        bad,
        expect![[r#"
        spec.metadata.name: Forbidden: cannot be set
        spec.spec.devices.requests[0].name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"#]],
    );
    update_errors(
        "resourceclaimtemplates",
        template("b"),
        template("a"),
        Part::Main,
        expect![[
            r#"spec: Invalid value: {"labels":{"a":"b"},"Spec":{"Devices":{"Requests":[{"Name":"b","Exactly":{"DeviceClassName":"gpu","Selectors":null,"AllocationMode":"ExactCount","Count":1,"AdminAccess":null,"Tolerations":null,"Capacity":null},"FirstAvailable":null}],"Constraints":null,"Config":null}}}: field is immutable"#
        ]],
    );
}
