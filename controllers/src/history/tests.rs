//! What history keeps of a template, under which name, and what goes first.

use expect_test::expect;
use http::Method;
use serde_json::json;

use super::*;
use crate::fake_cluster::FakeCluster;

fn template(command: &str) -> PodTemplateSpec {
    serde_json::from_value(json!({
        "metadata": {"labels": {"app": "web"}, "creationTimestamp": null},
        "spec": {"containers": [
            {"name": "c", "image": "x", "resources": {}, "args": [command], "env": []},
        ]},
    }))
    .unwrap()
}

fn numbered(name: &str, revision: i64, created_s: u32) -> Arc<ControllerRevision> {
    let created = format!("2029-12-31T00:00:{created_s:02}Z");
    let value = json!({
        "metadata": {"name": name, "namespace": "default", "creationTimestamp": created},
        "revision": revision, "data": null,
    });
    Arc::new(serde_json::from_value(value).unwrap())
}

fn names(revisions: &Revisions) -> Vec<&str> {
    let names = revisions
        .iter()
        .filter_map(|one| one.metadata.name.as_deref());
    names.collect()
}

fn drafted(data: Value) -> ControllerRevision {
    let owner = ControllerRevision::default();
    let mut draft = revision(&owner, "web-1".to_owned(), BTreeMap::new(), data, 1);
    draft.metadata.namespace = Some("default".to_owned());
    draft
}

#[test]
fn the_document_has_the_bytes_that_upstream_compares() {
    expect![[r#"{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"args":["a \u0026\u0026 b"],"image":"x","name":"c","resources":{}}]}}}}"#]]
    .assert_eq(&bytes_of(&data_of(&template("a && b"))));
    expect![[r#"["\u003c\u2028\u2029\u003e é"]"#]]
        .assert_eq(&bytes_of(&json!(["<\u{2028}\u{2029}> é"])));
}

/// Reckoned by another program from upstream's rule.
#[test]
fn hashes_and_names_are_upstreams() {
    let data = data_of(&template("a && b"));
    assert_eq!(hash(&data, None), "65b66b8796");
    assert_eq!(hash(&data, Some(0)), "95487bb8");
    assert_eq!(hash(&data, Some(1)), "95487bb9");
    assert_eq!(name("web", "95487bb8"), "web-95487bb8");
    assert_eq!(name(&"w".repeat(240), "95487bb8").len(), 223 + 1 + 8);
}

#[test]
fn a_revision_is_known_by_its_data() {
    let data = data_of(&template("a"));
    assert!(is_of(&drafted(data.clone()), &data));
    let mut older = data.clone();
    older["spec"]["template"]["metadata"]["creationTimestamp"] = Value::Null;
    assert!(is_of(&drafted(older), &data));
    assert!(!is_of(&drafted(data_of(&template("b"))), &data));
    assert!(!is_of(&ControllerRevision::default(), &data));
}

#[test]
fn a_revision_of_an_older_server_is_the_same_once_defaults_are_filled_in() {
    let older = data_of(&template("a"));
    let mut defaulted = json!(template("a"));
    coracle_api::pod_spec::defaults::template(&mut defaulted);
    let now = data_of(&serde_json::from_value(defaulted).unwrap());
    assert!(!is_of(&drafted(older.clone()), &now));
    assert!(is_of_with_defaults(&drafted(older), &now));
    assert!(!is_of_with_defaults(
        &drafted(data_of(&template("b"))),
        &now
    ));
    for broken in [json!({}), json!({"spec": {"template": {"spec": "text"}}})] {
        assert!(!is_of_with_defaults(&drafted(broken), &now));
    }
}

#[test]
fn the_order_is_by_number_then_age_then_name() {
    let mut all = [
        numbered("d", 2, 1),
        numbered("c", 1, 9),
        numbered("b", 1, 5),
        numbered("a", 1, 9),
    ];
    sort(&mut all);
    assert_eq!(names(&all), ["b", "a", "c", "d"]);
    assert_eq!(next_number(&all), 3);
    assert_eq!(next_number(&[]), 1);
}

#[test]
fn the_oldest_go_but_those_with_pods() {
    let all: Vec<_> = (1..=5)
        .map(|number| numbered(&format!("r{number}"), number, 0))
        .collect();
    let none = |_: &ControllerRevision| false;
    let first = |one: &ControllerRevision| one.revision == 1;
    assert_eq!(names(&surplus(all.clone(), 3, none)), ["r1", "r2"]);
    assert_eq!(names(&surplus(all.clone(), 3, first)), ["r2", "r3"]);
    assert_eq!(names(&surplus(all.clone(), 0, first)).len(), 4);
    assert!(surplus(all, 5, none).is_empty());
}

#[tokio::test(start_paused = true)]
async fn creating_twice_is_harmless_and_a_foreign_name_is_told() {
    let cluster = FakeCluster::new();
    let client = cluster.client();
    let draft = drafted(data_of(&template("a")));
    let made = create(&client, &draft).await.unwrap().unwrap();
    let again = create(&client, &draft).await.unwrap().unwrap();
    assert_eq!(made.metadata.uid, again.metadata.uid);
    let other = drafted(data_of(&template("b")));
    assert!(create(&client, &other).await.unwrap().is_none());
    let api = Api::namespaced(client, "default");
    let newer = change(&api, &made, json!({"revision": 7})).await.unwrap();
    assert_eq!((newer.revision, &newer.data), (7, &made.data));
    // What was decided on an older state is refused.
    assert!(change(&api, &made, json!({"revision": 8})).await.is_err());
    delete(&api, &newer).await.unwrap();
    delete(&api, &newer).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_refusal_says_which_revision() {
    let cluster = FakeCluster::new();
    cluster.on_request(|method, _| {
        (*method == Method::POST).then(|| (403, crate::fake_cluster::failure(403, "Forbidden")))
    });
    let refused = create(&cluster.client(), &drafted(json!({}))).await;
    let error = refused.unwrap_err();
    assert_eq!(error.to_string(), "cannot create revision web-1");
}
