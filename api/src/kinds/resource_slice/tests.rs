//! Validation, times, gates and cells of a ResourceSlice.

use crate::kinds::testing::{check_errors, check_row, defaulted, resource, update_errors};
use crate::resource::{Part, Requester};
use expect_test::expect;
use serde_json::{Value, json};

fn slice() -> Value {
    json!({
        "metadata": { "name": "s", "creationTimestamp": "1970-01-01T00:00:00Z" },
        "spec": {
            "driver": "gpu.example.com", "nodeName": "n",
            "pool": { "name": "n", "resourceSliceCount": 1 },
            "devices": [{
                "name": "d", "attributes": { "model": { "string": "a" } },
                "capacity": { "memory": { "value": "1024Mi" } },
                "taints": [{ "key": "a", "effect": "NoSchedule" }],
            }],
        },
    })
}

#[test]
fn printed() {
    check_row(
        "resourceslices",
        slice(),
        60,
        expect![[r#"
        Name: s
        Node: n
        Driver: gpu.example.com
        Pool: n
        Age: 60s"#]],
    );
}

#[test]
fn wrong_in_many_ways() {
    let mut bad = slice();
    bad["spec"] = json!({
        "driver": "", "pool": { "name": "A", "generation": -1 }, "allNodes": false,
        "nodeName": "n", "perDeviceNodeSelection": true,
        "sharedCounters": [{ "name": "c", "counters": {} }, { "name": "" }],
        "devices": [
            { "name": "D", "attributes": { "1a": {}, "x/": { "int": 1, "bool": true },
              "v": { "version": "1.2" } }, "nodeName": "", "allNodes": true },
            { "name": "D", "bindingConditions": ["a", "a"], "taints": [{ "key": "" }],
              "consumesCounters": [{}] },
        ],
    });
    check_errors(
        "resourceslices",
        bad,
        expect![[r#"
        spec.driver: Required value
        spec.pool.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero
        spec.pool.generation: Invalid value: -1: must be greater than or equal to zero
        spec.allNodes: Invalid value: false: must be either unset or set to true
        spec: Invalid value: "{`nodeName`, `perDeviceNodeSelection`}": exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required, but multiple fields are set
        spec: Invalid value: "": only one of `sharedCounters` or `devices` is allowed
        spec.devices[0].name: Invalid value: "D": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
        spec.devices[0].attributes: Invalid value: "1a": a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')
        spec.devices[0].attributes[1a]: Invalid value: "": exactly one value must be specified
        spec.devices[0].attributes[v].version: Invalid value: "1.2": must be a string compatible with semver.org spec 2.0.0
        spec.devices[0].attributes: Invalid value: "": the name must not be empty
        spec.devices[0].attributes[x/]: Invalid value: {"IntValue":1,"BoolValue":true,"StringValue":null,"VersionValue":null,"IntValues":null,"BoolValues":null,"StringValues":null,"VersionValues":null}: exactly one value must be specified
        spec.devices[0].nodeName: Invalid value: "": must not be empty
        spec.devices[1].name: Invalid value: "D": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
        spec.devices[1].taints[0].key: Invalid value: "": name part must be non-empty
        spec.devices[1].taints[0].key: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
        spec.devices[1].taints[0].effect: Required value
        spec.devices[1].consumesCounters[0].counterSet: Required value
        spec.devices[1].consumesCounters[0].counters: Required value
        spec.devices[1]: Required value: exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec
        spec.devices[1].bindingConditions[1]: Duplicate value: "a"
        spec.devices[1].bindingFailureConditions: Invalid value: null: bindingFailureConditions are required to use bindingConditions
        spec.devices[1]: Duplicate value: "D"
        spec.sharedCounters[0].counters: Required value
        spec.sharedCounters[1].name: Required value
        spec.sharedCounters[1].counters: Required value"#]],
    );
}

#[test]
fn policies_fit_the_capacity() {
    let with = |shared: bool, policy: Value| {
        let mut slice = slice();
        let device = &mut slice["spec"]["devices"][0];
        device["allowMultipleAllocations"] = shared.into();
        device["capacity"]["memory"] = json!({ "value": "8", "requestPolicy": policy });
        slice
    };
    let values = json!({ "default": "3", "validValues": ["4", "2", "16"] });
    check_errors(
        "resourceslices",
        with(false, values.clone()),
        expect![
            "spec.devices[0].capacity[memory].requestPolicy: Forbidden: allowMultipleAllocations must be true"
        ],
    );
    check_errors(
        "resourceslices",
        with(true, values),
        expect![[r#"
        spec.devices[0].capacity[memory].requestPolicy.validValues[1]: Invalid value: "2": values must be sorted in ascending order
        spec.devices[0].capacity[memory].requestPolicy.validValues[2]: Invalid value: "16": option is larger than capacity value: 8
        spec.devices[0].capacity[memory].requestPolicy.validValues: Invalid value: "3": default value is not valid according to the requestPolicy"#]],
    );
    let range = json!({ "default": "1", "validRange": { "min": "2", "max": "9", "step": "3" } });
    check_errors(
        "resourceslices",
        with(true, range),
        expect![[r#"
        spec.devices[0].capacity[memory].requestPolicy.validRange.min: Invalid value: "1": default is less than min: 2
        spec.devices[0].capacity[memory].requestPolicy.validRange.max: Invalid value: "9": max is larger than capacity value: 8
        spec.devices[0].capacity[memory].requestPolicy.validRange.step: Invalid value: "1": value is not a multiple of a given step (3) from (2)
        spec.devices[0].capacity[memory].requestPolicy.validRange.step: Invalid value: "9": value is not a multiple of a given step (3) from (2)"#]],
    );
}

#[test]
fn the_place_stays_and_a_taint_has_a_time() {
    let mut new = slice();
    new["spec"]["nodeName"] = "m".into();
    new["spec"]["driver"] = "other.example.com".into();
    update_errors(
        "resourceslices",
        new,
        slice(),
        Part::Main,
        expect![[r#"
        spec.driver: Invalid value: "other.example.com": field is immutable
        spec.nodeName: Invalid value: "m": field is immutable"#]],
    );
    let mut made = defaulted("resourceslices", slice());
    let rules = resource("resourceslices").rules;
    rules.stamp(&mut made, None, Part::Main, &Requester::default(), "now");
    let taint = &made.list(&["spec", "devices"])[0]["taints"][0];
    assert_eq!(taint["timeAdded"], "now");
}

#[test]
fn versions_are_semantic() {
    use crate::kinds::devices::names::is_semantic_version as good;
    for text in ["1.2.3", "0.0.0-alpha.1+x.y", "1.0.0--"] {
        assert!(good(text), "{text}");
    }
    for text in ["1.2", "01.2.3", "1.2.3-", "1.2.3-01", "1.2.3+", "v1.2.3"] {
        assert!(!good(text), "{text}");
    }
}
