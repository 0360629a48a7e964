//! Access reviews say what the authorizer decides.

use super::*;
use crate::authorize::rbac;
use crate::bootstrap;
use crate::bootstrap_tokens;
use crate::pki::Pki;
use crate::pki::names::ServerNames;
use crate::tokens::{ISSUER_DEFAULT, Tokens};
use crate::view::tests::Objects;
use coracle_api::catalogue;

const TOKEN: &str = "abcdef.0123456789abcdef";

fn now() -> Timestamp {
    "2026-06-01T00:00:00Z".parse().unwrap()
}

fn answer(user: &User, plural: &str, review: Value) -> Result<Value, Status> {
    let directory = tempfile::tempdir().unwrap();
    let pki = Pki::open(directory.path(), ServerNames::default(), now()).unwrap();
    let token = bootstrap_tokens::secret(TOKEN, "", None, now());
    let view = Objects::new([("secrets", token.into_value())]);
    let authorizer = Authorizer::new(view.clone());
    for object in bootstrap::objects() {
        let plural = bootstrap::plural(&object);
        authorizer.apply(rbac::GROUP, plural, &object.key(), Some(&object));
    }
    let tokens = Tokens::open(directory.path(), ISSUER_DEFAULT).unwrap();
    let authenticator = Authenticator::new(pki.clients().clone(), view, Arc::new(tokens));
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
    reviews
        .answer(&asked, review)
        .map(|done| done.to_value()["status"].clone())
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
    let status = answer(&jane, "selfsubjectreviews", json!({})).unwrap();
    assert_eq!(status["userInfo"]["username"], "jane");
    let ask = |token: &str| answer(&jane, "tokenreviews", json!({ "spec": { "token": token } }));
    let good = ask(TOKEN).unwrap();
    assert_eq!(good["authenticated"], true);
    assert_eq!(good["user"]["username"], "system:bootstrap:abcdef");
    assert!(ask("nonsense").unwrap().get("authenticated").is_none());
    assert_eq!(ask("").unwrap_err().code, 400);
}
