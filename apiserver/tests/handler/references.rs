//! What a write refers to, and whether its author has a right to that.

use crate::handler::site::{Answer, Site, site};
use coracle_apiserver::authenticate::User;
use serde_json::{Value, json};

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1";
const CLAIMS: &str = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
const TEMPLATES: &str = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates";
const RBAC: &str = "rbac.authorization.k8s.io";
const SHOWN_JANE: &str = "&{jane  [system:authenticated] map[]}";

/// Gives a user rights, in the namespace `default` alone or everywhere.
async fn grant(site: &Site, user: &User, name: &str, is_cluster: bool, rules: Value) {
    let (prefix, place) = if is_cluster {
        ("Cluster", format!("/apis/{RBAC}/v1/cluster"))
    } else {
        ("", format!("/apis/{RBAC}/v1/namespaces/default/"))
    };
    let version = format!("{RBAC}/v1");
    let role = json!({
        "apiVersion": version, "kind": format!("{prefix}Role"), "metadata": { "name": name },
        "rules": rules,
    });
    let binding = json!({
        "apiVersion": version, "kind": format!("{prefix}RoleBinding"),
        "metadata": { "name": name },
        "roleRef": { "apiGroup": RBAC, "kind": format!("{prefix}Role"), "name": name },
        "subjects": [{ "apiGroup": RBAC, "kind": "User", "name": user.name }],
    });
    site.post(&format!("{place}roles"), &role).await.ok();
    site.post(&format!("{place}rolebindings"), &binding)
        .await
        .ok();
}

async fn site_with(user: &User, rules: Value, until: Value) -> Site {
    let site = site().await;
    site.run();
    grant(&site, user, "writes", true, rules).await;
    site.until_may(user, until).await;
    site
}

/// Jane may write admission policies and bindings, and read one config map.
async fn site_of_policies() -> (Site, User) {
    let jane = User::named("jane");
    let rules = json!([
        { "verbs": ["create", "update", "patch"], "resources": ["*"],
          "apiGroups": ["admissionregistration.k8s.io"] },
        { "verbs": ["get"], "resources": ["configmaps"], "apiGroups": [""],
          "resourceNames": ["hers"] },
    ]);
    let until = json!({ "verb": "get", "resource": "configmaps", "name": "hers" });
    (site_with(&jane, rules, until).await, jane)
}

/// Plurals begin so, kinds too.
const MODES: [(&str, &str); 2] = [("validating", "Validating"), ("mutating", "Mutating")];

fn policy(mode: &str, name: &str, param_kind: Value) -> Value {
    let mut policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": format!("{mode}AdmissionPolicy"), "metadata": { "name": name },
        "spec": {
            "paramKind": param_kind,
            "matchConstraints": { "resourceRules": [{
                "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["deployments"],
            }] },
        },
    });
    if mode == "Validating" {
        policy["spec"]["validations"] = json!([{ "expression": "true" }]);
    } else {
        policy["spec"]["reinvocationPolicy"] = "Never".into();
        policy["spec"]["mutations"] = json!([{
            "patchType": "ApplyConfiguration",
            "applyConfiguration": { "expression": "Object{spec: Object.spec{replicas: 3}}" },
        }]);
    }
    policy
}

fn binding(mode: &str, name: &str, policy: &str, mut param: Value) -> Value {
    param["parameterNotFoundAction"] = "Deny".into();
    let mut binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": format!("{mode}AdmissionPolicyBinding"), "metadata": { "name": name },
        "spec": { "policyName": policy, "paramRef": param },
    });
    if mode == "Validating" {
        binding["spec"]["validationActions"] = json!(["Deny"]);
    }
    binding
}

fn config_maps() -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap" })
}

#[track_caller]
fn succeeded(answer: &Answer) {
    assert!(answer.status.is_success(), "{}", answer.failure());
}

const LABEL: &str = "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}";

