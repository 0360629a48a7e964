//! What admission leaves in the record of a request, beside what it answers.

use super::site::{Answer, Site, audited_site};
use serde_json::{Value, json};

const NAMESPACE: &str = "/api/v1/namespaces/web";
const ENFORCED: &str = "pod-security.kubernetes.io/enforce-policy";
const VIOLATIONS: &str = "pod-security.kubernetes.io/audit-violations";

/// A namespace where pods are held to one level, warned of by another and recorded by a third.
async fn web(enforce: &str, warn: &str, audit: &str) -> Site {
    let site = audited_site().await;
    let label = |mode: &str| format!("pod-security.kubernetes.io/{mode}");
    let labels = json!({ label("enforce"): enforce, label("warn"): warn, label("audit"): audit });
    let namespace = json!({ "metadata": { "name": "web", "labels": labels } });
    site.post("/api/v1/namespaces", &namespace).await.ok();
    let account = json!({ "metadata": { "name": "default" } });
    let accounts = format!("{NAMESPACE}/serviceaccounts");
    site.post(&accounts, &account).await.ok();
    site
}

/// On the network of its node, which is against every level but the privileged.
fn pod() -> Value {
    json!({ "hostNetwork": true, "containers": [{ "name": "c", "image": "a" }] })
}

fn warnings(answer: &Answer) -> Vec<&str> {
    let all = answer.headers.get_all("warning").iter();
    all.map(|one| one.to_str().unwrap()).collect()
}

const BASELINE: &str = "would violate PodSecurity \"baseline:latest\": host namespaces \
                        (hostNetwork=true)";
const RESTRICTED: &str = "would violate PodSecurity \"restricted:latest\": host namespaces \
                          (hostNetwork=true), allowPrivilegeEscalation != false (container \"c\" \
                          must set securityContext.allowPrivilegeEscalation=false), unrestricted \
                          capabilities (container \"c\" must set \
                          securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod \
                          or container \"c\" must set securityContext.runAsNonRoot=true), \
                          seccompProfile (pod or container \"c\" must set \
                          securityContext.seccompProfile.type to \"RuntimeDefault\" or \
                          \"Localhost\")";

#[tokio::test]
async fn each_mode_of_pod_security_speaks_where_it_should() {
    let site = web("privileged", "baseline", "restricted").await;
    let pods = format!("{NAMESPACE}/pods");
    let named = json!({ "metadata": { "name": "p" }, "spec": pod() });
    let created = site.post(&pods, &named).await;
    assert_eq!(created.status, 201, "{}", created.failure());
    let quoted = BASELINE.replace('"', "\\\"");
    assert_eq!(warnings(&created), [format!("299 - \"{quoted}\"")]);
    let annotations = &site.recorded(&pods).await["annotations"];
    assert_eq!(annotations[ENFORCED], "privileged:latest");
    assert_eq!(annotations[VIOLATIONS], RESTRICTED);

    // A workload is never refused, and told of in the same ways.
    let deployments = "/apis/apps/v1/namespaces/web/deployments";
    let labels = json!({ "app": "shop" });
    let deployment = json!({
        "metadata": { "name": "shop" },
        "spec": {
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": pod() },
        },
    });
    let created = site.post(deployments, &deployment).await;
    assert_eq!(created.status, 201, "{}", created.failure());
    assert_eq!(warnings(&created), [format!("299 - \"{quoted}\"")]);
    let annotations = &site.recorded(deployments).await["annotations"];
    assert_eq!(annotations[VIOLATIONS], RESTRICTED);
    assert_eq!(annotations[ENFORCED], Value::Null);
}

#[tokio::test]
async fn what_pod_security_refuses_is_recorded_too() {
    let site = web("baseline", "privileged", "baseline").await;
    let pods = format!("{NAMESPACE}/pods");
    let named = json!({ "metadata": { "name": "p" }, "spec": pod() });
    let refused = site.post(&pods, &named).await;
    assert_eq!(
        refused.failure(),
        "403 Forbidden: pods \"p\" is forbidden: violates PodSecurity \"baseline:latest\": host \
         namespaces (hostNetwork=true)"
    );
    assert!(warnings(&refused).is_empty());
    let event = site.recorded(&pods).await;
    assert_eq!(event["responseStatus"]["code"], 403);
    assert_eq!(event["annotations"][ENFORCED], "baseline:latest");
    assert_eq!(event["annotations"][VIOLATIONS], BASELINE);
}
