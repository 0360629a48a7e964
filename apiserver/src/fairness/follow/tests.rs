//! What a schema's condition says.

use super::*;

fn schema(level: &str, conditions: Value) -> Object {
    let object = json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema",
        "metadata": { "name": "s" },
        "spec": { "priorityLevelConfiguration": { "name": level } },
        "status": { "conditions": conditions },
    });
    Object::from_value(object).unwrap()
}

#[test]
fn a_condition_is_written_when_it_is_not_so() {
    let now: Timestamp = "2026-06-01T00:00:00Z".parse().unwrap();
    let levels = BTreeSet::from(["there".to_owned()]);
    let found = condition(&schema("there", json!([])), &levels, now).unwrap();
    assert_eq!(
        found,
        json!({
            "type": "Dangling", "status": "False", "reason": "Found",
            "message": "This FlowSchema references the PriorityLevelConfiguration object named \
                        \"there\" and it exists",
            "lastTransitionTime": "2026-06-01T00:00:00Z",
        })
    );
    assert_eq!(
        condition(&schema("there", json!([found])), &levels, now),
        None
    );
    let missing = condition(&schema("gone", json!([])), &levels, now).unwrap();
    assert_eq!(
        (&missing["status"], &missing["reason"]),
        (&json!("True"), &json!("NotFound"))
    );
}

#[test]
fn other_conditions_stay() {
    let mut object = schema("l", json!([{ "type": "Other" }, { "type": "Dangling" }]));
    set_condition(&mut object, json!({ "type": "Dangling", "status": "True" }));
    let conditions = object.list(&["status", "conditions"]);
    assert_eq!(
        conditions,
        [
            json!({ "type": "Other" }),
            json!({ "type": "Dangling", "status": "True" })
        ]
    );
}