#[tokio::test]
async fn who_writes_a_policy_may_get_every_object_of_its_parameters_kind() {
    let (site, jane) = site_of_policies().await;
    let label: Value = serde_json::from_str(LABEL).unwrap();
    for (plural, mode) in MODES {
        let path = format!("{POLICIES}/{plural}admissionpolicies");
        let refused = |name: &str, kind: &str, version: &str| {
            format!(
                "422 Invalid: {mode}AdmissionPolicy.admissionregistration.k8s.io \"{name}\" is \
                 invalid: spec.paramKind: Forbidden: user {SHOWN_JANE} must have \"get\" \
                 permission on all objects of the referenced paramKind (kind={kind}, \
                 apiVersion={version})"
            )
        };
        let post = async |policy: &Value| site.ask_as(&jane, "POST", &path, "json", policy).await;
        let answer = post(&policy(mode, "p", config_maps())).await;
        assert_eq!(answer.failure(), refused("p", "ConfigMap", "v1"));
        let unknown = json!({ "apiVersion": "example.com/v1", "kind": "Limit" });
        let answer = post(&policy(mode, "p", unknown)).await;
        assert_eq!(answer.failure(), refused("p", "Limit", "example.com/v1"));
        succeeded(&post(&policy(mode, "plain", Value::Null)).await);
        // What is wrong by itself names nothing.
        let mut wrong = policy(mode, "p", config_maps());
        wrong["spec"]["failurePolicy"] = "Never".into();
        assert_eq!(
            post(&wrong).await.failure(),
            format!(
                "422 Invalid: {mode}AdmissionPolicy.admissionregistration.k8s.io \"p\" is invalid: \
                 spec.failurePolicy: Unsupported value: \"Never\": supported values: \"Fail\", \
                 \"Ignore\""
            )
        );
        // An update is asked for what is new in it.
        let plain = format!("{path}/plain");
        let more = json!({ "spec": { "paramKind": config_maps() } });
        let answer = site.ask_as(&jane, "PATCH", &plain, "merge-patch+json", &more);
        assert_eq!(answer.await.failure(), refused("plain", "ConfigMap", "v1"));
        site.patch(&plain, "merge-patch", &more).await.ok();
        let answer = site.ask_as(&jane, "PATCH", &plain, "merge-patch+json", &label);
        succeeded(&answer.await);
    }
    let rules = json!([
        { "verbs": ["get"], "resources": ["configmaps"], "apiGroups": [""] },
        { "verbs": ["get"], "resources": ["*"], "apiGroups": ["example.com"] },
    ]);
    grant(&site, &jane, "reads", true, rules).await;
    let until = json!({ "verb": "get", "resource": "all", "group": "example.com" });
    site.until_may(&jane, until).await;
    for (plural, mode) in MODES {
        let path = format!("{POLICIES}/{plural}admissionpolicies");
        let unknown = json!({ "apiVersion": "example.com/v1", "kind": "Limit" });
        for (name, kind) in [("p", config_maps()), ("q", unknown)] {
            let policy = policy(mode, name, kind);
            succeeded(&site.ask_as(&jane, "POST", &path, "json", &policy).await);
        }
    }
}

