//! Defaults and validation of a LimitRange.

use crate::kinds::testing::{check_errors, check_spec};
use expect_test::expect;
use serde_json::json;

#[test]
fn containers_get_what_is_not_said() {
    let range = json!({ "metadata": { "name": "a" }, "spec": { "limits": [{
        "type": "Container", "max": { "cpu": "2" }, "min": { "cpu": "100m", "memory": "1Mi" },
        "default": { "cpu": "1" },
    }] } });
    check_spec(
        "limitranges",
        range,
        expect![[
            r#"limits: [{"default":{"cpu":"1"},"defaultRequest":{"cpu":"1","memory":"1Mi"},"max":{"cpu":"2"},"min":{"cpu":"100m","memory":"1Mi"},"type":"Container"}]"#
        ]],
    );
}

#[test]
fn bounds_that_contradict() {
    let range = json!({ "metadata": { "name": "a" }, "spec": { "limits": [
        {
            "type": "Container", "max": { "cpu": "1", "a/b/c": "1" }, "min": { "cpu": "2" },
            "default": { "cpu": "3", "example.com/gpu": "1" },
            "defaultRequest": { "cpu": "4", "example.com/gpu": "2" },
            "maxLimitRequestRatio": { "cpu": "500m" },
        },
        { "type": "Pod", "default": { "cpu": "1" } },
        { "type": "Pod", "max": { "cpu": "4" }, "min": { "cpu": "3" },
          "maxLimitRequestRatio": { "cpu": "2" } },
        { "type": "PersistentVolumeClaim" },
        { "type": "Planet" },
    ] } });
    check_errors(
        "limitranges",
        range,
        expect![[r#"
        spec.limits[0].max[a/b/c]: Invalid value: "a/b/c": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')
        spec.limits[0].max[a/b/c]: Invalid value: "a/b/c": doesn't follow extended resource name standard
        spec.limits[0].default[a/b/c]: Invalid value: "a/b/c": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')
        spec.limits[0].default[a/b/c]: Invalid value: "a/b/c": doesn't follow extended resource name standard
        spec.limits[0].defaultRequest[a/b/c]: Invalid value: "a/b/c": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')
        spec.limits[0].defaultRequest[a/b/c]: Invalid value: "a/b/c": doesn't follow extended resource name standard
        spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1
        spec.limits[0].defaultRequest[cpu]: Invalid value: "4": default request value 4 is greater than max value 1
        spec.limits[0].defaultRequest[cpu]: Invalid value: "4": default request value 4 is greater than default limit value 3
        spec.limits[0].default[cpu]: Invalid value: "1": default value 3 is greater than max value 1
        spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "500m": ratio 500m is less than 1
        spec.limits[0].defaultRequest[example.com/gpu]: Invalid value: "2": default request value 2 is greater than default limit value 1
        spec.limits[0].defaultRequest[example.com/gpu]: Invalid value: "2": default value 1 must equal to defaultRequest value 2 in example.com/gpu
        spec.limits[1].default: Forbidden: may not be specified when `type` is 'Pod'
        spec.limits[2].type: Duplicate value: "Pod"
        spec.limits[2].maxLimitRequestRatio[cpu]: Invalid value: "2": ratio 2 is greater than max/min = 1.333333
        spec.limits[3].limits: Required value: either minimum or maximum storage value is required, but neither was provided
        spec.limits[4].type: Invalid value: "Planet": must be a standard limit type or fully qualified"#]],
    );
}
