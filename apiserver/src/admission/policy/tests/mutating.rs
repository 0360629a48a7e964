//! What policies change of an object, in which order, and what they cannot.

use super::*;

fn apply(expression: &str) -> Value {
    json!({ "patchType": "ApplyConfiguration", "applyConfiguration": { "expression": expression } })
}

fn operations(expression: &str) -> Value {
    json!({ "patchType": "JSONPatch", "jsonPatch": { "expression": expression } })
}

fn changing(name: &str, mutations: &[Value], spec: Value) -> Value {
    let mut all = json!({ "mutations": mutations, "reinvocationPolicy": "Never" });
    for (key, value) in spec.as_object().unwrap() {
        all[key] = value.clone();
    }
    policy(name, all)
}

fn all_of(changes: &[Value]) -> Policies {
    let names = changes
        .iter()
        .map(|one| one["metadata"]["name"].as_str().unwrap());
    let bindings: Vec<Value> = names.map(|name| binding("b", name, json!({}))).collect();
    policies_that(Does::Mutate, changes, &bindings)
}

fn pod() -> Object {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "p", "namespace": "web", "labels": { "app": "p" } },
        "spec": { "containers": [
            { "name": "a", "image": "x", "args": ["1"] },
            { "name": "b", "image": "y" },
        ] },
    });
    let mut pod = Object::from_value(pod).unwrap();
    let row = coracle_api::catalogue::find("", "v1", "pods").unwrap();
    row.default(&mut pod);
    pod
}

/// The fields that matter of a pod after one turn, or the refusal.
fn changed(policies: &Policies, pod: &mut Object, turn: &mut Turn) -> String {
    let user = User::named("jane");
    let asked = as_user(&user, "CREATE pods web p");
    let attributes = asked.attributes();
    let mutated = policies.mutate(Some(pod), &attributes, turn);
    if let Err(status) = mutated.now_or_never().expect("nobody is asked") {
        return format!("{} {}: {}", status.code, status.reason, status.message);
    }
    let containers = pod.list(&["spec", "containers"]).iter();
    let shown = containers.map(|one| {
        let text = |name: &str| one[name].as_str().unwrap_or("-").to_owned();
        format!(
            "{}:{}:{}",
            text("name"),
            text("image"),
            text("imagePullPolicy")
        )
    });
    let labels: Vec<String> = pod
        .labels()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    format!(
        "{} [{}]",
        labels.join(","),
        shown.collect::<Vec<_>>().join(" ")
    )
}

/// One policy with its mutations, over one pod.
fn check(mutations: &[Value], spec: Value, expected: Expect) {
    let policies = all_of(&[changing("p", mutations, spec)]);
    expected.assert_eq(&changed(&policies, &mut pod(), &mut Turn::default()));
}

#[test]
fn a_configuration_is_merged_and_defaulted() {
    check(
        &[apply(
            "Object{metadata: Object.metadata{labels: {'tier': object.metadata.labels.app + '1'}}}",
        )],
        json!({}),
        expect!["app=p,tier=p1 [a:x:Always b:y:Always]"],
    );
    // Containers are told apart by their names.
    check(
        &[apply(
            "Object{spec: Object.spec{containers: object.spec.containers.map(c, \
             Object.spec.containers{name: c.name, imagePullPolicy: 'Never'}) + \
             [Object.spec.containers{name: 'c', image: 'z:1'}]}}",
        )],
        json!({}),
        expect!["app=p [a:x:Never b:y:Never c:z:1:IfNotPresent]"],
    );
}

#[test]
fn operations_are_those_of_a_json_patch() {
    check(
        &[operations(
            "[JSONPatch{op: 'test', path: '/spec/containers/0/image', value: 'x'}, \
             JSONPatch{op: 'replace', path: '/spec/containers/0/image', value: 'w:1'}, \
             JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b'), value: 'c'}]",
        )],
        json!({}),
        expect!["a/b=c,app=p [a:w:1:Always b:y:Always]"],
    );
    // A test that does not hold leaves all as it is.
    check(
        &[operations(
            "[JSONPatch{op: 'test', path: '/spec/containers/0/image', value: 'none'}, \
             JSONPatch{op: 'remove', path: '/spec/containers/0'}]",
        )],
        json!({}),
        expect!["app=p [a:x:Always b:y:Always]"],
    );
    check(
        &[operations(
            "[JSONPatch{op: 'add', path: '/spec/initContainers', value: \
             [Object.spec.initContainers{name: 'i', image: 'j'}]}]",
        )],
        json!({}),
        expect!["app=p [a:x:Always b:y:Always]"],
    );
}

