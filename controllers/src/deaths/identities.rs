//! Accounts, tokens, the authority's certificate, roles and policies.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::{AT_ONCE, Step, Story, at, change, put_namespace, there};
use crate::Config;
use crate::fake_cluster::FakeCluster;

fn base64(text: &str) -> String {
    STANDARD.encode(text)
}

pub(super) static ACCOUNTS: Story = Story {
    loops: &["service-account"],
    config: Config::default,
    beat: None,
    writes_min: 4,
    names_vary: false,
    steps: &[
        Step {
            what: "each namespace has its account",
            happens: |cluster| {
                ["a", "b"]
                    .iter()
                    .for_each(|name| put_namespace(cluster, name))
            },
            takes: AT_ONCE,
            done: |cluster| there(cluster, &account("a")) && there(cluster, &account("b")),
        },
        Step {
            what: "one that was deleted is made again, and a new namespace has one",
            happens: |cluster| {
                cluster.api.delete(&account("a"));
                put_namespace(cluster, "c");
            },
            takes: AT_ONCE,
            done: |cluster| there(cluster, &account("a")) && there(cluster, &account("c")),
        },
        Step {
            what: "what goes or is gone gets none",
            happens: |cluster| {
                cluster.delete_as("/api/v1/namespaces/a", "Background");
                cluster.api.delete("/api/v1/namespaces/b");
                ["a", "b"]
                    .iter()
                    .for_each(|name| cluster.api.delete(&account(name)));
                put_namespace(cluster, "d");
            },
            takes: AT_ONCE,
            done: |cluster| {
                there(cluster, &account("d"))
                    && !there(cluster, &account("a"))
                    && !there(cluster, &account("b"))
            },
        },
    ],
};

fn account(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/serviceaccounts/default")
}

const CA: &str = "the CA of this cluster";

fn with_ca() -> Config {
    Config {
        ca_cert_pem: CA.to_owned(),
        sign_token: Some(Arc::new(|token| {
            Ok(format!("{}/{}", token.account, token.account_uid))
        })),
        ..Config::default()
    }
}

fn map(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps/kube-root-ca.crt")
}

fn is_published(cluster: &FakeCluster, namespace: &str) -> bool {
    at(cluster, &map(namespace), "/data") == json!({"ca.crt": CA})
}

pub(super) static AUTHORITY: Story = Story {
    loops: &["root-ca"],
    config: with_ca,
    beat: None,
    writes_min: 5,
    names_vary: false,
    steps: &[
        Step {
            what: "it is in each namespace",
            happens: |cluster| {
                ["a", "b"]
                    .iter()
                    .for_each(|name| put_namespace(cluster, name))
            },
            takes: AT_ONCE,
            done: |cluster| is_published(cluster, "a") && is_published(cluster, "b"),
        },
        Step {
            what: "what was forged is mended, and what was deleted made again",
            happens: |cluster| {
                let forged =
                    json!({"data": {"ca.crt": "forged"}, "metadata": {"labels": {"a": "b"}}});
                change(cluster, &map("a"), &forged);
                cluster.api.delete(&map("b"));
            },
            takes: AT_ONCE,
            done: |cluster| {
                is_published(cluster, "a")
                    && is_published(cluster, "b")
                    && at(cluster, &map("a"), "/metadata/labels/a") == "b"
            },
        },
        Step {
            what: "a namespace that goes gets none",
            happens: |cluster| {
                cluster.delete_as("/api/v1/namespaces/a", "Background");
                cluster.api.delete(&map("a"));
                put_namespace(cluster, "c");
            },
            takes: AT_ONCE,
            done: |cluster| is_published(cluster, "c") && !there(cluster, &map("a")),
        },
    ],
};

const BUILDER: &str = "/api/v1/namespaces/default/serviceaccounts/builder";

fn token(name: &str) -> String {
    format!("/api/v1/namespaces/default/secrets/{name}")
}

fn put_token(cluster: &FakeCluster, name: &str) {
    let annotations = json!({"kubernetes.io/service-account.name": "builder"});
    let secret = json!({"metadata": {"annotations": annotations},
        "type": "kubernetes.io/service-account-token"});
    cluster.api.put(&token(name), secret);
}

fn put_builder(cluster: &FakeCluster, uid: &str) {
    let account = json!({"metadata": {"uid": uid}});
    cluster.api.put(BUILDER, account);
}

fn has_token(cluster: &FakeCluster, name: &str, uid: &str) -> bool {
    at(cluster, &token(name), "/data/token") == base64(&format!("builder/{uid}"))
        && at(cluster, &token(name), "/data/ca.crt") == base64(CA)
}

