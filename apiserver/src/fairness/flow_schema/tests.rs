//! Who and what a schema matches.

use super::*;
use http::Method;
use serde_json::{Value, json};

fn schema(rule: Value) -> FlowSchema {
    let object = Object::from_value(json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema",
        "metadata": { "name": "s", "uid": "u" },
        "spec": {
            "matchingPrecedence": 7,
            "priorityLevelConfiguration": { "name": "level" },
            "distinguisherMethod": { "type": "ByNamespace" },
            "rules": [rule],
        },
    }));
    FlowSchema::of(&object.unwrap())
}

fn resources(verbs: &[&str], groups: &[&str], resources: &[&str], namespaces: &[&str]) -> Value {
    json!({
        "subjects": [{ "kind": "Group", "group": { "name": "*" } }],
        "resourceRules": [{
            "verbs": verbs, "apiGroups": groups, "resources": resources,
            "namespaces": namespaces, "clusterScope": namespaces.is_empty(),
        }],
    })
}

fn asks(schema: &FlowSchema, method: Method, path: &str) -> bool {
    let info = RequestInfo::parse(&method, &path.parse().unwrap());
    schema.matches(&User::named("jane"), &info)
}

#[test]
fn resources_match_by_verb_group_name_and_scope() {
    let all = schema(resources(&["*"], &["*"], &["*"], &["*"]));
    assert!(asks(&all, Method::GET, "/api/v1/namespaces/a/pods"));
    assert!(
        !asks(&all, Method::GET, "/api/v1/nodes"),
        "clusterScope is false"
    );
    let leases = schema(resources(
        &["update"],
        &["coordination.k8s.io"],
        &["leases"],
        &["a"],
    ));
    let lease = "/apis/coordination.k8s.io/v1/namespaces/a/leases/l";
    assert!(asks(&leases, Method::PUT, lease));
    assert!(!asks(&leases, Method::GET, lease));
    assert!(!asks(&leases, Method::PUT, &lease.replace("/a/", "/b/")));
    let status = schema(resources(&["*"], &[""], &["nodes/status"], &[]));
    assert!(asks(&status, Method::PATCH, "/api/v1/nodes/n/status"));
    assert!(!asks(&status, Method::PATCH, "/api/v1/nodes/n"));
    assert!(!asks(&status, Method::GET, "/healthz"));
}

#[test]
fn paths_match_themselves_and_what_is_below() {
    let urls = |urls: &[&str]| {
        schema(json!({
            "subjects": [{ "kind": "User", "user": { "name": "jane" } }],
            "nonResourceRules": [{ "verbs": ["get"], "nonResourceURLs": urls }],
        }))
    };
    assert!(asks(&urls(&["/healthz"]), Method::GET, "/healthz/ping"));
    assert!(asks(&urls(&["/apis/*"]), Method::GET, "/apis/apps"));
    assert!(!asks(&urls(&["/health"]), Method::GET, "/healthz"));
    assert!(!asks(&urls(&["/healthz"]), Method::POST, "/healthz"));
    assert!(asks(&urls(&["*"]), Method::GET, "/x"));
}

#[test]
fn subjects_are_users_groups_and_service_accounts() {
    let matches = |subject: Value, user: &User| {
        let schema = schema(json!({
            "subjects": [subject],
            "nonResourceRules": [{ "verbs": ["*"], "nonResourceURLs": ["*"] }],
        }));
        schema.matches(
            user,
            &RequestInfo::parse(&Method::GET, &"/x".parse().unwrap()),
        )
    };
    let account = User::named("system:serviceaccount:kube-system:loop");
    let of = |namespace: &str, name: &str| {
        json!({
            "kind": "ServiceAccount",
            "serviceAccount": { "namespace": namespace, "name": name },
        })
    };
    assert!(matches(of("kube-system", "*"), &account));
    assert!(matches(of("kube-system", "loop"), &account));
    assert!(!matches(of("kube-system", "other"), &account));
    assert!(!matches(of("kube", "*"), &account));
    let group = json!({ "kind": "Group", "group": { "name": "system:serviceaccounts" } });
    assert!(matches(group, &account));
    let user = json!({ "kind": "User", "user": { "name": "*" } });
    assert!(matches(user, &User::anonymous()));
}

#[test]
fn a_flow_is_a_user_a_namespace_or_all() {
    let schema = schema(json!({}));
    let uri = "/api/v1/namespaces/a/pods".parse().unwrap();
    let info = RequestInfo::parse(&Method::GET, &uri);
    assert_eq!(schema.flow(&User::named("jane"), &info), "a");
    assert_eq!(schema.order(), (7, "s"));
    assert_eq!(schema.level, "level");
    assert_eq!(schema.uid, "u");
}