#[tokio::test]
async fn who_binds_a_policy_may_read_its_parameters() {
    let (site, jane) = site_of_policies().await;
    let label: Value = serde_json::from_str(LABEL).unwrap();
    for (plural, mode) in MODES {
        let policies = format!("{POLICIES}/{plural}admissionpolicies");
        let unknown = json!({ "apiVersion": "example.com/v1", "kind": "Limit" });
        for (name, kind) in [("maps", config_maps()), ("limits", unknown)] {
            site.post(&policies, &policy(mode, name, kind)).await.ok();
        }
        let path = format!("{POLICIES}/{plural}admissionpolicybindings");
        let post = async |binding: &Value| site.ask_as(&jane, "POST", &path, "json", binding).await;
        let refused = |why: &str| {
            format!(
                "422 Invalid: {mode}AdmissionPolicyBinding.admissionregistration.k8s.io \"b\" is \
                 invalid: spec.paramRef: Forbidden: {why}"
            )
        };
        let of_object = |verb: &str| {
            // Upstream has the two in each other's place.
            let (user, verb) = match mode {
                "Mutating" => (verb, SHOWN_JANE),
                _ => (SHOWN_JANE, verb),
            };
            refused(&format!(
                "user {user} does not have \"{verb}\" permission on the object referenced by \
                 paramRef"
            ))
        };
        let everything = |why: &str| {
            refused(&format!(
                "unable to {why} to determine minimum required permissions and user {SHOWN_JANE} \
                 does not have \"get\" permission for all groups, versions and resources"
            ))
        };
        let named = |name: &str| json!({ "name": name, "namespace": "default" });
        let cases = [
            ("maps", named("other"), of_object("get")),
            ("maps", json!({ "selector": {} }), of_object("list")),
            (
                "limits",
                named("hers"),
                everything("resolve paramKind &{example.com/v1 Limit}"),
            ),
            ("none", named("hers"), everything("get policy none")),
        ];
        for (policy, param, expected) in cases {
            let answer = post(&binding(mode, "b", policy, param)).await;
            assert_eq!(answer.failure(), expected);
        }
        succeeded(&post(&binding(mode, "b", "maps", named("hers"))).await);
        let one = format!("{path}/b");
        let other = json!({ "spec": { "paramRef": { "name": "other" } } });
        let answer = site.ask_as(&jane, "PATCH", &one, "merge-patch+json", &other);
        assert_eq!(answer.await.failure(), of_object("get"));
        // A reference that stays is asked again, as upstream does.
        site.patch(&one, "merge-patch", &other).await.ok();
        let answer = site.ask_as(&jane, "PATCH", &one, "merge-patch+json", &label);
        assert_eq!(answer.await.failure(), of_object("get"));
        let other = json!({ "spec": { "policyName": "none" } });
        let answer = site.ask_as(&jane, "PATCH", &one, "merge-patch+json", &other);
        assert_eq!(answer.await.failure(), everything("get policy none"));
    }
}

fn devices(admin_access: bool) -> Value {
    let mut exactly = json!({ "deviceClassName": "gpu" });
    if admin_access {
        exactly["adminAccess"] = true.into();
    }
    let plain = json!({ "name": "a", "exactly": { "deviceClassName": "gpu" } });
    json!({ "devices": { "requests": [plain, { "name": "r", "exactly": exactly }] } })
}

fn claim(name: &str, admin_access: bool) -> Value {
    json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": { "name": name }, "spec": devices(admin_access),
    })
}

/// One device of a driver each, on node `n1`.
fn allocation(drivers: &[&str], admin_access: bool) -> Value {
    let results: Vec<Value> = drivers
        .iter()
        .map(|driver| {
            let mut result =
                json!({ "request": "r", "driver": driver, "pool": "p", "device": "d" });
            if admin_access {
                result["adminAccess"] = true.into();
            }
            result
        })
        .collect();
    let field = json!({ "key": "metadata.name", "operator": "In", "values": ["n1"] });
    json!({
        "devices": { "results": results },
        "nodeSelector": { "nodeSelectorTerms": [{ "matchFields": [field] }] },
    })
}

const UNLABELLED: &str = "Forbidden: admin access to devices requires the \
                          `resource.kubernetes.io/admin-access: true` label on the containing \
                          namespace";

async fn label_namespace(site: &Site, value: Value) {
    let labels = json!({ "metadata": { "labels": {
        "resource.kubernetes.io/admin-access": value,
    } } });
    site.patch("/api/v1/namespaces/default", "merge-patch", &labels)
        .await
        .ok();
}

