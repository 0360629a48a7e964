//! An owner and an object in, the claim out.

use serde_json::json;

use super::*;

fn meta(value: serde_json::Value) -> ObjectMeta {
    serde_json::from_value(value).unwrap()
}

fn check(owner: serde_json::Value, object: serde_json::Value) -> Claim {
    let labels = [("app".to_owned(), "web".to_owned())].into();
    claim(
        &meta(owner),
        &Selector::from_map(Some(&labels)),
        &meta(object),
    )
}

fn object(labels: serde_json::Value, controller: Option<&str>) -> serde_json::Value {
    let owners = controller.map(|uid| {
        let (version, kind) = ("apps/v1", "X");
        json!([{"apiVersion": version, "kind": kind, "name": "x", "uid": uid, "controller": true}])
    });
    json!({"name": "o", "labels": labels, "ownerReferences": owners})
}

#[test]
fn owns_adopts_releases_and_ignores() {
    let owner = json!({"name": "web", "uid": "u1"});
    let (matching, other) = (json!({"app": "web"}), json!({"app": "db"}));
    let verdict = |labels: &serde_json::Value, controller| {
        check(owner.clone(), object(labels.clone(), controller))
    };
    assert_eq!(verdict(&matching, Some("u1")), Claim::Own);
    assert_eq!(verdict(&other, Some("u1")), Claim::Release);
    assert_eq!(verdict(&matching, None), Claim::Adopt);
    assert_eq!(verdict(&other, None), Claim::Ignore);
    assert_eq!(verdict(&matching, Some("u2")), Claim::Ignore);
}

#[test]
fn nothing_is_adopted_or_released_while_either_side_is_being_deleted() {
    let going = "2026-01-01T00:00:00Z";
    let owner = json!({"name": "web", "uid": "u1", "deletionTimestamp": going});
    assert_eq!(
        check(owner.clone(), object(json!({"app": "web"}), None)),
        Claim::Ignore
    );
    assert_eq!(
        check(owner, object(json!({"app": "db"}), Some("u1"))),
        Claim::Ignore
    );
    let mut orphan = object(json!({"app": "web"}), None);
    orphan["deletionTimestamp"] = json!(going);
    assert_eq!(
        check(json!({"name": "web", "uid": "u1"}), orphan),
        Claim::Ignore
    );
}
