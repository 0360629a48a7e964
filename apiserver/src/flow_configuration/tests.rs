//! What is done about objects that are there, missing, changed or left behind.

use super::*;
use serde_json::json;

/// All objects as a server stores them.
fn stored() -> Vec<Object> {
    let objects = bootstrap().iter().map(|one| one.object.clone());
    objects
        .map(|mut object| {
            object.set(&["metadata", "generation"], 1.into());
            object
        })
        .collect()
}

fn one<'a>(objects: &'a mut [Object], kind: &str, name: &str) -> &'a mut Object {
    objects
        .iter_mut()
        .find(|object| object.kind() == kind && object.name() == name)
        .unwrap()
}

#[test]
fn a_new_cluster_gets_all_and_an_old_one_nothing() {
    let steps = plan(&[]);
    assert_eq!(steps.len(), bootstrap().len());
    assert!(steps.iter().all(|step| matches!(step, Step::Create(_))));
    assert_eq!(plan(&stored()), []);
}

#[test]
fn the_mandatory_are_brought_back() {
    let mut objects = stored();
    let schema = one(&mut objects, "FlowSchema", "catch-all");
    schema.set(&["spec", "matchingPrecedence"], 7.into());
    schema.set(&["metadata", "generation"], 2.into());
    schema.set(&["metadata", "annotations", AUTO_UPDATE], "false".into());
    let steps = plan(&objects);
    let [Step::Update(revised)] = &steps[..] else {
        panic!("{steps:?}");
    };
    assert_eq!(
        revised.i64(&["spec", "matchingPrecedence"]),
        Some(10_000),
        "the mandatory one was left changed"
    );
    assert_eq!(revised.annotation(AUTO_UPDATE), Some("true"));
}

#[test]
fn the_suggested_are_their_operators() {
    let mut objects = stored();
    let schema = one(&mut objects, "FlowSchema", "service-accounts");
    schema.set(&["spec", "matchingPrecedence"], 7.into());
    schema.set(&["metadata", "annotations", AUTO_UPDATE], "false".into());
    assert_eq!(plan(&objects), []);

    // No word of theirs: the generation tells that the spec was changed, and that is noted.
    let schema = one(&mut objects, "FlowSchema", "service-accounts");
    schema.remove(&["metadata", "annotations"]);
    schema.set(&["metadata", "generation"], 2.into());
    let steps = plan(&objects);
    let [Step::Update(revised)] = &steps[..] else {
        panic!("{steps:?}");
    };
    assert_eq!(revised.i64(&["spec", "matchingPrecedence"]), Some(7));
    assert_eq!(revised.annotation(AUTO_UPDATE), Some("false"));
}

#[test]
fn what_the_exempt_level_lends_stays() {
    let mut objects = stored();
    let level = one(&mut objects, "PriorityLevelConfiguration", "exempt");
    level.set(&["spec", "exempt", "lendablePercent"], 40.into());
    assert_eq!(plan(&objects), []);
}

#[test]
fn what_an_older_server_made_goes_and_what_users_made_stays() {
    let object = |name: &str, annotations: Value| {
        Object::from_value(json!({
            "kind": "FlowSchema",
            "metadata": { "name": name, "annotations": annotations },
        }))
        .unwrap()
    };
    let mut objects = stored();
    objects.push(object("mine", json!({})));
    objects.push(object("kept", json!({ AUTO_UPDATE: "false" })));
    objects.push(object("old", json!({ AUTO_UPDATE: "true" })));
    let steps = plan(&objects);
    let [Step::Delete(gone)] = &steps[..] else {
        panic!("{steps:?}");
    };
    assert_eq!(gone.name(), "old");
}
