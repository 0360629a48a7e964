//! Nobody grants what they do not have, whichever verb they write with.

use crate::handler::site::{Answer, Site, site};
use coracle_apiserver::authenticate::User;
use serde_json::{Value, json};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const GROUP: &str = "rbac.authorization.k8s.io";

fn role(kind: &str, name: &str, rules: Value) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
        "metadata": { "name": name }, "rules": rules,
    })
}

fn pods(verbs: &[&str]) -> Value {
    json!([{ "verbs": verbs, "apiGroups": [""], "resources": ["pods"] }])
}

fn binding(kind: &str, name: &str, role_kind: &str, role: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": { "name": name },
        "roleRef": { "apiGroup": GROUP, "kind": role_kind, "name": role },
        "subjects": [{ "apiGroup": GROUP, "kind": "User", "name": "jane" }],
    })
}

async fn jane(site: &Site, method: &str, path: &str, kind: &str, body: &Value) -> Answer {
    let jane = User::named("jane");
    site.ask_as(&jane, method, path, kind, body).await
}

/// Jane may write roles and bindings, and read pods.
async fn site_with_jane() -> Site {
    let site = site().await;
    site.run();
    let rules = json!([
        { "verbs": ["create", "update", "patch", "get"], "apiGroups": [GROUP],
          "resources": ["roles", "rolebindings", "clusterroles", "clusterrolebindings"] },
        { "verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"] },
        { "verbs": ["bind"], "apiGroups": [GROUP], "resources": ["clusterroles"],
          "resourceNames": ["view"] },
        { "verbs": ["escalate"], "apiGroups": [GROUP], "resources": ["clusterroles"],
          "resourceNames": ["hers"] },
    ]);
    let roles = format!("{RBAC}/clusterroles");
    site.post(&roles, &role("ClusterRole", "jane", rules))
        .await
        .ok();
    let bindings = format!("{RBAC}/clusterrolebindings");
    let bound = binding("ClusterRoleBinding", "jane", "ClusterRole", "jane");
    site.post(&bindings, &bound).await.ok();
    let bind = json!({
        "verb": "bind", "group": GROUP, "resource": "clusterroles", "name": "view",
        "namespace": "default",
    });
    site.until_may(&User::named("jane"), bind).await;
    site
}

const REFUSED: &str = "403 Forbidden: roles.rbac.authorization.k8s.io \"r\" is forbidden: user \
                       \"jane\" (groups=[\"system:authenticated\"]) is attempting to grant RBAC \
                       permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], \
                       Verbs:[\"delete\" \"patch\"]}";

#[tokio::test]
async fn a_role_with_more_is_refused_by_every_verb() {
    let site = site_with_jane().await;
    let roles = format!("{RBAC}/namespaces/default/roles");
    let one = format!("{roles}/r");
    let wish = |verbs: &[&str]| role("Role", "r", pods(verbs));
    let more = wish(&["get", "delete", "patch"]);
    let apply = format!("{one}?fieldManager=jane");
    let answers = [
        jane(&site, "POST", &roles, "json", &more).await,
        jane(&site, "PATCH", &apply, "apply-patch+yaml", &more).await,
    ];
    for answer in answers {
        assert_eq!(answer.failure(), REFUSED);
    }
    assert!(
        jane(&site, "POST", &roles, "json", &wish(&["get"]))
            .await
            .status
            .is_success()
    );
    let rules = json!({ "rules": pods(&["get", "delete", "patch"]) });
    let operations = json!([
        { "op": "replace", "path": "/rules/0/verbs", "value": ["get", "delete", "patch"] },
    ]);
    let forced = format!("{apply}&force=true");
    let answers = [
        jane(&site, "PUT", &one, "json", &more).await,
        jane(&site, "PATCH", &one, "merge-patch+json", &rules).await,
        jane(&site, "PATCH", &one, "strategic-merge-patch+json", &rules).await,
        jane(&site, "PATCH", &one, "json-patch+json", &operations).await,
        jane(&site, "PATCH", &forced, "apply-patch+yaml", &more).await,
    ];
    for answer in answers {
        assert_eq!(answer.failure(), REFUSED);
    }
    assert_eq!(site.get(&one).await.ok()["rules"], pods(&["get"]));
}