pub(super) static TOKENS: Story = Story {
    loops: &["service-account-token"],
    config: with_ca,
    beat: None,
    writes_min: 6,
    names_vary: false,
    steps: &[
        Step {
            what: "both are filled",
            happens: |cluster| {
                put_builder(cluster, "u1");
                ["one", "two"]
                    .iter()
                    .for_each(|name| put_token(cluster, name));
            },
            takes: AT_ONCE,
            done: |cluster| has_token(cluster, "one", "u1") && has_token(cluster, "two", "u1"),
        },
        Step {
            what: "one that was emptied is filled again",
            happens: |cluster| change(cluster, &token("two"), &json!({"data": {"token": null}})),
            takes: AT_ONCE,
            done: |cluster| has_token(cluster, "two", "u1"),
        },
        Step {
            what: "those of an account that was replaced go, and the new ones stay",
            happens: |cluster| {
                cluster.api.delete(BUILDER);
                put_builder(cluster, "u2");
                put_token(cluster, "three");
            },
            takes: AT_ONCE,
            done: |cluster| {
                has_token(cluster, "three", "u2")
                    && !there(cluster, &token("one"))
                    && !there(cluster, &token("two"))
            },
        },
    ],
};

const CLUSTER_ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

fn put_part(cluster: &FakeCluster, name: &str, verb: &str) {
    let rule = json!({"verbs": [verb], "apiGroups": [""], "resources": ["pods"]});
    let role = json!({"metadata": {"labels": {"to-whole": "true"}}, "rules": [rule]});
    cluster.api.put(&format!("{CLUSTER_ROLES}/{name}"), role);
}

fn put_whole(cluster: &FakeCluster, name: &str) {
    let selector = json!({"matchLabels": {"to-whole": "true"}});
    let role = json!({"metadata": {}, "aggregationRule": {"clusterRoleSelectors": [selector]}});
    cluster.api.put(&format!("{CLUSTER_ROLES}/{name}"), role);
}

fn has_verbs(cluster: &FakeCluster, name: &str, verbs: &[&str]) -> bool {
    let rules = at(cluster, &format!("{CLUSTER_ROLES}/{name}"), "/rules");
    let rules = rules.as_array().cloned().unwrap_or_default();
    let found = rules.iter().map(|rule| &rule["verbs"][0]);
    found.eq(verbs.iter())
}

pub(super) static ROLES: Story = Story {
    loops: &["clusterrole-aggregation"],
    config: Config::default,
    beat: None,
    writes_min: 5,
    names_vary: false,
    steps: &[
        Step {
            what: "both have the rules of the part",
            happens: |cluster| {
                put_part(cluster, "b", "get");
                ["w1", "w2"]
                    .iter()
                    .for_each(|name| put_whole(cluster, name));
            },
            takes: AT_ONCE,
            done: |cluster| {
                has_verbs(cluster, "w1", &["get"]) && has_verbs(cluster, "w2", &["get"])
            },
        },
        Step {
            what: "a part comes",
            happens: |cluster| put_part(cluster, "a", "list"),
            takes: AT_ONCE,
            done: |cluster| {
                has_verbs(cluster, "w1", &["list", "get"])
                    && has_verbs(cluster, "w2", &["list", "get"])
            },
        },
        Step {
            what: "a part goes, and one is whole no more",
            happens: |cluster| {
                cluster.api.delete(&format!("{CLUSTER_ROLES}/b"));
                cluster.api.delete(&format!("{CLUSTER_ROLES}/w2"));
            },
            takes: AT_ONCE,
            done: |cluster| has_verbs(cluster, "w1", &["list"]),
        },
    ],
};

fn policy(name: &str) -> String {
    format!("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/{name}")
}

const POLICY_NAMES: [&str; 2] = ["p", "q"];

fn put_policies(cluster: &FakeCluster, generation: i64, expressions: [&str; 2]) {
    for (name, expression) in POLICY_NAMES.into_iter().zip(expressions) {
        put_policy(cluster, name, generation, expression);
    }
}

fn put_policy(cluster: &FakeCluster, name: &str, generation: i64, expression: &str) {
    let status = at(cluster, &policy(name), "/status");
    let rule = json!({"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"],
        "operations": ["CREATE"]});
    let spec = json!({"matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": expression}]});
    let metadata = json!({"generation": generation});
    let policy_ = json!({"metadata": metadata, "spec": spec, "status": status});
    cluster.api.put(&policy(name), policy_);
}

/// Looked at in this generation, with so many warnings.
fn is_checked(cluster: &FakeCluster, name: &str, generation: i64, warnings: usize) -> bool {
    let status = at(cluster, &policy(name), "/status");
    let told = status["typeChecking"]["expressionWarnings"].as_array();
    status["observedGeneration"] == generation && told.map_or(0, Vec::len) == warnings
}

fn are_checked(cluster: &FakeCluster, generation: i64, warnings: [usize; 2]) -> bool {
    let mut all = POLICY_NAMES.into_iter().zip(warnings);
    all.all(|(name, warnings)| is_checked(cluster, name, generation, warnings))
}

