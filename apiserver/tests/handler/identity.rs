//! The Lease that says that a server is there, and those of servers that are gone.

use super::site::{HOST_NAME, NOW, PATIENCE, Site, site};
use serde_json::{Value, json};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
const OWN: &str = "apiserver-rvoqbp47iqehwp3ggqxedpes6q";

fn lease(name: &str, label: &str, renewed: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": name, "labels": { "apiserver.kubernetes.io/identity": label } },
        "spec": { "holderIdentity": "x", "leaseDurationSeconds": 3600, "renewTime": renewed },
    })
}

/// Waits until a Lease is as it should be; an absent one is null.
async fn until(site: &Site, name: &str, is_well: impl Fn(&Value) -> bool) -> Value {
    let path = format!("{LEASES}/{name}");
    let looked = async {
        loop {
            let answer = site.get(&path).await;
            let found = match answer.status.as_u16() {
                404 => Value::Null,
                _ => answer.ok(),
            };
            if is_well(&found) {
                return found;
            }
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, looked).await;
    waited.unwrap_or_else(|_| panic!("{name} does not become what it should be"))
}

#[tokio::test]
async fn a_server_holds_a_lease_while_it_serves() {
    let site = site().await;
    let before = lease(OWN, "kube-apiserver", "2026-05-31T23:59:59.000000Z");
    site.post(LEASES, &before).await.ok();
    site.run();
    let held = until(&site, OWN, |lease| lease["spec"]["holderIdentity"] != "x").await;
    let holder = held["spec"]["holderIdentity"].as_str().unwrap();
    assert!(holder.starts_with(&format!("{OWN}_")), "{holder}");
    assert_eq!(held["spec"]["leaseDurationSeconds"], 3600);
    let renewed = NOW.replace('Z', ".000000Z");
    assert_eq!(held["spec"]["renewTime"], renewed);
    let labels = json!({
        "apiserver.kubernetes.io/identity": "kube-apiserver", "kubernetes.io/hostname": HOST_NAME,
    });
    assert_eq!(held["metadata"]["labels"], labels);
    site.stop();
    until(&site, OWN, Value::is_null).await;
}

#[tokio::test]
async fn leases_of_servers_that_are_gone_are_deleted() {
    let site = site().await;
    let (over, fresh) = ("2026-05-31T22:59:59.000000Z", "2026-05-31T23:00:00.000000Z");
    for one in [
        lease("gone", "kube-apiserver", over),
        lease("there", "kube-apiserver", fresh),
        lease("other", "another-apiserver", over),
    ] {
        site.post(LEASES, &one).await.ok();
    }
    site.run();
    until(&site, "gone", Value::is_null).await;
    until(&site, OWN, |own| !own.is_null()).await;
    let all = site.get(LEASES).await.ok();
    let names = all["items"].as_array().unwrap().iter();
    let names: Vec<&str> = names
        .map(|one| one["metadata"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, [OWN, "other", "there"]);
}
