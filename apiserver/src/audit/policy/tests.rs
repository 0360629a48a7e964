//! Which rule decides, and which policies are refused.

use super::*;
use expect_test::expect;
use http::Method;

fn policy(rules: &str) -> Policy {
    let head = "apiVersion: audit.k8s.io/v1\nkind: Policy\n";
    Policy::parse(&format!("{head}{rules}")).unwrap()
}

fn level(policy: &Policy, user: &str, method: Method, path: &str) -> &'static str {
    let info = RequestInfo::parse(&method, &path.parse().unwrap());
    policy.verdict(Some(&User::named(user)), &info).level.name()
}

#[test]
fn the_first_rule_that_matches_decides() {
    let policy = policy(
        r#"
rules:
- level: None
  users: ["system:kube-scheduler"]
  verbs: ["watch"]
- level: Metadata
  resources: [{group: "", resources: ["secrets", "pods/log"]}]
- level: RequestResponse
  resources: [{group: "apps", resources: ["*/scale"]}, {group: "batch"}]
- level: Request
  namespaces: ["prod", ""]
  resources: [{group: "*", resources: ["*"]}]
- level: None
  nonResourceURLs: ["/healthz*", "/version"]
- level: Metadata
  userGroups: ["system:nodes"]
"#,
    );
    let of = |user: &str, path: &str| level(&policy, user, Method::GET, path);
    let at = |path: &str| of("jane", path);
    assert_eq!(of("system:kube-scheduler", "/api/v1/pods?watch=1"), "None");
    assert_eq!(at("/api/v1/namespaces/a/secrets/s"), "Metadata");
    assert_eq!(at("/api/v1/namespaces/a/pods/p/log"), "Metadata");
    assert_eq!(at("/api/v1/namespaces/a/pods/p"), "None");
    assert_eq!(
        at("/apis/apps/v1/namespaces/a/deployments/d/scale"),
        "RequestResponse"
    );
    assert_eq!(at("/apis/batch/v1/namespaces/a/jobs"), "RequestResponse");
    assert_eq!(at("/api/v1/namespaces/prod/pods"), "Request");
    assert_eq!(at("/api/v1/nodes"), "Request");
    assert_eq!(at("/healthz/ping"), "None");
    assert_eq!(of("system:node:n", "/healthz"), "None");
    assert_eq!(of("system:node:n", "/metrics"), "Metadata");
    assert_eq!(at("/metrics"), "None");
}

#[test]
fn stages_add_up_and_a_rule_overrides_managed_fields() {
    let policy = policy(
        "omitStages: [RequestReceived]\nomitManagedFields: true\nrules:\n- level: Request\n  \
         omitStages: [Panic]\n  omitManagedFields: false\n",
    );
    let info = RequestInfo::parse(&Method::GET, &"/api".parse().unwrap());
    let verdict = policy.verdict(None, &info);
    assert!(!verdict.omit_managed_fields);
    let omitted: Vec<_> = verdict.omitted.iter().map(|stage| stage.name()).collect();
    assert_eq!(omitted, ["RequestReceived", "Panic"]);
}

#[test]
fn nobody_is_no_user() {
    let policy = policy("rules:\n- level: Request\n  users: [\"\"]\n- level: Metadata\n");
    let info = RequestInfo::parse(&Method::GET, &"/api".parse().unwrap());
    assert_eq!(policy.verdict(None, &info).level, Level::Metadata);
}

#[test]
fn a_bad_policy_says_what_is_wrong() {
    let why = |text: &str| Policy::parse(text).unwrap_err().0;
    let with = |rules: &str| {
        why(&format!(
            "apiVersion: audit.k8s.io/v1\nkind: Policy\n{rules}"
        ))
    };
    let all = [
        why("rules: []"),
        why("apiVersion: audit.k8s.io/v1beta1\nkind: Policy\nrules: [{level: None}]"),
        with("rules: []"),
        with("rules: [{level: Everything}]"),
        with("rules: [{level: None, user: [a]}]"),
        with("rules: [{level: None, nonResourceURLs: [healthz]}]"),
        with("rules: [{level: None, nonResourceURLs: [\"/a*b\"]}]"),
        with("rules: [{level: None, namespaces: [a], nonResourceURLs: [\"/a\"]}]"),
        with("rules: [{level: None, resources: [{group: apps/v1}]}]"),
        with("rules: [{level: None}, {level: None, resources: [{resourceNames: [a]}]}]"),
    ];
    expect![[r#"
        missing field `apiVersion`
        it must be of apiVersion audit.k8s.io/v1 and kind Policy, not audit.k8s.io/v1beta1 and Policy
        it has no rules, so nothing would be recorded
        rules[0].level: unknown variant `Everything`, expected one of `None`, `Metadata`, `Request`, `RequestResponse` at line 3 column 17
        rules[0]: unknown field `user`, expected one of `level`, `users`, `userGroups`, `verbs`, `resources`, `namespaces`, `nonResourceURLs`, `omitStages`, `omitManagedFields` at line 3 column 23
        rules[0].nonResourceURLs: "healthz": non-resource URL rules must begin with a '/' character
        rules[0].nonResourceURLs: "/a*b": non-resource URL wildcards '*' must be the final character of the rule
        rules[0].nonResourceURLs: rules cannot apply to both regular resources and non-resource URLs
        rules[0].resources.group: "apps/v1": must be the name of an API group, without a version
        rules[1].resources.resourceNames: using resourceNames requires at least one resource"#]].assert_eq(&all.join("\n"));
}