pub(super) static POLICIES: Story = Story {
    loops: &["validatingadmissionpolicy-status"],
    config: Config::default,
    beat: None,
    writes_min: 4,
    names_vary: false,
    steps: &[
        Step {
            what: "both are looked at",
            happens: |cluster| {
                put_policies(
                    cluster,
                    1,
                    ["object.spec.replicas > 1", "object.spec.replicas > '1'"],
                );
            },
            takes: AT_ONCE,
            done: |cluster| are_checked(cluster, 1, [0, 1]),
        },
        Step {
            what: "both are looked at again",
            happens: |cluster| {
                put_policies(
                    cluster,
                    2,
                    ["object.spec.replicas > '1'", "object.spec.replicas > '2'"],
                );
            },
            takes: AT_ONCE,
            done: |cluster| are_checked(cluster, 2, [1, 1]),
        },
    ],
};

fn bootstrap(id: &str) -> String {
    format!("/api/v1/namespaces/kube-system/secrets/bootstrap-token-{id}")
}

fn put_bootstrap(cluster: &FakeCluster, id: &str, expiration: &str) {
    let mut data = json!({"token-id": base64(id), "token-secret": base64("0123456789abcdef"),
        "usage-bootstrap-signing": base64("true")});
    if !expiration.is_empty() {
        data["expiration"] = json!(base64(expiration));
    }
    let secret = json!({"metadata": {}, "type": "bootstrap.kubernetes.io/token", "data": data});
    cluster.api.put(&bootstrap(id), secret);
}

pub(super) static CLEANER: Story = Story {
    loops: &["token-cleaner"],
    config: Config::default,
    beat: None,
    writes_min: 3,
    names_vary: false,
    steps: &[
        Step {
            what: "what is over goes",
            happens: |cluster| {
                put_bootstrap(cluster, "aaaaaa", "2029-01-01T00:00:00Z");
                put_bootstrap(cluster, "bbbbbb", "soon");
                put_bootstrap(cluster, "cccccc", "2030-01-01T02:00:00Z");
                put_bootstrap(cluster, "dddddd", "2030-01-01T02:00:00Z");
                put_bootstrap(cluster, "eeeeee", "");
            },
            takes: AT_ONCE,
            done: |cluster| {
                !there(cluster, &bootstrap("aaaaaa")) && !there(cluster, &bootstrap("bbbbbb"))
            },
        },
        Step {
            what: "what is over later goes then, unless it was prolonged",
            happens: |cluster| put_bootstrap(cluster, "dddddd", "2030-01-02T00:00:00Z"),
            takes: Duration::from_secs(2 * 3600),
            done: |cluster| {
                !there(cluster, &bootstrap("cccccc"))
                    && there(cluster, &bootstrap("dddddd"))
                    && there(cluster, &bootstrap("eeeeee"))
            },
        },
    ],
};

const INFO: &str = "/api/v1/namespaces/kube-public/configmaps/cluster-info";

fn is_signed(cluster: &FakeCluster, ids: &[&str]) -> bool {
    let data = at(cluster, INFO, "/data");
    let of = |key: &String| key.strip_prefix("jws-kubeconfig-").map(str::to_owned);
    let signed = data.as_object().into_iter().flat_map(|data| data.keys());
    let signed: Vec<String> = signed.filter_map(of).collect();
    signed == ids
}

pub(super) static SIGNER: Story = Story {
    loops: &["bootstrap-signer"],
    config: Config::default,
    beat: None,
    writes_min: 3,
    names_vary: false,
    steps: &[
        Step {
            what: "both have signed, and nobody else",
            happens: |cluster| {
                ["aaaaaa", "bbbbbb"]
                    .iter()
                    .for_each(|id| put_bootstrap(cluster, id, ""));
                let data = json!({"kubeconfig": "a", "other": "b", "jws-kubeconfig-zzzzzz": "c"});
                cluster.api.put(INFO, json!({"data": data}));
            },
            takes: AT_ONCE,
            done: |cluster| is_signed(cluster, &["aaaaaa", "bbbbbb"]),
        },
        Step {
            what: "what was changed is signed anew",
            happens: |cluster| {
                let signature = json!({"kubeconfig": "another", "jws-kubeconfig-aaaaaa": "old"});
                change(cluster, INFO, &json!({"data": signature}));
            },
            takes: AT_ONCE,
            done: |cluster| {
                is_signed(cluster, &["aaaaaa", "bbbbbb"])
                    && at(cluster, INFO, "/data/jws-kubeconfig-aaaaaa") != "old"
            },
        },
        Step {
            what: "a signature goes with its token",
            happens: |cluster| cluster.api.delete(&bootstrap("bbbbbb")),
            takes: AT_ONCE,
            done: |cluster| is_signed(cluster, &["aaaaaa"]),
        },
    ],
};
