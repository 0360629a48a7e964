//! Defaults, validation, updates and cells of a StorageClass.

use crate::kinds::testing::{check_errors, check_row, resource, update_errors};
use crate::object::Object;
use crate::resource::Part;
use expect_test::expect;
use serde_json::{Value, json};

fn class() -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {
            "name": "fast", "creationTimestamp": "1970-01-01T00:00:00Z",
            "annotations": { "storageclass.kubernetes.io/is-default-class": "true" },
        },
        "provisioner": "example.com/disk",
        "allowedTopologies": [
            { "matchLabelExpressions": [{ "key": "zone", "values": ["a", "b"] }] },
        ],
    })
}

#[test]
fn printed() {
    check_row(
        "storageclasses",
        class(),
        60,
        expect![[r#"
        Name: fast (default)
        Provisioner: example.com/disk
        ReclaimPolicy: Delete
        VolumeBindingMode: Immediate
        AllowVolumeExpansion: false (number)
        Age: 60s"#]],
    );
}

#[test]
fn wrong_in_many_ways() {
    let mut bad = class();
    bad["provisioner"] = "a/b/c".into();
    bad["parameters"] = json!({ "": "x" });
    bad["reclaimPolicy"] = "Recycle".into();
    bad["volumeBindingMode"] = "Later".into();
    bad["allowedTopologies"] = json!([
        { "matchLabelExpressions": [{ "key": "a", "values": ["x", "x"] }] },
        { "matchLabelExpressions": [{ "key": "a", "values": ["x"] }, { "key": "a" }] },
        { "matchLabelExpressions": [{ "key": "a", "values": ["x"] }] },
    ]);
    check_errors(
        "storageclasses",
        bad,
        expect![[r#"
        provisioner: Invalid value: "a/b/c": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')
        parameters: Invalid value: "": field can not be empty.
        reclaimPolicy: Unsupported value: "Recycle": supported values: "Delete", "Retain"
        volumeBindingMode: Unsupported value: "Later": supported values: "Immediate", "WaitForFirstConsumer"
        allowedTopologies[0].matchLabelExpressions[0].values[1]: Duplicate value: "x"
        allowedTopologies[1].matchLabelExpressions[1].values: Required value
        allowedTopologies[1].matchLabelExpressions[1].key: Duplicate value: "a"
        allowedTopologies[2].matchLabelExpressions: Duplicate value: """#]],
    );
}

#[test]
fn what_makes_volumes_stays() {
    let mut new = class();
    new["provisioner"] = "example.com/other".into();
    new["reclaimPolicy"] = "Retain".into();
    update_errors(
        "storageclasses",
        new,
        class(),
        Part::Main,
        expect![[r#"
        provisioner: Invalid value: "example.com/other": field is immutable
        reclaimPolicy: Invalid value: "Retain": field is immutable"#]],
    );
}

#[test]
fn old_labels_are_warned_of() {
    let mut old = class();
    let key = "failure-domain.beta.kubernetes.io/zone";
    old["allowedTopologies"][0]["matchLabelExpressions"][0]["key"] = key.into();
    let object = Object::from_value(old).unwrap();
    expect![[r#"allowedTopologies[0].matchLabelExpressions[0].key: deprecated since v1.17; use "topology.kubernetes.io/zone" instead"#]].assert_eq(&resource("storageclasses").rules.warnings(&object).join("\n"));
}
