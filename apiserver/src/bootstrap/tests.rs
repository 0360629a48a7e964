//! The bootstrap roles are complete, come back, and keep what was added.

use super::*;

fn role(rules: Value, autoupdate: &str) -> Object {
    Object::from_value(json!({
        "kind": "ClusterRole",
        "metadata": {
            "name": "r",
            "annotations": { AUTOUPDATE: autoupdate },
            "labels": { "kubernetes.io/bootstrapping": "rbac-defaults" },
        },
        "rules": rules,
    }))
    .unwrap()
}

fn rule(verb: &str, resource: &str) -> Value {
    json!({ "verbs": [verb], "apiGroups": [""], "resources": [resource] })
}

fn binding(role: &str, subjects: Value) -> Object {
    Object::from_value(json!({
        "kind": "ClusterRoleBinding",
        "metadata": { "name": "b" },
        "roleRef": { "kind": "ClusterRole", "name": role },
        "subjects": subjects,
    }))
    .unwrap()
}

#[test]
fn the_facts_are_complete_and_name_each_object_once() {
    let objects = objects();
    assert!(objects.len() > 130);
    let mut paths: Vec<String> = objects.iter().map(|object| path(object, true)).collect();
    paths.sort();
    paths.dedup();
    assert_eq!(paths.len(), objects.len());
    for object in &objects {
        if !object.kind().ends_with("Binding") {
            continue;
        }
        let (kind, name) = (
            object.str(&["roleRef", "kind"]),
            object.str(&["roleRef", "name"]),
        );
        let found = objects.iter().any(|role| {
            role.kind() == kind
                && role.name() == name
                && (kind == "ClusterRole" || role.namespace() == object.namespace())
        });
        assert!(found, "{} binds {kind} {name}", object.name());
    }
    assert!(!node_rules().is_empty());
}

#[test]
fn what_was_taken_away_comes_back_and_what_was_added_stays() {
    let wanted = role(json!([rule("get", "pods"), rule("get", "nodes")]), "true");
    let existing = role(json!([rule("get", "pods"), rule("get", "secrets")]), "true");
    let Step::Update(merged) = plan(&existing, &wanted) else {
        panic!("an update is due");
    };
    let expected = json!([
        rule("get", "pods"),
        rule("get", "secrets"),
        rule("get", "nodes")
    ]);
    assert_eq!(merged.get(&["rules"]), Some(&expected));
    assert_eq!(plan(&merged, &wanted), Step::Nothing);
}

#[test]
fn what_an_aggregated_role_gathers_is_left_and_what_it_gathers_from_comes_back() {
    let aggregated = |labels: &[&str], rules: Value| {
        let mut role = role(rules, "true");
        let selectors: Vec<Value> = labels
            .iter()
            .map(|label| json!({ "matchLabels": { *label: "true" } }))
            .collect();
        role.set(
            &["aggregationRule", "clusterRoleSelectors"],
            selectors.into(),
        );
        role
    };
    let wanted = aggregated(&["ours"], json!([rule("get", "pods")]));
    let existing = aggregated(&["theirs"], json!([rule("get", "secrets")]));
    let Step::Update(merged) = plan(&existing, &wanted) else {
        panic!("an update is due");
    };
    let expected = aggregated(&["theirs", "ours"], json!([rule("get", "secrets")]));
    assert_eq!(merged, expected);
    assert_eq!(plan(&merged, &wanted), Step::Nothing);
    // A role that we do not gather is not gathered.
    let plain = role(json!([rule("get", "secrets")]), "true");
    let Step::Update(merged) = plan(&existing, &plain) else {
        panic!("an update is due");
    };
    assert_eq!(merged, plain);
}

#[test]
fn the_operator_can_opt_out() {
    let wanted = role(json!([rule("get", "pods")]), "true");
    assert_eq!(plan(&role(json!([]), "false"), &wanted), Step::Nothing);
}

#[test]
fn bindings_regain_subjects_and_are_made_anew_for_another_role() {
    let jane = json!({ "kind": "User", "name": "jane" });
    let joe = json!({ "kind": "User", "name": "joe" });
    let wanted = binding("r", json!([jane]));
    let Step::Update(merged) = plan(&binding("r", json!([joe])), &wanted) else {
        panic!("an update is due");
    };
    assert_eq!(merged.get(&["subjects"]), Some(&json!([joe, jane])));
    assert_eq!(
        plan(&binding("other", json!([jane])), &wanted),
        Step::Recreate
    );
    assert_eq!(plan(&wanted, &wanted), Step::Nothing);
}

/// A tiny API over a map of paths, to see what reconciling asks for.
#[derive(Clone, Default)]
struct Api(std::sync::Arc<parking_lot::Mutex<std::collections::BTreeMap<String, Value>>>);

impl Api {
    async fn reconcile(&self) -> usize {
        use http_body_util::{BodyExt, Full};
        let map = std::sync::Arc::clone(&self.0);
        let service = tower::service_fn(move |request: http::Request<Full<bytes::Bytes>>| {
            let map = std::sync::Arc::clone(&map);
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect().await?.to_bytes();
                let path = parts.uri.path().to_owned();
                let mut map = map.lock();
                let (code, answer) = match parts.method.as_str() {
                    "GET" => match map.get(&path) {
                        Some(found) => (200, found.clone()),
                        None => (404, json!({})),
                    },
                    "DELETE" => (200, map.remove(&path).unwrap()),
                    method => {
                        let object: Value = serde_json::from_slice(&body).unwrap();
                        let path = match method {
                            "POST" => {
                                format!("{path}/{}", object["metadata"]["name"].as_str().unwrap())
                            }
                            _ => path,
                        };
                        map.insert(path, object.clone());
                        (201, object)
                    }
                };
                let body = Full::new(bytes::Bytes::from(answer.to_string()));
                let response = http::Response::builder().status(code).body(body).unwrap();
                Ok::<_, std::convert::Infallible>(response)
            }
        });
        reconcile(service).await.unwrap()
    }
}

#[tokio::test]
async fn reconciling_makes_everything_once_and_mends_what_changed() {
    let api = Api::default();
    assert_eq!(api.reconcile().await, objects().len());
    assert_eq!(api.0.lock().len(), objects().len());
    assert_eq!(api.reconcile().await, 0);
    let role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node";
    let binding = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/cluster-admin";
    let rules = api.0.lock()[role]["rules"].clone();
    api.0.lock().get_mut(role).unwrap()["rules"] = json!([]);
    api.0.lock().get_mut(binding).unwrap()["roleRef"]["name"] = "view".into();
    assert_eq!(api.reconcile().await, 2);
    assert_eq!(api.0.lock()[binding]["roleRef"]["name"], "cluster-admin");
    let mended = uncovered(
        &rule::rules(api.0.lock()[role]["rules"].as_array().unwrap()),
        &rule::rules(rules.as_array().unwrap()),
    );
    assert_eq!(mended, []);
}
