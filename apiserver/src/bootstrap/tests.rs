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