/// A list of lists of lists, each of them ten times the one before.
#[test]
fn a_small_expression_makes_no_large_object() {
    let mut variables = vec![json!({ "name": "v0", "expression": "'a'" })];
    for number in 1..10 {
        let of = vec![format!("variables.v{}", number - 1); 10].join(", ");
        variables.push(json!({ "name": format!("v{number}"), "expression": format!("[{of}]") }));
    }
    let large = "[JSONPatch{op: 'add', path: '/metadata/labels/a', value: variables.v9}]";
    check(
        &[operations(large)],
        json!({ "variables": variables }),
        expect![
            "403 Invalid: policy 'p' with binding 'b' denied request: JSONPath valueExpression evaluated to a type that could not marshal to JSON: the value is too large: it has more than 3145728 bytes"
        ],
    );
    let large = "Object{metadata: Object.metadata{labels: {'a': variables.v9}}}";
    check(
        &[apply(large)],
        json!({ "variables": variables }),
        expect![
            "403 Invalid: policy 'p' with binding 'b' denied request: the value is too large: it has more than 3145728 bytes"
        ],
    );
}

#[test]
fn each_mutation_sees_what_those_before_it_made() {
    let label = |key: &str, value: &str| {
        apply(&format!(
            "Object{{metadata: Object.metadata{{labels: {{'{key}': {value}}}}}}}"
        ))
    };
    let of_app = |key: &str, of: &str| {
        label(
            key,
            &format!("object.metadata.?labels[?'{of}'].orValue('none')"),
        )
    };
    check(
        &[of_app("one", "app"), of_app("two", "one")],
        json!({}),
        expect!["app=p,one=p,two=p [a:x:Always b:y:Always]"],
    );
    // By the names of policies, not in the order in which they came; the second turn is for those
    // that want one.
    let again = json!({ "reinvocationPolicy": "IfNeeded" });
    let policies = all_of(&[
        changing("a", &[of_app("first", "second")], again),
        changing("b", &[of_app("second", "app")], json!({})),
    ]);
    let (mut pod, mut turn) = (pod(), Turn::default());
    expect!["app=p,first=none,second=p [a:x:Always b:y:Always]"]
        .assert_eq(&changed(&policies, &mut pod, &mut turn));
    assert!(turn.again());
    expect!["app=p,first=p,second=p [a:x:Always b:y:Always]"]
        .assert_eq(&changed(&policies, &mut pod, &mut turn));
}

#[test]
fn nothing_changes_what_it_is_not_asked_about() {
    let mutation = apply("Object{metadata: Object.metadata{labels: {'x': 'y'}}}");
    let condition = json!({ "matchConditions": [{ "name": "c", "expression": "false" }] });
    check(
        &[mutation],
        condition,
        expect!["app=p [a:x:Always b:y:Always]"],
    );
    let policies = all_of(&[]);
    let mut turn = Turn::default();
    changed(&policies, &mut pod(), &mut turn);
    assert!(!turn.again());
}

#[test]
fn what_cannot_be_applied_refuses_unless_failures_are_ignored() {
    let atomic = apply(
        "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'a', args: ['2']}]}}",
    );
    check(
        std::slice::from_ref(&atomic),
        json!({}),
        expect![
            "403 Invalid: policy 'p' with binding 'b' denied request: error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.containers[0].args"
        ],
    );
    check(
        &[atomic],
        json!({ "failurePolicy": "Ignore" }),
        expect!["app=p [a:x:Always b:y:Always]"],
    );
    check(
        &[apply("Object{spec: Object.spec{nonsense: 1}}")],
        json!({}),
        expect![
            "403 Invalid: policy 'p' with binding 'b' denied request: error applying patch: failed to convert patch object to typed object: .spec.nonsense: field not declared in schema"
        ],
    );
    check(
        &[apply("Object{spec: Object.metadata{}}")],
        json!({}),
        expect![[
            r#"403 Invalid: policy 'p' with binding 'b' denied request: type mismatch: unexpected type name "Object.metadata", expected "Object.spec", which matches field name path from root Object type"#
        ]],
    );
    check(
        &[apply(
            "Object{spec: Object.spec{nodeName: object.spec.none}}",
        )],
        json!({}),
        expect![
            "403 Invalid: policy 'p' with binding 'b' denied request: expression 'Object{spec: Object.spec{nodeName: object.spec.none}}' resulted in error: no such key: none"
        ],
    );
    check(
        &[operations(
            "[JSONPatch{op: 'add', path: '/nonsense', value: 1}]",
        )],
        json!({}),
        expect![[
            r#"500 InternalError: Internal error occurred: strict decoding error: unknown field "nonsense""#
        ]],
    );
}

#[test]
fn changes_are_counted() {
    let policies = all_of(&[changing("p", &[apply("Object{}")], json!({}))]);
    changed(&policies, &mut pod(), &mut Turn::default());
    let mut text = Text::new(Format::Prometheus);
    policies.counts().text(&mut text);
    let shown = text.into_string();
    let counted = shown
        .lines()
        .find(|line| line.contains("mutating_admission_policy_check_total{"));
    expect![[
        r#"apiserver_mutating_admission_policy_check_total{error_type="no_error",policy="p",policy_binding="b"} 1"#
    ]]
    .assert_eq(counted.unwrap());
}