#[tokio::test]
async fn a_role_that_holds_more_already_is_not_changed_by_whoever_holds_less() {
    let site = site_with_jane().await;
    let roles = format!("{RBAC}/namespaces/default/roles");
    site.post(&roles, &role("Role", "r", pods(&["delete", "patch"])))
        .await
        .ok();
    let one = format!("{roles}/r");
    let labelled = json!({ "metadata": { "labels": { "a": "b" } } });
    let answer = jane(&site, "PATCH", &one, "merge-patch+json", &labelled).await;
    assert_eq!(answer.failure(), REFUSED);
    // What garbage collection does to an object grants nothing.
    let held = json!({ "metadata": { "finalizers": ["example.com/held"] } });
    let answer = jane(&site, "PATCH", &one, "merge-patch+json", &held).await;
    assert!(answer.status.is_success(), "{}", answer.failure());
}

#[tokio::test]
async fn an_aggregated_role_takes_everything_and_escalate_is_by_name() {
    let site = site_with_jane().await;
    let roles = format!("{RBAC}/clusterroles");
    let gathering = |name: &str| {
        let mut role = role("ClusterRole", name, json!([]));
        role["aggregationRule"] = json!({ "clusterRoleSelectors": [{}] });
        role
    };
    let answer = jane(&site, "POST", &roles, "json", &gathering("all")).await;
    assert_eq!(
        answer.failure(),
        "403 Forbidden: clusterroles.rbac.authorization.k8s.io \"all\" is forbidden: must have \
         cluster-admin privileges to use the aggregationRule"
    );
    // One that gathers already is not hers either, nor to be tamed by her.
    site.post(&roles, &gathering("all")).await.ok();
    let tamed = json!({ "aggregationRule": null });
    let one = format!("{roles}/all");
    let answer = jane(&site, "PATCH", &one, "merge-patch+json", &tamed).await;
    assert_eq!(answer.status, 403);
    site.post(&roles, &role("ClusterRole", "hers", json!([])))
        .await
        .ok();
    let more = role("ClusterRole", "hers", pods(&["*"]));
    let answer = jane(&site, "PUT", &format!("{roles}/hers"), "json", &more).await;
    assert!(answer.status.is_success(), "{}", answer.failure());
}

#[tokio::test]
async fn a_binding_needs_the_rights_of_its_role_or_the_right_to_bind_it() {
    let site = site_with_jane().await;
    let bindings = format!("{RBAC}/namespaces/default/rolebindings");
    let bind = |name: &str, kind: &str, role: &str| binding("RoleBinding", name, kind, role);
    let post = |body: Value| {
        let (site, bindings) = (&site, &bindings);
        async move { jane(site, "POST", bindings, "json", &body).await }
    };
    let answer = post(bind("b", "ClusterRole", "cluster-admin")).await;
    assert_eq!(
        answer.failure(),
        "403 Forbidden: rolebindings.rbac.authorization.k8s.io \"b\" is forbidden: user \"jane\" \
         (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not \
         currently held:\n{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}\n\
         {NonResourceURLs:[\"*\"], Verbs:[\"*\"]}"
    );
    assert!(
        post(bind("view", "ClusterRole", "view"))
            .await
            .status
            .is_success()
    );
    // She holds all that this one has.
    assert!(
        post(bind("own", "ClusterRole", "jane"))
            .await
            .status
            .is_success()
    );
    let answer = post(bind("none", "Role", "gone")).await;
    assert_eq!(
        answer.failure(),
        "404 NotFound: rolebindings.rbac.authorization.k8s.io \"gone\" not found"
    );
    // Who is added to a binding that holds more is granted it.
    let mut bound = bind("big", "ClusterRole", "cluster-admin");
    bound["subjects"][0]["name"] = "ann".into();
    site.post(&bindings, &bound).await.ok();
    let joined = json!({ "subjects": [{ "kind": "User", "name": "joe", "apiGroup": GROUP }] });
    let one = format!("{bindings}/big");
    let answer = jane(&site, "PATCH", &one, "merge-patch+json", &joined).await;
    assert_eq!(answer.status, 403);
}