#[tokio::test]
async fn admin_access_is_for_namespaces_that_are_labelled_for_it() {
    let site = site().await;
    site.run();
    let wish = claim("c", true);
    let template = json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": { "name": "t" }, "spec": { "spec": devices(true) },
    });
    for (path, wish, kind) in [
        (CLAIMS, &wish, "ResourceClaim.resource.k8s.io \"c\""),
        (
            TEMPLATES,
            &template,
            "ResourceClaimTemplate.resource.k8s.io \"t\"",
        ),
    ] {
        let at = "spec.devices.requests[1].adminAccess";
        for label in [Value::Null, "false".into()] {
            label_namespace(&site, label).await;
            assert_eq!(
                site.post(path, wish).await.failure(),
                format!("422 Invalid: {kind} is invalid: {at}: {UNLABELLED}")
            );
        }
        label_namespace(&site, "true".into()).await;
        site.post(path, wish).await.ok();
    }
    // What was granted stays when the label goes.
    label_namespace(&site, Value::Null).await;
    let label: Value = serde_json::from_str(LABEL).unwrap();
    for one in [format!("{CLAIMS}/c"), format!("{TEMPLATES}/t")] {
        site.patch(&one, "merge-patch", &label).await.ok();
    }
    let status = format!("{CLAIMS}/c/status");
    let given = json!({ "status": { "allocation": allocation(&["x"], true) } });
    let at = "status.allocation.devices.results[0].adminAccess";
    assert_eq!(
        site.patch(&status, "merge-patch", &given).await.failure(),
        format!("422 Invalid: ResourceClaim.resource.k8s.io \"c\" is invalid: {at}: {UNLABELLED}")
    );
    label_namespace(&site, "true".into()).await;
    site.patch(&status, "merge-patch", &given).await.ok();
    label_namespace(&site, Value::Null).await;
    let held = json!({ "status": { "reservedFor": [
        { "resource": "pods", "name": "p", "uid": "u" },
    ] } });
    site.patch(&status, "merge-patch", &held).await.ok();
}

#[tokio::test]
async fn a_claim_is_allocated_by_whoever_may_bind_claims_of_the_whole_cluster() {
    let jane = User::named("jane");
    let group = "resource.k8s.io";
    let rules = json!([{ "verbs": ["patch", "update"], "apiGroups": [group],
                         "resources": ["resourceclaims/status"] }]);
    let until = json!({ "verb": "patch", "group": group, "resource": "resourceclaims",
                        "subresource": "status" });
    let site = site_with(&jane, rules, until).await;
    site.post(CLAIMS, &claim("c", false)).await.ok();
    let status = format!("{CLAIMS}/c/status");
    let given = json!({ "status": { "allocation": allocation(&["x"], false) } });
    let give = async || {
        let kind = "merge-patch+json";
        site.ask_as(&jane, "PATCH", &status, kind, &given).await
    };
    const REFUSED: &str = "422 Invalid: ResourceClaim.resource.k8s.io \"c\" is invalid: \
                           status.allocation: Forbidden: changing status.allocation or \
                           status.reservedFor requires resource=\"resourceclaims/binding\", \
                           verb=\"patch\" permission: resourceclaims.resource.k8s.io is \
                           forbidden: User \"jane\" cannot patch resource \
                           \"resourceclaims/binding\" in API group \"resource.k8s.io\" at the \
                           cluster scope";
    assert_eq!(give().await.failure(), REFUSED);
    let rules = json!([{ "verbs": ["patch"], "apiGroups": [group],
                         "resources": ["resourceclaims/binding"] }]);
    let may = |namespace: &str| {
        json!({ "verb": "patch", "group": group, "resource": "resourceclaims",
                "subresource": "binding", "namespace": namespace })
    };
    grant(&site, &jane, "binds", false, rules.clone()).await;
    site.until_may(&jane, may("default")).await;
    assert_eq!(give().await.failure(), REFUSED);
    // What changes neither takes no such right.
    let label: Value = serde_json::from_str(LABEL).unwrap();
    let answer = site.ask_as(&jane, "PATCH", &status, "merge-patch+json", &label);
    succeeded(&answer.await);
    // The verb is that of the request.
    let mut whole = site.get(&format!("{CLAIMS}/c")).await.ok();
    whole["status"] = given["status"].clone();
    grant(&site, &jane, "binds-all", true, rules).await;
    site.until_may(&jane, may("")).await;
    let answer = site.ask_as(&jane, "PUT", &status, "json", &whole).await;
    let expected = REFUSED
        .replace("verb=\"patch\"", "verb=\"update\"")
        .replace("cannot patch", "cannot update");
    assert_eq!(answer.failure(), expected);
    succeeded(&give().await);
}

