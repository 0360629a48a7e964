//! The bootstrap roles are complete, come back, and keep what was added.

use super::*;
use ring::digest::{SHA256, digest};

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

/// What kube-apiserver v1.36 has after its first start, one object a line: labels that roles are
/// gathered by, the number of rules, of the single rights in them and the hash of those; role and
/// subjects of bindings.
const POLICY: &str = include_str!("tests/policy.txt");

fn row(object: &Object) -> String {
    let last = |key: &str| key.rsplit('/').next().unwrap().to_owned();
    let list = |path: &[&str]| object.get(path).and_then(Value::as_array).cloned();
    let mut row = format!("{} ", object.kind());
    if !object.namespace().is_empty() {
        row += &format!("{}/", object.namespace());
    }
    row += object.name();
    let labels = object.get(&["metadata", "labels"]).unwrap();
    let labels = labels.as_object().unwrap().keys();
    for label in labels.filter(|label| *label != "kubernetes.io/bootstrapping") {
        row += &format!(" label:{}", last(label));
    }
    for selector in list(&["aggregationRule", "clusterRoleSelectors"]).unwrap_or_default() {
        for label in selector["matchLabels"].as_object().unwrap().keys() {
            row += &format!(" gathers:{}", last(label));
        }
    }
    if object.kind().ends_with("Role") {
        let rules = list(&["rules"]).unwrap_or_default();
        let mut rights: Vec<String> = rules.iter().flat_map(rights).collect();
        rights.sort();
        let hash = digest(&SHA256, rights.join("\n").as_bytes());
        let hash = hex::encode(&hash.as_ref()[..8]);
        let (rules, rights) = (rules.len(), rights.len());
        return row + &format!(" rules={rules} grants={rights} sha256={hash}");
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let role = |field| object.str(&["roleRef", field]);
    row += &format!(" role={}/{}", role("kind"), role("name"));
    for subject in list(&["subjects"]).unwrap_or_default() {
        let namespace = match text(&subject["namespace"]).as_str() {
            "" => String::new(),
            namespace => format!("{namespace}/"),
        };
        let (kind, name) = (text(&subject["kind"]), text(&subject["name"]));
        row += &format!(" {kind}:{namespace}{name}");
    }
    row
}

/// One verb on one resource, one name of it, or one path.
fn rights(rule: &Value) -> Vec<String> {
    let texts = |field: &str| -> Vec<String> {
        let list = rule[field].as_array().into_iter().flatten();
        list.map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let mut what = texts("nonResourceURLs");
    let mut names = texts("resourceNames");
    if names.is_empty() {
        names.push(String::new());
    }
    for group in texts("apiGroups") {
        for resource in texts("resources") {
            let one = |name: &String| format!("{group}:{resource} {name}").trim_end().to_owned();
            what.extend(names.iter().map(one));
        }
    }
    let verbs = texts("verbs");
    let all = verbs
        .iter()
        .flat_map(|verb| what.iter().map(move |what| format!("{verb} {what}")));
    all.collect()
}

#[test]
fn the_policy_is_upstreams_row_by_row() {
    let upstream: Vec<Object> = facts(UPSTREAM).iter().map(complete).collect();
    let mut rows: Vec<String> = upstream.iter().map(row).collect();
    rows.sort();
    let expected: Vec<&str> = POLICY.lines().collect();
    let more: Vec<&String> = rows
        .iter()
        .filter(|row| !expected.contains(&row.as_str()))
        .collect();
    let less: Vec<&&str> = expected
        .iter()
        .filter(|row| !rows.contains(&(**row).to_owned()))
        .collect();
    assert!(
        more.is_empty() && less.is_empty(),
        "only here: {more:#?}\nonly there: {less:#?}"
    );
    assert_eq!(rows.len(), expected.len());
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
