//! Who may act as whom.

use super::*;
use crate::authorize::rbac::GROUP as RBAC;
use crate::view::tests::Objects;
use coracle_api::object::{Object, ObjectKey};
use http::{HeaderName, HeaderValue};
use serde_json::json;

/// Helen may impersonate Jane, the group `dev`, the scope `view` and the account web/robot.
fn authorizer() -> Authorizer {
    let authorizer = Authorizer::new(Objects::new([]));
    let rule = |group: &str, resource: &str, name: &str| {
        json!({
            "verbs": ["impersonate"], "apiGroups": [group], "resources": [resource],
            "resourceNames": [name],
        })
    };
    let role = json!({ "rules": [
        rule("", "users", "jane"),
        rule("", "groups", "dev"),
        rule("", "serviceaccounts", "robot"),
        rule("authentication.k8s.io", "userextras/scopes", "view"),
    ] });
    let binding = json!({
        "roleRef": { "kind": "ClusterRole", "name": "x" },
        "subjects": [{ "kind": "User", "name": "helen" }],
    });
    for (plural, value) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        let object = Object::from_value(value).unwrap();
        authorizer.apply(RBAC, plural, &ObjectKey::new("", "x"), Some(&object));
    }
    authorizer
}

fn act(user: &str, headers: &[(&str, &str)]) -> Result<User, Status> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name: HeaderName = name.parse().unwrap();
        map.append(name, HeaderValue::from_str(value).unwrap());
    }
    acting_as(&authorizer(), User::named(user), &map)
}

#[test]
fn without_headers_everybody_is_themselves() {
    assert_eq!(act("helen", &[]).unwrap(), User::named("helen"));
}

#[test]
fn one_may_act_as_whom_one_is_allowed_to_be() {
    let user = act(
        "helen",
        &[
            ("Impersonate-User", "jane"),
            ("Impersonate-Group", "dev"),
            ("Impersonate-Extra-Scopes", "view"),
        ],
    )
    .unwrap();
    assert_eq!(user.name, "jane");
    assert_eq!(user.groups, ["dev", "system:authenticated"]);
    assert_eq!(user.extra["scopes"], ["view"]);
    let robot = [("Impersonate-User", "system:serviceaccount:web:robot")];
    let groups = act("helen", &robot).unwrap().groups.join(" ");
    assert_eq!(
        groups,
        "system:serviceaccounts system:serviceaccounts:web system:authenticated"
    );
}

#[test]
fn and_as_nobody_else() {
    for headers in [
        &[("Impersonate-User", "joe")][..],
        &[
            ("Impersonate-User", "jane"),
            ("Impersonate-Group", "system:masters"),
        ],
        &[
            ("Impersonate-User", "jane"),
            ("Impersonate-Extra-Scopes", "edit"),
        ],
        &[("Impersonate-User", "jane"), ("Impersonate-Uid", "1")],
    ] {
        assert_eq!(act("helen", headers).unwrap_err().code, 403, "{headers:?}");
    }
    let message = act("joe", &[("Impersonate-User", "jane")])
        .unwrap_err()
        .message;
    assert_eq!(
        message,
        "users \"jane\" is forbidden: User \"joe\" cannot impersonate resource \"users\" in API \
         group \"\" at the cluster scope"
    );
    assert_eq!(
        act("helen", &[("Impersonate-Group", "dev")])
            .unwrap_err()
            .code,
        500
    );
}

#[test]
fn keys_of_extras_are_percent_decode() {
    assert_eq!(percent_decode("acme.com%2fproject"), "acme.com/project");
    assert_eq!(percent_decode("50%"), "50%");
}
