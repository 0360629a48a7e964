//! What anonymous, any user, bootstrap tokens and role holders may do.

use super::*;
use expect_test::{Expect, expect};

fn check(objects: &[(&'static str, Value)], user: &str, asked: &[&str], expected: Expect) {
    let authorizer = authorizer(objects);
    let user = match user {
        "system:anonymous" => User::anonymous(),
        name => User::named(name),
    };
    let lines: Vec<String> = asked
        .iter()
        .map(|text| format!("{text}: {}", answer(&authorizer, &user, text)))
        .collect();
    expected.assert_eq(&lines.join("\n"));
}

fn binding(kind: &str, role: &str, subject: Value) -> Value {
    json!({
        "metadata": { "namespace": "web", "name": "b" },
        "roleRef": { "kind": kind, "name": role },
        "subjects": [subject],
    })
}

fn role(rules: Value) -> (&'static str, Value) {
    (
        "roles",
        json!({ "metadata": { "namespace": "web", "name": "r" }, "rules": rules }),
    )
}

#[test]
fn anonymous_sees_health_and_version_and_the_ca() {
    check(
        &[],
        "system:anonymous",
        &[
            "get /healthz",
            "get /livez",
            "get /version",
            "get /coracle/v1/ca",
            "post /coracle/v1/ca",
            "get /metrics",
            "get /api",
            "list pods default",
            "get nodes - n1",
        ],
        expect![[r#"
            get /healthz: yes
            get /livez: yes
            get /version: yes
            get /coracle/v1/ca: yes
            post /coracle/v1/ca: forbidden: User "system:anonymous" cannot post path "/coracle/v1/ca"
            get /metrics: forbidden: User "system:anonymous" cannot get path "/metrics"
            get /api: forbidden: User "system:anonymous" cannot get path "/api"
            list pods default: pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" in the namespace "default"
            get nodes - n1: nodes "n1" is forbidden: User "system:anonymous" cannot get resource "nodes" in API group "" at the cluster scope"#]],
    );
}

#[test]
fn any_user_may_discover_and_ask_about_themselves() {
    check(
        &[],
        "jane",
        &[
            "get /apis/apps/v1",
            "get /openapi/v3",
            "create authorization.k8s.io:selfsubjectaccessreviews",
            "create authorization.k8s.io:subjectaccessreviews",
            "update apps:deployments/scale web shop",
        ],
        expect![[r#"
            get /apis/apps/v1: yes
            get /openapi/v3: yes
            create authorization.k8s.io:selfsubjectaccessreviews: yes
            create authorization.k8s.io:subjectaccessreviews: subjectaccessreviews.authorization.k8s.io is forbidden: User "jane" cannot create resource "subjectaccessreviews" in API group "authorization.k8s.io" at the cluster scope
            update apps:deployments/scale web shop: deployments.apps "shop" is forbidden: User "jane" cannot update resource "deployments/scale" in API group "apps" in the namespace "web""#]],
    );
}

#[test]
fn a_bootstrap_token_may_ask_for_a_certificate_and_little_else() {
    let authorizer = authorizer(&[]);
    let mut user = User::named("system:bootstrap:abcdef");
    user.groups.push("system:bootstrappers".to_owned());
    let allowed = |text| authorizer.authorize(&user, &request(text)).is_allowed();
    assert!(allowed(
        "create certificates.k8s.io:certificatesigningrequests"
    ));
    assert!(allowed(
        "get certificates.k8s.io:certificatesigningrequests - csr-1"
    ));
    assert!(!allowed(
        "update certificates.k8s.io:certificatesigningrequests/approval - csr-1"
    ));
    assert!(!allowed("list secrets kube-system"));
    assert!(!allowed("create nodes"));
}

#[test]
fn controllers_and_scheduler_have_their_upstream_rights() {
    let authorizer = authorizer(&[]);
    let account = |name: &str| User::named(&format!("system:serviceaccount:kube-system:{name}"));
    let allowed = |user: &User, text| authorizer.authorize(user, &request(text)).is_allowed();
    let deployments = account("deployment-controller");
    assert!(allowed(&deployments, "create apps:replicasets web"));
    assert!(allowed(
        &deployments,
        "update apps:deployments/status web shop"
    ));
    assert!(!allowed(&deployments, "get secrets web s"));
    let scheduler = User::named("system:kube-scheduler");
    assert!(allowed(&scheduler, "create pods/binding web p"));
    assert!(!allowed(&scheduler, "create pods web"));
    let manager = User::named("system:kube-controller-manager");
    assert!(allowed(&manager, "list apps:deployments"));
    assert!(allowed(
        &account("namespace-controller"),
        "deletecollection apps:deployments web"
    ));
}

#[test]
fn masters_may_do_anything() {
    let mut user = User::named("kubernetes-admin");
    user.groups.push("system:masters".to_owned());
    // Before any rule is known, too.
    let authorizer = Authorizer::new(Objects::new([]));
    assert!(
        authorizer
            .authorize(&user, &request("delete nodes - n1"))
            .is_allowed()
    );
}

#[test]
fn a_role_binding_grants_in_its_namespace() {
    let rules = json!([
        { "verbs": ["get"], "apiGroups": [""], "resources": ["pods", "pods/log"] },
        { "verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["s"] },
        { "verbs": ["*"], "apiGroups": ["*"], "resources": ["*/scale"] },
    ]);
    let bound = binding("Role", "r", json!({ "kind": "User", "name": "jane" }));
    check(
        &[role(rules), ("rolebindings", bound)],
        "jane",
        &[
            "get pods web p",
            "get pods/log web p",
            "get pods/exec web p",
            "list pods web",
            "get pods other p",
            "get secrets web s",
            "list secrets web",
            "get secrets web t",
            "patch apps:replicasets/scale web x",
            "patch apps:replicasets web x",
        ],
        expect![[r#"
            get pods web p: yes
            get pods/log web p: yes
            get pods/exec web p: pods "p" is forbidden: User "jane" cannot get resource "pods/exec" in API group "" in the namespace "web"
            list pods web: pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "web"
            get pods other p: pods "p" is forbidden: User "jane" cannot get resource "pods" in API group "" in the namespace "other"
            get secrets web s: yes
            list secrets web: secrets is forbidden: User "jane" cannot list resource "secrets" in API group "" in the namespace "web"
            get secrets web t: secrets "t" is forbidden: User "jane" cannot get resource "secrets" in API group "" in the namespace "web"
            patch apps:replicasets/scale web x: yes
            patch apps:replicasets web x: replicasets.apps "x" is forbidden: User "jane" cannot patch resource "replicasets" in API group "apps" in the namespace "web""#]],
    );
}

#[test]
fn paths_are_granted_one_by_one_below_a_prefix_or_all_and_by_cluster_bindings_alone() {
    let cluster_role = |name: &str, verbs: Value, paths: Value| {
        let rules = json!([{ "verbs": verbs, "nonResourceURLs": paths }]);
        let role = json!({ "metadata": { "name": name }, "rules": rules });
        ("clusterroles", role)
    };
    let bound = |name: &str, user: &str| {
        let binding = json!({
            "metadata": { "name": user },
            "roleRef": { "kind": "ClusterRole", "name": name },
            "subjects": [{ "kind": "User", "name": user }],
        });
        ("clusterrolebindings", binding)
    };
    let joe = json!({ "kind": "User", "name": "joe" });
    let objects = [
        cluster_role("some", json!(["get"]), json!(["/metrics", "/debug/*"])),
        cluster_role("all", json!(["*"]), json!(["*"])),
        bound("some", "jane"),
        bound("all", "ann"),
        ("rolebindings", binding("ClusterRole", "all", joe)),
    ];
    let asked = [
        "get /metrics",
        "get /metrics/slis",
        "post /metrics",
        "get /debug/pprof/profile",
        "get /debug",
        "get pods web p",
    ];
    let paths = |user: &str| -> Vec<&str> {
        let authorizer = authorizer(&objects);
        let user = User::named(user);
        let mut allowed = asked.to_vec();
        allowed.retain(|text| authorizer.authorize(&user, &request(text)).is_allowed());
        allowed
    };
    assert_eq!(paths("jane"), ["get /metrics", "get /debug/pprof/profile"]);
    // Every path, and no resource.
    assert_eq!(paths("ann"), asked[..5]);
    assert!(paths("joe").is_empty(), "a namespace has no paths");
}

#[test]
fn a_missing_role_is_named_and_a_cluster_role_may_be_bound_in_a_namespace() {
    let group = json!({ "kind": "Group", "name": "system:authenticated" });
    let account = json!({ "kind": "ServiceAccount", "name": "robot" });
    check(
        &[("rolebindings", binding("Role", "gone", group))],
        "jane",
        &["list pods web"],
        expect![[
            r#"list pods web: pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "web": RBAC: role.rbac.authorization.k8s.io "gone" not found"#
        ]],
    );
    check(
        &[("rolebindings", binding("ClusterRole", "view", account))],
        "system:serviceaccount:web:robot",
        &["list pods web", "list pods", "list secrets web"],
        expect![[r#"
            list pods web: yes
            list pods: pods is forbidden: User "system:serviceaccount:web:robot" cannot list resource "pods" in API group "" at the cluster scope
            list secrets web: secrets is forbidden: User "system:serviceaccount:web:robot" cannot list resource "secrets" in API group "" in the namespace "web""#]],
    );
}

#[test]
fn what_is_taken_away_is_gone() {
    let bound = binding(
        "ClusterRole",
        "view",
        json!({ "kind": "User", "name": "jane" }),
    );
    let authorizer = authorizer(&[("rolebindings", bound)]);
    let jane = User::named("jane");
    let ask = request("list pods web");
    let decision = authorizer.authorize(&jane, &ask);
    assert_eq!(
        decision.reason(),
        r#"RBAC: allowed by RoleBinding "b/web" of ClusterRole "view" to User "jane""#
    );
    let key = ObjectKey::new("web", "b");
    authorizer.apply(rbac::GROUP, "rolebindings", &key, None);
    assert!(!authorizer.authorize(&jane, &ask).is_allowed());
}

#[test]
fn markup_in_a_name_is_not_echoed() {
    let text = answer(&authorizer(&[]), &User::named("jane"), "get /<script>");
    assert_eq!(
        text,
        r#"forbidden: User "jane" cannot get path "/&lt;script&gt;""#
    );
}

#[test]
fn nobody_grants_what_they_do_not_have() {
    let rules = json!([
        { "verbs": ["*"], "apiGroups": [rbac::GROUP], "resources": ["roles", "rolebindings"] },
        { "verbs": ["get"], "apiGroups": [""], "resources": ["pods"] },
    ]);
    let bound = binding("Role", "r", json!({ "kind": "User", "name": "jane" }));
    let mut authorizer = authorizer(&[role(rules), ("rolebindings", bound)]);
    let jane = User::named("jane");
    let object = |value: Value| Object::from_value(value).unwrap();
    let wish = |verbs: Value| {
        object(json!({
            "metadata": { "namespace": "web", "name": "mine" },
            "rules": [{ "verbs": verbs, "apiGroups": [""], "resources": ["pods"] }],
        }))
    };
    // `*` on roles holds escalate, so take the plain verbs instead.
    let plain = json!([
        { "verbs": ["create", "update"], "apiGroups": [rbac::GROUP], "resources": ["roles"] },
        { "verbs": ["get"], "apiGroups": [""], "resources": ["pods"] },
    ]);
    assert!(escalation::check(&authorizer, &jane, "roles", &wish(json!(["delete"])), None).is_ok());
    let (plural, value) = role(plain);
    let changed = object(value);
    authorizer.apply(rbac::GROUP, plural, &changed.key(), Some(&changed));
    assert!(escalation::check(&authorizer, &jane, "roles", &wish(json!(["get"])), None).is_ok());
    let refused = wish(json!(["get", "delete"]));
    let status = escalation::check(&authorizer, &jane, "roles", &refused, None).unwrap_err();
    expect![[r#"
        roles.rbac.authorization.k8s.io "mine" is forbidden: user "jane" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:
        {APIGroups:[""], Resources:["pods"], Verbs:["delete"]}"#]]
    .assert_eq(&status.message);
    // What was there already counts too, but for what garbage collection changes.
    let old = Some(&refused);
    let mut held = refused.clone();
    held.set(&["metadata", "finalizers"], json!(["a/b"]));
    assert!(escalation::check(&authorizer, &jane, "roles", &held, old).is_ok());
    held.set(&["metadata", "labels"], json!({ "a": "b" }));
    assert!(escalation::check(&authorizer, &jane, "roles", &held, old).is_err());
    let admin = object(binding(
        "ClusterRole",
        "admin",
        json!({ "kind": "User", "name": "jane" }),
    ));
    let status = escalation::check(&authorizer, &jane, "rolebindings", &admin, None).unwrap_err();
    assert_eq!(status.code, 403);
    authorizer = super::authorizer(&[]);
    let missing = object(binding("Role", "gone", json!({})));
    let status = escalation::check(&authorizer, &jane, "rolebindings", &missing, None).unwrap_err();
    assert_eq!(status.code, 404);
}

#[test]
fn a_subresource_may_be_named_as_one_word_as_reviews_do() {
    let rules = json!([{ "verbs": ["get"], "apiGroups": [""], "resources": ["pods/log"] }]);
    let bound = binding("Role", "r", json!({ "kind": "User", "name": "jane" }));
    let authorizer = authorizer(&[role(rules), ("rolebindings", bound)]);
    let mut joined = request("get pods web p");
    joined.resource = "pods/log".to_owned();
    let jane = User::named("jane");
    assert!(authorizer.authorize(&jane, &joined).is_allowed());
    assert!(
        !authorizer
            .authorize(&jane, &request("get pods web p"))
            .is_allowed()
    );
}

#[test]
fn a_service_account_without_a_namespace_is_told_with_that_of_its_binding() {
    let account = json!({ "kind": "ServiceAccount", "name": "robot" });
    let bound = binding("ClusterRole", "view", account);
    let authorizer = authorizer(&[("rolebindings", bound)]);
    let robot = User::named("system:serviceaccount:web:robot");
    let decision = authorizer.authorize(&robot, &request("list pods web"));
    assert_eq!(
        decision.reason(),
        r#"RBAC: allowed by RoleBinding "b/web" of ClusterRole "view" to ServiceAccount "robot/web""#
    );
}

#[test]
fn decisions_are_counted_by_who_made_them() {
    let authorizer = authorizer(&[]);
    authorizer.authorize(&User::named("system:node:n1"), &request("get nodes - n1"));
    authorizer.authorize(&User::named("jane"), &request("get /healthz"));
    authorizer.authorize(&User::named("jane"), &request("list pods"));
    let key = ObjectKey::new("web", "p");
    let pod = json!({ "metadata": { "namespace": "web", "name": "p" } });
    authorizer.apply("", "pods", &key, Object::from_value(pod).as_ref());
    let mut text = crate::metrics::text::Text::default();
    authorizer.counts.text(&mut text);
    let text = text.into_string();
    let decisions = "apiserver_authorization_decisions_total";
    for line in [
        format!("{decisions}{{type=\"Node\",name=\"node\",decision=\"allowed\"}} 1"),
        format!("{decisions}{{type=\"RBAC\",name=\"rbac\",decision=\"allowed\"}} 1"),
        "node_authorizer_graph_actions_duration_seconds_count{operation=\"AddPod\"} 1".to_owned(),
    ] {
        assert!(text.lines().any(|own| own == line), "{line}\n{text}");
    }
}