fn robot_on(node: &str) -> User {
    let mut robot = User::named("system:serviceaccount:default:robot");
    let key = "authentication.kubernetes.io/node-name".to_owned();
    robot.extra.insert(key, vec![node.to_owned()]);
    robot
}

fn refused_driver(verbs: &str, driver: &str) -> String {
    let first = verbs.split(' ').next().unwrap();
    format!(
        "status.devices: Forbidden: changing status.devices requires \
         resource=\"resourceclaims/driver\", verb=\"[{verbs}]\" permission: \
         resourceclaims.resource.k8s.io \"{driver}\" is forbidden: User \
         \"system:serviceaccount:default:robot\" cannot {first} resource \
         \"resourceclaims/driver\" in API group \"resource.k8s.io\" in the namespace \"default\""
    )
}

#[tokio::test]
async fn a_driver_tells_of_its_own_devices_on_its_node_or_on_any() {
    const BOTH: &str = "associated-node:patch arbitrary-node:patch";
    const ANY: &str = "arbitrary-node:patch";
    const INVALID: &str = "422 Invalid: ResourceClaim.resource.k8s.io \"c\" is invalid: ";
    let (robot, elsewhere) = (robot_on("n1"), robot_on("n2"));
    let group = "resource.k8s.io";
    let rules = json!([
        { "verbs": ["patch"], "apiGroups": [group], "resources": ["resourceclaims/status"] },
        { "verbs": ["associated-node:patch"], "apiGroups": [group],
          "resources": ["resourceclaims/driver"], "resourceNames": ["x"] },
    ]);
    let may = |verb: &str, driver: &str| {
        json!({ "verb": verb, "group": group, "resource": "resourceclaims",
                "subresource": "driver", "name": driver, "namespace": "default" })
    };
    let site = site_with(&robot, rules, may("associated-node:patch", "x")).await;
    site.post(CLAIMS, &claim("c", false)).await.ok();
    let status = format!("{CLAIMS}/c/status");
    let given = json!({ "status": { "allocation": allocation(&["x", "y"], false) } });
    site.patch(&status, "merge-patch", &given).await.ok();
    let tell = async |user: &User, drivers: &[&str]| {
        let devices: Vec<Value> = drivers
            .iter()
            .map(|driver| json!({ "driver": driver, "pool": "p", "device": "d" }))
            .collect();
        let told = json!({ "status": { "devices": devices } });
        site.ask_as(user, "PATCH", &status, "merge-patch+json", &told)
            .await
    };
    assert_eq!(
        tell(&elsewhere, &["x"]).await.failure(),
        format!("{INVALID}{}", refused_driver(ANY, "x"))
    );
    assert_eq!(
        tell(&elsewhere, &["y", "x"]).await.failure(),
        format!(
            "{INVALID}[{}, {}]",
            refused_driver(ANY, "x"),
            refused_driver(ANY, "y")
        )
    );
    succeeded(&tell(&robot, &["x"]).await);
    // What stays is nobody's change, and each change is judged by its own driver.
    succeeded(&tell(&elsewhere, &["x"]).await);
    assert_eq!(
        tell(&robot, &["x", "y"]).await.failure(),
        format!("{INVALID}{}", refused_driver(BOTH, "y"))
    );
    // Taking it away is a change too.
    assert_eq!(
        tell(&elsewhere, &[]).await.failure(),
        format!("{INVALID}{}", refused_driver(ANY, "x"))
    );
    let rules = json!([{ "verbs": ["arbitrary-node:patch"], "apiGroups": [group],
                         "resources": ["resourceclaims/driver"], "resourceNames": ["y"] }]);
    grant(&site, &robot, "anywhere", false, rules).await;
    site.until_may(&robot, may("arbitrary-node:patch", "y"))
        .await;
    succeeded(&tell(&elsewhere, &["x", "y"]).await);
    succeeded(&tell(&robot, &["y"]).await);
    // Whoever gives the devices back needs no driver's right: what was said goes with them.
    let freed = json!({ "status": { "allocation": null } });
    site.patch(&status, "merge-patch", &freed).await.ok();
    let left = site.get(&format!("{CLAIMS}/c")).await.ok();
    assert_eq!(left["status"]["devices"], Value::Null);
}
