//! A Service and its pods in, Endpoints out.

use super::*;
use serde_json::{Value, json};

fn service(spec: Value) -> Service {
    let mut value = json!({
        "metadata": {"name": "web", "namespace": "default", "uid": "s", "labels": {"tier": "front"}},
        "spec": {
            "selector": {"app": "web"}, "clusterIP": "10.43.0.9", "ipFamilies": ["IPv4"],
            "ports": [{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}],
        },
    });
    for (key, one) in spec.as_object().unwrap() {
        value["spec"][key] = one.clone();
    }
    serde_json::from_value(value).unwrap()
}

fn pod(name: &str, addresses: &[&str], ready: bool) -> Arc<Pod> {
    let status = if ready { "True" } else { "False" };
    let addresses: Vec<Value> = addresses.iter().map(|ip| json!({ "ip": ip })).collect();
    let pod = json!({
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"nodeName": "n", "containers": []},
        "status": {"phase": "Running", "podIPs": addresses,
                   "conditions": [{"type": "Ready", "status": status}]},
    });
    Arc::new(serde_json::from_value(pod).unwrap())
}

fn address(name: &str, ip: &str) -> Value {
    let target = json!({"kind": "Pod", "namespace": "default", "name": name, "uid": name});
    json!({"ip": ip, "nodeName": "n", "targetRef": target})
}

/// As it is written when there is nothing yet.
fn first(service: &Service, pods: &[Arc<Pod>]) -> Endpoints {
    next(None, service, subsets(service, pods), None).unwrap()
}

#[test]
fn ready_and_not_ready_addresses_with_their_ports() {
    let pods = [
        pod("a", &["10.0.0.1", "fd00::1"], true),
        pod("b", &["10.0.0.2"], false),
        pod("c", &["fd00::3"], true),
    ];
    let written = first(&service(json!({})), &pods);
    assert_eq!(
        json!(written),
        json!({
            "apiVersion": "v1", "kind": "Endpoints",
            "metadata": {
                "name": "web", "namespace": "default", "labels": {
                    "tier": "front", "endpoints.kubernetes.io/managed-by": "endpoint-controller",
                },
            },
            "subsets": [{
                "addresses": [address("a", "10.0.0.1")],
                "notReadyAddresses": [address("b", "10.0.0.2")],
                "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
            }],
        })
    );
    let six = first(&service(json!({"ipFamilies": ["IPv6", "IPv4"]})), &pods);
    let six = &json!(six)["subsets"][0]["addresses"];
    assert_eq!(
        *six,
        json!([address("a", "fd00::1"), address("c", "fd00::3")])
    );
}

#[test]
fn a_headless_service_needs_no_ports_and_says_what_it_is() {
    let headless = service(json!({"clusterIP": "None", "ports": []}));
    let written = json!(first(&headless, &[pod("a", &["10.0.0.1"], true)]));
    assert_eq!(
        written["subsets"],
        json!([{"addresses": [address("a", "10.0.0.1")]}])
    );
    assert_eq!(written["metadata"]["labels"][HEADLESS], "");
    // With an address of its own it needs them.
    let bare = service(json!({"ports": []}));
    let written = json!(first(&bare, &[pod("a", &["10.0.0.1"], true)]));
    assert_eq!(written["subsets"], Value::Null);
}

#[test]
fn a_pod_that_goes_counts_only_where_readiness_does_not() {
    let mut going = Pod::clone(&pod("a", &["10.0.0.1"], true));
    going.metadata.deletion_timestamp =
        serde_json::from_value(json!("2030-01-01T00:00:00Z")).unwrap();
    let pods = [Arc::new(going), pod("b", &["10.0.0.2"], false)];
    let written = json!(first(&service(json!({})), &pods));
    assert_eq!(
        written["subsets"][0]["notReadyAddresses"],
        json!([address("b", "10.0.0.2")])
    );
    assert_eq!(written["subsets"][0]["addresses"], Value::Null);
    let all = service(json!({"publishNotReadyAddresses": true}));
    let written = json!(first(&all, &pods));
    assert_eq!(
        written["subsets"][0]["addresses"],
        json!([address("a", "10.0.0.1"), address("b", "10.0.0.2")])
    );
}

