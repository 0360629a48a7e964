//! Access reviews say what the authorizer decides.

use super::*;
use crate::authenticate;
use crate::authorize::rbac;
use crate::bootstrap;
use crate::bootstrap_tokens;
use crate::pki::Pki;
use crate::pki::names::ServerNames;
use crate::tokens::{self, Tokens};
use crate::view::tests::Objects;
use coracle_api::catalogue;

const TOKEN: &str = "abcdef.0123456789abcdef";

fn now() -> Timestamp {
    "2026-06-01T00:00:00Z".parse().unwrap()
}

fn answer(user: &User, plural: &str, review: Value) -> Result<Value, Status> {
    whole_answer(user, plural, review).map(|done| done["status"].clone())
}

fn whole_answer(user: &User, plural: &str, review: Value) -> Result<Value, Status> {
    let directory = tempfile::tempdir().unwrap();
    let pki = Pki::open(directory.path(), ServerNames::default(), now()).unwrap();
    let token = bootstrap_tokens::secret(TOKEN, "", None, now());
    let view = Objects::new([("secrets", token.into_value())]);
    let authorizer = Authorizer::new(view.clone());
    for object in bootstrap::objects() {
        let plural = bootstrap::plural(&object);
        authorizer.apply(rbac::GROUP, plural, &object.key(), Some(&object));
    }
    let tokens = Tokens::open(directory.path(), &tokens::Settings::default()).unwrap();
    let authenticator = Authenticator::open(
        &authenticate::Settings::default(),
        pki.clients().clone(),
        view,
        Arc::new(tokens),
    )
    .unwrap();
    let reviews = Reviews::new(Arc::new(authorizer), Arc::new(authenticator));
    let resource = catalogue::all()
        .iter()
        .find(|row| row.plural == plural)
        .unwrap();
    assert!(is_review(resource));
    let asked = Question {
        resource,
        user,
        namespace: "",
        now: now(),
    };
    let review = Object::from_value(review).unwrap();
    let mut remarks = Remarks::default();
    let answered = reviews.answer(&asked, review, &mut remarks);
    crate::view::tests::now_or_panic(answered).map(|done| done.to_value())
}

#[test]
fn a_user_asks_about_their_own_access() {
    let jane = User::named("jane");
    let ask = |spec: Value| answer(&jane, "selfsubjectaccessreviews", json!({ "spec": spec }));
    let healthz = json!({ "nonResourceAttributes": { "verb": "get", "path": "/healthz" } });
    let status = ask(healthz).unwrap();
    assert_eq!(status["allowed"], true);
    assert!(
        status["reason"]
            .as_str()
            .unwrap()
            .contains("ClusterRoleBinding")
    );
    let pods = json!({ "resourceAttributes": { "verb": "list", "resource": "pods" } });
    assert_eq!(ask(pods).unwrap(), json!({ "allowed": false }));
    assert_eq!(ask(json!({})).unwrap_err().code, 422);
}

#[test]
fn access_of_another_user_is_reviewed_by_name_and_groups() {
    let admin = User::named("admin");
    let ask = |user: &str, groups: Value| {
        let review = json!({ "spec": {
            "user": user,
            "groups": groups,
            "resourceAttributes": {
                "verb": "list",
                "resource": "pods",
                "fieldSelector": { "requirements": [
                    { "key": "spec.nodeName", "operator": "In", "values": ["n1"] },
                ] },
            },
        } });
        answer(&admin, "subjectaccessreviews", review)
    };
    let allowed = |answer: Result<Value, Status>| answer.unwrap()["allowed"] == true;
    assert!(allowed(ask("system:node:n1", json!(["system:nodes"]))));
    assert!(!allowed(ask("system:node:n2", json!(["system:nodes"]))));
    assert!(allowed(ask("", json!(["system:masters"]))));
    assert_eq!(ask("", json!([])).unwrap_err().code, 422);
}

#[test]
fn a_local_review_stays_in_its_namespace() {
    let review = |namespace: &str| {
        json!({
            "metadata": { "namespace": "web" },
            "spec": {
                "user": "jane",
                "resourceAttributes": {
                    "verb": "get", "resource": "pods", "namespace": namespace,
                },
            },
        })
    };
    let admin = User::named("admin");
    let ask = |namespace| answer(&admin, "localsubjectaccessreviews", review(namespace));
    assert!(ask("web").is_ok());
    assert!(
        ask("other")
            .unwrap_err()
            .message
            .contains("must match metadata.namespace")
    );
}

#[test]
fn rules_of_a_user_are_listed() {
    let jane = User::named("jane");
    let ask = |spec: Value| answer(&jane, "selfsubjectrulesreviews", json!({ "spec": spec }));
    let status = ask(json!({ "namespace": "web" })).unwrap();
    assert_eq!(status["incomplete"], false);
    assert!(!status["resourceRules"].as_array().unwrap().is_empty());
    assert!(!status["nonResourceRules"].as_array().unwrap().is_empty());
    assert_eq!(
        ask(json!({})).unwrap_err().message,
        "no namespace on request"
    );
}

