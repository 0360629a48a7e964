//! Validation, updates and cells of a RuntimeClass.

use crate::kinds::testing::{check_errors, check_row, update_errors};
use crate::resource::Part;
use expect_test::expect;
use serde_json::json;

#[test]
fn looked_at_and_kept() {
    let class = |handler: &str| json!({ "metadata": { "name": "a" }, "handler": handler });
    check_row(
        "runtimeclasses",
        class("runc"),
        60,
        expect![[r#"
        Name: a
        Handler: runc
        Age: <unknown>"#]],
    );
    update_errors(
        "runtimeclasses",
        class("b"),
        class("a"),
        Part::Main,
        expect![[r#"handler: Invalid value: "b": field is immutable"#]],
    );
    let toleration = json!({ "key": "a", "operator": "Exists" });
    let mut bad = class("Bad.");
    bad["overhead"] = json!({ "podFixed": { "cpu": "-1", "bananas": "1" } });
    bad["scheduling"] = json!({
        "nodeSelector": { "-": "x" }, "tolerations": [toleration, toleration],
    });
    check_errors(
        "runtimeclasses",
        bad,
        expect![[r#"
        handler: Invalid value: "Bad.": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
        overhead.limits[bananas]: Invalid value: "bananas": must be a standard resource type or fully qualified
        overhead.limits[bananas]: Invalid value: "bananas": must be a standard resource for containers
        overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0
        scheduling.nodeSelector: Invalid value: "-": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
        scheduling.tolerations[1]: Duplicate value: {"Key":"a","Operator":"Exists","Value":"","Effect":"","TolerationSeconds":null}"#]],
    );
}
