//! Defaults, validation and printed columns of webhooks.

use crate::kinds::testing::{check_errors, check_row, defaulted};
use crate::object::Object;
use expect_test::expect;
use serde_json::{Value, json};

const JUDGES: &str = "validatingwebhookconfigurations";
const CHANGES: &str = "mutatingwebhookconfigurations";

fn configuration(webhooks: Value) -> Value {
    json!({ "metadata": { "name": "w" }, "webhooks": webhooks })
}

fn webhook(more: Value) -> Value {
    let mut webhook = json!({
        "name": "a.b.c", "clientConfig": { "url": "https://a.b/c" }, "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    });
    for (field, value) in more.as_object().unwrap() {
        webhook[field] = value.clone();
    }
    webhook
}

#[test]
fn defaulted_by_upstream() {
    let service = json!({ "name": "s", "namespace": "n" });
    let one = webhook(json!({ "rules": [{}], "clientConfig": { "service": service } }));
    let shown = |object: Object| object.list(&["webhooks"])[0].to_string();
    expect![[r#"{"admissionReviewVersions":["v1"],"clientConfig":{"service":{"name":"s","namespace":"n","port":443}},"failurePolicy":"Fail","matchPolicy":"Equivalent","name":"a.b.c","namespaceSelector":{},"objectSelector":{},"reinvocationPolicy":"Never","rules":[{"scope":"*"}],"sideEffects":"None","timeoutSeconds":10}"#]].assert_eq(&shown(defaulted(CHANGES, configuration(json!([one])))));
    let object = defaulted(JUDGES, configuration(json!([one])));
    assert_eq!(
        object.list(&["webhooks"])[0].get("reinvocationPolicy"),
        None
    );
}

#[test]
fn printed() {
    let one = configuration(json!([webhook(json!({}))]));
    check_row(
        JUDGES,
        one,
        0,
        expect![[r#"
        Name: w
        Webhooks: 1 (number)
        Age: <unknown>"#]],
    );
}

#[test]
fn required() {
    check_errors(
        JUDGES,
        configuration(json!([{}])),
        expect![[r#"
        webhooks[0].name: Required value
        webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun
        webhooks[0].clientConfig: Required value: exactly one of url or service is required
        webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1"#]],
    );
}

#[test]
fn choices() {
    let odd = webhook(json!({
        "name": "a.b", "failurePolicy": "A", "matchPolicy": "B", "sideEffects": "Some",
        "timeoutSeconds": 31, "reinvocationPolicy": "C",
        "admissionReviewVersions": ["v2", "v2", "V"],
        "matchConditions": [{ "name": "a", "expression": "params" }],
    }));
    check_errors(
        CHANGES,
        configuration(json!([webhook(json!({})), webhook(json!({})), odd])),
        expect![[r#"
            webhooks[1].name: Duplicate value: "a.b.c"
            webhooks[2].name: Invalid value: "a.b": should be a domain with at least three segments separated by dots
            webhooks[2].failurePolicy: Unsupported value: "A": supported values: "Fail", "Ignore"
            webhooks[2].matchPolicy: Unsupported value: "B": supported values: "Equivalent", "Exact"
            webhooks[2].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"
            webhooks[2].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds
            webhooks[2].reinvocationPolicy: Unsupported value: "C": supported values: "IfNeeded", "Never"
            webhooks[2].matchConditions[0].expression: Invalid value: "params": compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container '')
             | params
             | ^
            webhooks[2].admissionReviewVersions[1]: Invalid value: "v2": duplicate version
            webhooks[2].admissionReviewVersions[2]: Invalid value: "V": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')
            webhooks[2].admissionReviewVersions: Invalid value: ["v2","v2","V"]: must include at least one of v1, v1beta1"#]],
    );
}

#[test]
fn where_they_are() {
    let at = |config: Value| webhook(json!({ "clientConfig": config }));
    let service = |path: &str| {
        let service = json!({ "name": "s", "namespace": "n", "path": path });
        json!({ "service": service })
    };
    let mut webhooks = vec![
        at(json!({ "url": "https://a", "service": {} })),
        at(json!({ "url": "http://u:p@a/b?c#d" })),
        at(json!({ "url": "https://" })),
        at(json!({ "url": ":" })),
        at(json!({ "service": { "name": "s", "port": 0 } })),
        at(service("//")),
        at(service("a//B/")),
        at(service("/a/b/")),
    ];
    for (index, webhook) in webhooks.iter_mut().enumerate() {
        webhook["name"] = format!("w{index}.b.c").into();
    }
    check_errors(
        JUDGES,
        configuration(webhooks.into()),
        expect![[r#"
        webhooks[0].clientConfig: Required value: exactly one of url or service is required
        webhooks[1].clientConfig.url: Invalid value: "http": 'https' is the only allowed URL scheme; desired format: https://host[/path]
        webhooks[1].clientConfig.url: Invalid value: "u:p": user information is not permitted in the URL
        webhooks[1].clientConfig.url: Invalid value: "d": fragments are not permitted in the URL
        webhooks[1].clientConfig.url: Invalid value: "c": query parameters are not permitted in the URL
        webhooks[2].clientConfig.url: Invalid value: "": host must be specified; desired format: https://host[/path]
        webhooks[3].clientConfig.url: Required value: url must be a valid URL: parse ":": missing protocol scheme; desired format: https://host[/path]
        webhooks[4].clientConfig.service.name: Required value
        webhooks[4].clientConfig.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive
        webhooks[5].clientConfig.service.path: Invalid value: "//": segment[0] may not be empty
        webhooks[6].clientConfig.service.path: Invalid value: "a//B/": must start with a '/'
        webhooks[6].clientConfig.service.path: Invalid value: "a//B/": segment[0] may not be empty
        webhooks[6].clientConfig.service.path: Invalid value: "a//B/": segment[1] may not be empty
        webhooks[6].clientConfig.service.path: Invalid value: "a//B/": segment[2]: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#]],
    );
}