#[test]
fn what_says_the_same_is_not_written() {
    let web = service(json!({}));
    let pods = [pod("a", &["10.0.0.1"], true)];
    let wanted = || subsets(&web, &pods);
    let mut stored = first(&web, &pods);
    stored.metadata.resource_version = Some("7".to_owned());
    assert_eq!(next(Some(&stored), &web, wanted(), None), None);
    // Revisions of targets do not count.
    let mut other = stored.clone();
    let addresses = other.subsets.as_mut().unwrap()[0]
        .addresses
        .as_mut()
        .unwrap();
    addresses[0].target_ref.as_mut().unwrap().resource_version = Some("9".to_owned());
    assert_eq!(next(Some(&other), &web, wanted(), None), None);
    // Labels do, and so does a mark that is not right any more.
    let mut other = stored.clone();
    other.metadata.labels.as_mut().unwrap().remove("tier");
    let mended = next(Some(&other), &web, wanted(), None).unwrap();
    assert_eq!(mended.metadata.labels, stored.metadata.labels);
    assert_eq!(mended.metadata.resource_version.as_deref(), Some("7"));
    let mut other = stored.clone();
    let marks = json!({OVER_CAPACITY: "truncated", "own": "kept"});
    other.metadata.annotations = serde_json::from_value(marks).unwrap();
    let at = Some("2030-01-01T00:00:05Z".parse().unwrap());
    let mended = next(Some(&other), &web, wanted(), at).unwrap();
    assert_eq!(
        json!(mended.metadata.annotations),
        json!({"own": "kept", crate::services::LAST_CHANGE: "2030-01-01T00:00:05Z"})
    );
}

fn many(prefix: &str, count: usize, ready: bool) -> Vec<Arc<Pod>> {
    let one = |number: usize| {
        let ip = format!("10.{}.{}.{}", u8::from(ready), number / 250, number % 250);
        pod(&format!("{prefix}{number}"), &[&ip], ready)
    };
    (0..count).map(one).collect()
}

#[test]
fn no_more_than_a_thousand_addresses_ready_ones_first() {
    let web = service(json!({}));
    let counts = |pods: &[Arc<Pod>]| {
        let written = first(&web, pods);
        let subset = &written.subsets.as_ref().unwrap()[0];
        let annotations = written.metadata.annotations.unwrap_or_default();
        (
            ready(subset).len(),
            not_ready(subset).len(),
            annotations.contains_key(OVER_CAPACITY),
        )
    };
    let (mut some, rest) = (many("a", 600, true), many("b", 400, false));
    some.extend(rest);
    assert_eq!(counts(&some), (600, 400, false));
    some.extend([pod("more", &["10.9.0.1"], false)]);
    assert_eq!(counts(&some), (600, 400, true));
    let mut many_ready = many("a", 1100, true);
    many_ready.extend(many("b", 5, false));
    assert_eq!(counts(&many_ready), (1000, 0, true));
}

#[test]
fn each_subset_loses_its_part() {
    let addresses = |count: usize| {
        let one = |number: usize| json!({"ip": format!("10.0.{}.{}", number / 250, number % 250)});
        (0..count).map(one).collect::<Vec<_>>()
    };
    let mut subsets: Vec<EndpointSubset> = serde_json::from_value(json!([
        {"addresses": addresses(900)}, {"addresses": addresses(600)},
        {"addresses": addresses(0), "notReadyAddresses": addresses(3)},
    ]))
    .unwrap();
    assert!(truncate(&mut subsets));
    let sizes: Vec<usize> = subsets.iter().map(|one| ready(one).len()).collect();
    assert_eq!(sizes, [600, 400, 0]);
    assert_eq!(count(&subsets, not_ready), 0);
}
