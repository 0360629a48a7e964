//! Validation, updates and cells of a CSIStorageCapacity.

use crate::kinds::testing::{check_errors, check_row, defaulted, update_errors};
use crate::resource::Part;
use expect_test::expect;
use serde_json::{Value, json};

fn capacity() -> Value {
    json!({
        "metadata": { "name": "a", "namespace": "b" },
        "storageClassName": "fast", "capacity": "1024Mi",
        "nodeTopology": { "matchLabels": { "zone": "a" } },
    })
}

#[test]
fn printed_plainly_and_canonical() {
    let canonical = defaulted("csistoragecapacities", capacity());
    assert_eq!(canonical.str(&["capacity"]), "1Gi");
    check_row(
        "csistoragecapacities",
        capacity(),
        60,
        expect![[r#"
        Name: a
        Created At: "#]],
    );
}

#[test]
fn wrong_and_changed() {
    let mut bad = capacity();
    bad["storageClassName"] = "A".into();
    bad["capacity"] = "-1".into();
    bad["nodeTopology"] = json!({ "matchExpressions": [{ "key": "k", "operator": "Has" }] });
    check_errors(
        "csistoragecapacities",
        bad.clone(),
        expect![[r#"
        nodeTopology.matchExpressions[0].operator: Invalid value: "Has": not a valid selector operator
        storageClassName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        capacity: Invalid value: "-1": must be greater than or equal to 0"#]],
    );
    bad["storageClassName"] = "b".into();
    bad["capacity"] = "1".into();
    bad["nodeTopology"] = json!({ "matchLabels": { "zone": "b" } });
    update_errors(
        "csistoragecapacities",
        bad,
        capacity(),
        Part::Main,
        expect![[r#"
        nodeTopology: Invalid value: {"matchLabels":{"zone":"b"}}: field is immutable
        storageClassName: Invalid value: "b": field is immutable"#]],
    );
}
