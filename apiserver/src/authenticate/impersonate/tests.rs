//! Who may act as whom.

use super::*;
use crate::authorize::rbac::GROUP as RBAC;
use crate::view::tests::Objects;
use coracle_api::object::{Object, ObjectKey};
use http::{HeaderName, HeaderValue};
use serde_json::json;

/// Rules of one user, in a role of its own.
fn allow(authorizer: &Authorizer, user: &str, rules: serde_json::Value) {
    let role = json!({ "rules": rules });
    let binding = json!({
        "roleRef": { "kind": "ClusterRole", "name": user },
        "subjects": [{ "kind": "User", "name": user }],
    });
    for (plural, value) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        let object = Object::from_value(value).unwrap();
        authorizer.apply(RBAC, plural, &ObjectKey::new("", user), Some(&object));
    }
}

/// Helen may impersonate Jane, the group `dev`, the scope `view` and the account web/robot.
fn authorizer() -> Authorizer {
    let authorizer = Authorizer::new(Objects::new([]));
    let rule = |group: &str, resource: &str, name: &str| {
        json!({
            "verbs": ["impersonate"], "apiGroups": [group], "resources": [resource],
            "resourceNames": [name],
        })
    };
    let rules = json!([
        rule("", "users", "jane"),
        rule("", "groups", "dev"),
        rule("", "serviceaccounts", "robot"),
        rule("authentication.k8s.io", "userextras/scopes", "view"),
    ]);
    allow(&authorizer, "helen", rules);
    authorizer
}

fn act(user: &str, headers: &[(&str, &str)]) -> Result<User, Status> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name: HeaderName = name.parse().unwrap();
        map.append(name, HeaderValue::from_str(value).unwrap());
    }
    let info = RequestInfo {
        verb: "list".to_owned(),
        resource: "pods".to_owned(),
        namespace: "web".to_owned(),
        is_resource_request: true,
        ..RequestInfo::default()
    };
    acting_as(
        &authorizer(),
        &LastModes::default(),
        User::named(user),
        &map,
        &info,
    )
    .map(|acting| acting.user)
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
        "pods is forbidden: User \"joe\" cannot impersonate-on:user-info:list resource \"pods\" in \
         API group \"\" in the namespace \"web\""
    );
    let nobody = act(
        "helen",
        &[("Impersonate-Group", "dev"), ("Impersonate-Extra-A", "b")],
    );
    let nobody = nobody.unwrap_err();
    assert_eq!(nobody.code, 400);
    assert_eq!(
        nobody.message,
        "requested &user.DefaultInfo{Name:\"\", UID:\"\", Groups:[]string{\"dev\"}, \
         Extra:map[string][]string{\"a\":[]string{\"b\"}}} without impersonating a user name"
    );
}

#[test]
fn a_uid_may_be_taken_on_by_whoever_is_allowed_that_very_one() {
    let authorizer = authorizer();
    let legacy = json!([
        {
            "verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"],
            "resourceNames": ["jane"],
        },
        {
            "verbs": ["impersonate"], "apiGroups": ["authentication.k8s.io"],
            "resources": ["uids"], "resourceNames": ["7"],
        },
    ]);
    allow(&authorizer, "ann", legacy);
    let uid = json!([{
        "verbs": ["impersonate:user-info"], "apiGroups": ["authentication.k8s.io"],
        "resources": ["uids"], "resourceNames": ["7"],
    }]);
    let both = constrained("user-info", "users", "jane");
    let both = [both.as_array().unwrap().as_slice(), uid.as_array().unwrap()].concat();
    allow(&authorizer, "bob", both.into());
    let act = |real: &str, name: &str, uid: &str| {
        let headers = [("Impersonate-User", name), ("Impersonate-Uid", uid)];
        act_as(&authorizer, &User::named(real), &headers, "list")
    };
    for (real, mode) in [("ann", Mode::Legacy), ("bob", Mode::UserInfo)] {
        let acting = act(real, "jane", "7").unwrap();
        assert_eq!(acting.by, Some(mode));
        assert_eq!(
            (acting.user.name.as_str(), acting.user.uid.as_str()),
            ("jane", "7")
        );
        assert_eq!(acting.user.groups, [AUTHENTICATED]);
        assert_eq!(act(real, "jane", "8").unwrap_err().code, 403, "another uid");
        assert_eq!(act(real, "joe", "7").unwrap_err().code, 403, "another user");
    }
    // The right to be the user is none to its uid.
    assert_eq!(act("helen", "jane", "7").unwrap_err().code, 403);
}

#[test]
fn keys_of_extras_are_percent_decode() {
    assert_eq!(percent_decode("acme.com%2fproject"), "acme.com/project");
    assert_eq!(percent_decode("50%"), "50%");
}

/// Both rights of a constrained mode, to list pods as one user.
fn constrained(mode: &str, resource: &str, name: &str) -> serde_json::Value {
    json!([
        {
            "verbs": [format!("impersonate:{mode}")], "apiGroups": ["authentication.k8s.io"],
            "resources": [resource], "resourceNames": [name],
        },
        {
            "verbs": [format!("impersonate-on:{mode}:list")], "apiGroups": [""],
            "resources": ["pods"],
        },
    ])
}

