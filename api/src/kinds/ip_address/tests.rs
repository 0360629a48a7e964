//! Names, parents and printed cells of an IPAddress.

use crate::kinds::testing::{check_errors, object, resource, update_errors};
use crate::meta_validate::validate_metadata;
use crate::resource::Part;
use expect_test::expect;
use serde_json::{Value, json};

fn address(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "IPAddress", "metadata": { "name": name },
        "spec": spec,
    })
}

#[test]
fn the_name_is_an_address_in_canonical_form() {
    let row = resource("ipaddresses");
    let wrong = |name: &str| {
        let errors = validate_metadata(&object(address(name, json!({}))), row);
        errors.first().map(|error| error.detail.clone())
    };
    assert_eq!(wrong("10.0.0.1"), None);
    assert_eq!(wrong("fe80::1"), None);
    assert_eq!(
        wrong("FE80::1").unwrap(),
        "must be in canonical form (\"fe80::1\")"
    );
    assert_eq!(wrong("010.0.0.1").unwrap(), "must not have leading 0s");
}

#[test]
fn the_parent_is_named_and_stays() {
    check_errors(
        "ipaddresses",
        address("10.0.0.1", json!({})),
        expect!["spec.parentRef: Required value"],
    );
    let bad = json!({ "parentRef": { "group": "A_", "name": "c/d", "namespace": "%" } });
    check_errors(
        "ipaddresses",
        address("10.0.0.1", bad),
        expect![[r#"
        spec.parentRef.group: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        spec.parentRef.resource: Required value
        spec.parentRef.name: Invalid value: "c/d": may not contain '/'
        spec.parentRef.namespace: Invalid value: "%": may not contain '%'"#]],
    );
    let [old, new] = ["a", "b"].map(|name| {
        let parent = json!({ "resource": "services", "namespace": "default", "name": name });
        address("10.0.0.1", json!({ "parentRef": parent }))
    });
    let cells = resource("ipaddresses").rules.cells(&object(old.clone()), 0);
    assert_eq!(cells[1], "services/default/a");
    update_errors(
        "ipaddresses",
        new,
        old,
        Part::Main,
        expect![[
            r#"spec.parentRef: Invalid value: {"Group":"","Resource":"services","Namespace":"default","Name":"b"}: field is immutable"#
        ]],
    );
}
