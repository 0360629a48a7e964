//! Addresses of Services that got out of line: what is mended, and what is told.

use super::site::{NOW, PATIENCE, Site, site};
use coracle_store::{Change, Durability, Expect, Stamped, Write};
use serde_json::{Value, json};
use std::sync::Arc;

const SERVICES: &str = "/api/v1/namespaces/default/services";
const ADDRESSES: &str = "/apis/networking.k8s.io/v1/ipaddresses";
const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";

fn service(name: &str, address: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": name, "namespace": "default" },
        "spec": { "clusterIP": address, "clusterIPs": [address], "ports": [{ "port": 80 }] },
    })
}

fn reference(name: &str) -> Value {
    json!({ "resource": "services", "namespace": "default", "name": name })
}

/// Waits for what there is at a path.
async fn until(site: &Site, path: &str, what: &str, is_well: impl Fn(&Value) -> bool) -> Value {
    let looked = async {
        loop {
            let answer = site.get(path).await;
            if answer.status.is_success() {
                let found = answer.ok();
                if is_well(&found) {
                    return found;
                }
            }
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, looked).await;
    waited.unwrap_or_else(|_| panic!("{what} is not there"))
}

async fn told(site: &Site, about: &str, reason: &str) -> Value {
    let is_it = |event: &Value| event["regarding"]["name"] == about && event["reason"] == reason;
    let events = |list: &Value| list["items"].as_array().unwrap().clone();
    let what = format!("{reason} of {about}");
    let list = until(site, EVENTS, &what, |list| events(list).iter().any(is_it)).await;
    let found = events(&list).into_iter().find(|event| is_it(event));
    found.unwrap()
}

/// As somebody writes it who asks nobody.
async fn put(site: &Site, partition: &str, key: &str, mut object: Value) {
    object["metadata"]["uid"] = format!("uid-of-{key}").into();
    object["metadata"]["creationTimestamp"] = NOW.into();
    let write = Write {
        partition: Arc::from(partition),
        key: Arc::from(key),
        change: Change::Put(Stamped {
            value: object.to_string().into_bytes(),
            revision_at: None,
        }),
        expect: Expect::Any,
        durability: Durability::Lazy,
    };
    site.store.commit(write).await.unwrap();
}

#[tokio::test]
async fn an_address_that_somebody_deleted_is_written_down_again() {
    let site = site().await;
    site.run();
    let made = service("web", "10.43.0.9");
    site.post(SERVICES, &made).await.ok();
    let path = format!("{ADDRESSES}/10.43.0.9");
    let first = site.get(&path).await.ok();
    site.delete(&path, &Value::Null).await.ok();
    let again = until(&site, &path, "the address", |_| true).await;
    assert_ne!(again["metadata"]["uid"], first["metadata"]["uid"]);
    assert_eq!(again["spec"], first["spec"]);
    assert_eq!(again["metadata"]["labels"], first["metadata"]["labels"]);
    let event = told(&site, "web", "ClusterIPNotAllocated").await;
    let note = "Cluster IP [IPv4]: 10.43.0.9 is not allocated; repairing";
    assert_eq!(event["note"], note);
    assert_eq!(event["type"], "Warning");
    assert_eq!(event["action"], "ClusterIPAllocation");
    assert_eq!(
        event["reportingController"],
        "ipallocator-repair-controller"
    );
    assert_eq!(
        event["reportingInstance"],
        "ipallocator-repair-controller-edge"
    );
    assert_eq!(event["regarding"]["kind"], "Service");
}

#[tokio::test]
async fn what_is_out_of_line_at_the_start_is_mended_or_told() {
    let site = site().await;
    for (name, address) in [("a", "10.43.0.9"), ("b", "10.43.0.9"), ("far", "10.9.0.9")] {
        let mut written = service(name, address);
        written["spec"]["type"] = "NodePort".into();
        written["spec"]["ports"][0]["nodePort"] = 30080.into();
        let key = format!("default/{name}");
        put(&site, "/services", &key, written).await;
    }
    // By hand, over the API: it names a Service that does not have it.
    let labels = json!({
        "ipaddress.kubernetes.io/ip-family": "IPv4",
        "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
    });
    for (address, parent) in [("10.43.0.9", "other"), ("10.43.0.10", "a")] {
        let by_hand = json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "IPAddress",
            "metadata": { "name": address, "labels": labels },
            "spec": { "parentRef": reference(parent) },
        });
        site.post(ADDRESSES, &by_hand).await.ok();
    }
    site.run();
    let path = format!("{ADDRESSES}/10.43.0.9");
    let is_of_a = |one: &Value| one["spec"]["parentRef"] == reference("a");
    until(&site, &path, "the address of a", is_of_a).await;
    told(&site, "a", "ClusterIPNotAllocated").await;
    told(&site, "b", "ClusterIPAlreadyAllocated").await;
    told(&site, "far", "ClusterIPOutOfRange").await;
    let event = told(&site, "b", "PortAlreadyAllocated").await;
    assert_eq!(
        event["reportingController"],
        "portallocator-repair-controller"
    );
    let freed = told(&site, "10.43.0.10", "IPAddressWrongReference").await;
    assert_eq!(freed["regarding"]["kind"], "IPAddress");
    let gone = site.get(&format!("{ADDRESSES}/10.43.0.10")).await;
    assert_eq!(gone.status, 404);
}