fn list_pods(verb: &str) -> RequestInfo {
    RequestInfo {
        verb: verb.to_owned(),
        resource: "pods".to_owned(),
        is_resource_request: true,
        ..RequestInfo::default()
    }
}

fn act_as(
    authorizer: &Authorizer,
    real: &User,
    headers: &[(&str, &str)],
    verb: &str,
) -> Result<Acting, Status> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name: HeaderName = name.parse().unwrap();
        map.append(name, HeaderValue::from_str(value).unwrap());
    }
    acting_as(
        authorizer,
        &LastModes::default(),
        real.clone(),
        &map,
        &list_pods(verb),
    )
}

#[test]
fn constrained_modes_allow_one_thing_as_one_user() {
    let authorizer = Authorizer::new(Objects::new([]));
    let robot = "system:serviceaccount:web:robot";
    allow(&authorizer, "a", constrained("user-info", "users", "jane"));
    allow(
        &authorizer,
        "b",
        constrained("arbitrary-node", "nodes", "n1"),
    );
    allow(
        &authorizer,
        "c",
        constrained("serviceaccount", "serviceaccounts", "robot"),
    );
    for (real, wanted, mode, groups) in [
        ("a", "jane", Mode::UserInfo, "system:authenticated"),
        (
            "b",
            "system:node:n1",
            Mode::ArbitraryNode,
            "system:nodes system:authenticated",
        ),
        (
            "c",
            robot,
            Mode::ServiceAccount,
            "system:serviceaccounts system:serviceaccounts:web system:authenticated",
        ),
    ] {
        let (real, headers) = (User::named(real), [("Impersonate-User", wanted)]);
        let acting = act_as(&authorizer, &real, &headers, "list").unwrap();
        assert_eq!(acting.by, Some(mode));
        assert_eq!(acting.user.groups.join(" "), groups);
        let other = act_as(&authorizer, &real, &headers, "delete");
        assert_eq!(other.unwrap_err().code, 403, "only lists");
        let grouped = [headers[0], ("Impersonate-Group", "dev")];
        assert_eq!(
            act_as(&authorizer, &real, &grouped, "list")
                .unwrap_err()
                .code,
            403
        );
    }
}

#[test]
fn a_pod_acts_as_its_own_node_and_no_other() {
    let authorizer = Authorizer::new(Objects::new([]));
    let mut agent = User::named("system:serviceaccount:kube-system:agent");
    let own = crate::tokens::EXTRA_NODE_NAME.to_owned();
    agent.extra.insert(own, vec!["n1".to_owned()]);
    allow(
        &authorizer,
        &agent.name,
        constrained("associated-node", "nodes", "*"),
    );
    let act = |node: &str| act_as(&authorizer, &agent, &[("Impersonate-User", node)], "list");
    let acting = act("system:node:n1").unwrap();
    assert_eq!(acting.by, Some(Mode::AssociatedNode));
    assert_eq!(
        Mode::AssociatedNode.constraint().as_deref(),
        Some("impersonate:associated-node")
    );
    assert_eq!(act("system:node:n2").unwrap_err().code, 403);
}

#[test]
fn nobody_becomes_the_admin_by_a_constrained_mode() {
    let authorizer = Authorizer::new(Objects::new([]));
    let all = json!([{
        "verbs": ["impersonate:user-info", "impersonate-on:user-info:list"],
        "apiGroups": ["*"], "resources": ["*"],
    }]);
    allow(&authorizer, "a", all);
    let act = |headers: &[(&str, &str)]| {
        let headers = [&[("Impersonate-User", "jane")], headers].concat();
        act_as(&authorizer, &User::named("a"), &headers, "list").map(|acting| acting.by)
    };
    assert_eq!(
        act(&[("Impersonate-Group", "dev")]),
        Ok(Some(Mode::UserInfo))
    );
    for (header, why) in [
        (
            ("Impersonate-Group", "system:masters"),
            "impersonating the system:masters group is not allowed",
        ),
        (
            ("Impersonate-Group", ""),
            "impersonating the empty string group is not allowed",
        ),
        (
            ("Impersonate-Extra-Scopes", "a"),
            "impersonating an invalid key in extra is not allowed",
        ),
    ] {
        let error = act(&[header]).unwrap_err();
        assert!(error.message.contains(why), "{}", error.message);
    }
}

#[test]
fn the_mode_that_was_last_allowed_is_asked_first() {
    let (authorizer, last) = (authorizer(), LastModes::default());
    let refused = |last: &LastModes, name: &str| {
        let mut map = HeaderMap::new();
        map.insert("impersonate-user", HeaderValue::from_str(name).unwrap());
        let acted = acting_as(
            &authorizer,
            last,
            User::named("helen"),
            &map,
            &list_pods("list"),
        );
        acted.map_err(|error| error.message)
    };
    assert!(
        refused(&last, "joe")
            .unwrap_err()
            .contains("impersonate-on:user-info:list")
    );
    assert_eq!(refused(&last, "jane").unwrap().by, Some(Mode::Legacy));
    assert!(
        refused(&last, "joe")
            .unwrap_err()
            .starts_with("users \"joe\" is forbidden")
    );
    for other in 0..LAST_MODES_MAX {
        last.set(&other.to_string(), Mode::UserInfo);
    }
    assert_eq!(last.get("helen"), None);
    assert_eq!(last.0.lock().len(), LAST_MODES_MAX);
}