#[test]
fn who_am_i_and_whose_token_is_this() {
    let jane = User::named("jane");
    let asked = json!({ "metadata": { "labels": { "a": "b" } } });
    let review = whole_answer(&jane, "selfsubjectreviews", asked).unwrap();
    assert_eq!(review["status"]["userInfo"]["username"], "jane");
    let metadata = json!({ "creationTimestamp": "2026-06-01T00:00:00Z" });
    assert_eq!(review["metadata"], metadata);
    let ask = |token: &str| answer(&jane, "tokenreviews", json!({ "spec": { "token": token } }));
    let good = ask(TOKEN).unwrap();
    assert_eq!(good["authenticated"], true);
    assert_eq!(good["user"]["username"], "system:bootstrap:abcdef");
    assert!(ask("nonsense").unwrap().get("authenticated").is_none());
    assert_eq!(ask("").unwrap_err().code, 400);
}

/// The status of a self review about pods of a node with these selectors.
fn selected(selectors: Value) -> Result<Value, Status> {
    let mut node = User::named("system:node:n1");
    node.groups.push("system:nodes".to_owned());
    let mut attributes = json!({ "verb": "list", "resource": "pods" });
    let added = selectors.as_object().unwrap().clone();
    attributes.as_object_mut().unwrap().extend(added);
    let review = json!({ "spec": { "resourceAttributes": attributes } });
    answer(&node, "selfsubjectaccessreviews", review)
}

#[test]
fn selectors_narrow_what_is_asked_as_far_as_they_are_understood() {
    let on_n1 = json!({ "key": "spec.nodeName", "operator": "In", "values": ["n1"] });
    let allowed = |selectors| selected(selectors).unwrap();
    assert_eq!(
        allowed(json!({ "fieldSelector": { "rawSelector": "spec.nodeName=n1" } }))["allowed"],
        true
    );
    let unknown = json!({ "key": "a", "operator": "Like", "values": ["b"] });
    let partly = allowed(json!({ "fieldSelector": { "requirements": [unknown, on_n1] } }));
    assert_eq!(
        partly,
        json!({
            "allowed": true,
            "evaluationError":
                "spec.resourceAttributes.fieldSelector partially ignored due to parse error",
        })
    );
    let ignored = allowed(json!({
        "fieldSelector": { "rawSelector": "a" },
        "labelSelector": { "requirements": [unknown] },
    }));
    assert_eq!(ignored["allowed"], false);
    assert_eq!(
        ignored["reason"],
        "can only list/watch pods with spec.nodeName field selector"
    );
    assert_eq!(
        ignored["evaluationError"],
        "spec.resourceAttributes.fieldSelector ignored due to parse error; \
         spec.resourceAttributes.labelSelector ignored due to parse error"
    );
    let commas =
        json!({ "key": "spec.nodeName", "operator": "In", "values": ["x,spec.nodeName=n1"] });
    assert_eq!(
        allowed(json!({ "fieldSelector": { "requirements": [commas] } }))["allowed"],
        false
    );
}

#[test]
fn faults_of_selectors_are_told_all_at_once() {
    let refused = selected(json!({
        "fieldSelector": { "rawSelector": "a=b", "requirements": [
            { "operator": "In" }, { "key": "a", "operator": "Exists", "values": ["b"] },
        ] },
        "labelSelector": {},
    }));
    let told = refused.unwrap_err().message;
    for part in [
        "spec.resourceAttributes.fieldSelector.rawSelector: Invalid value: \"a=b\": may not \
         specified at the same time as requirements",
        "spec.resourceAttributes.fieldSelector.requirements[0].key: Required value: must be \
         specified",
        "spec.resourceAttributes.fieldSelector.requirements[0].values: Required value: must be \
         specified when `operator` is 'In' or 'NotIn'",
        "spec.resourceAttributes.fieldSelector.requirements[1].values: Forbidden: may not be \
         specified when `operator` is 'Exists' or 'DoesNotExist'",
        "spec.resourceAttributes.labelSelector.requirements: Required value: when \
         spec.resourceAttributes.labelSelector is specified, requirements or rawSelector is \
         required",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
}

#[test]
fn a_review_is_no_object_with_a_name() {
    let jane = User::named("jane");
    let review = json!({
        "metadata": { "name": "mine" },
        "spec": { "resourceAttributes": { "verb": "get", "resource": "pods" } },
    });
    let told = answer(&jane, "selfsubjectaccessreviews", review)
        .unwrap_err()
        .message;
    assert!(
        told.contains("metadata: Invalid value") && told.ends_with("must be empty"),
        "{told}"
    );
}

#[test]
fn rules_of_a_node_are_not_all_of_its_rights() {
    let mut node = User::named("system:node:n1");
    node.groups.push("system:nodes".to_owned());
    let review = json!({ "spec": { "namespace": "web" } });
    let status = answer(&node, "selfsubjectrulesreviews", review).unwrap();
    assert_eq!(status["incomplete"], true);
    assert_eq!(
        status["evaluationError"],
        "node authorizer does not support user rule resolution"
    );
}
