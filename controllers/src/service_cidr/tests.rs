//! Networks and addresses in, what becomes of the networks out; then the whole loop.

use super::*;
use crate::Config;
use crate::fake_api::eventually;
use crate::fake_cluster::{Calls, Death, FakeCluster, spawn, spawn_mortal};
use crate::fixture_text::{at, now};

use super::prefix::Prefix;

fn network(name: &str, cidrs: &[&str], deleted: Option<i64>) -> Arc<ServiceCIDR> {
    let mut value = json!({"metadata": {"name": name, "uid": name}, "spec": {"cidrs": cidrs}});
    if let Some(ago) = deleted {
        value["metadata"]["deletionTimestamp"] = json!(at(ago));
    }
    Arc::new(serde_json::from_value(value).unwrap())
}

/// Of the first of these.
fn planned(all: &[Arc<ServiceCIDR>], addresses: &[&str]) -> Plan {
    let given = || addresses.iter().map(|one| one.parse().unwrap()).collect();
    plan::plan(&all[0], all, given, now())
}

const GONE: Plan = Plan::LetGoIn(Duration::ZERO);

#[test]
fn prefixes_know_what_is_in_them() {
    let prefix = |text: &str| Prefix::parse(text).unwrap();
    let offers = |network: &str, address: &str| prefix(network).offers(address.parse().unwrap());
    assert!(offers("10.0.0.0/24", "10.0.0.1"));
    assert!(!offers("10.0.0.0/24", "10.0.0.0"));
    assert!(!offers("10.0.0.0/24", "10.0.0.255"));
    assert!(!offers("10.0.0.0/24", "10.0.1.1"));
    assert!(!offers("10.0.0.0/24", "fd00::1"));
    assert!(offers("fd00::/120", "fd00::ff"));
    assert!(!offers("fd00::/120", "fd00::"));
    assert!(offers("::/0", "fd00::ff"));
    assert!(prefix("10.0.0.0/8").holds(prefix("10.1.0.0/16")));
    assert!(!prefix("10.1.0.0/16").holds(prefix("10.0.0.0/8")));
    assert!(prefix("10.1.0.0/16").overlaps(prefix("10.0.0.0/8")));
    assert!(!prefix("10.1.0.0/16").overlaps(prefix("10.2.0.0/16")));
    assert!(!prefix("0.0.0.0/0").overlaps(prefix("::/0")));
    for bad in ["10.0.0.0", "10.0.0.0/33", "x/8", "10.0.0.0/-1"] {
        assert_eq!(Prefix::parse(bad), None, "{bad}");
    }
}

#[test]
fn a_network_goes_when_no_address_needs_it() {
    let small = network("a", &["10.0.0.0/24"], Some(10));
    assert_eq!(
        planned(&[network("a", &["10.0.0.0/24"], None)], &["10.0.0.1"]),
        Plan::Keep
    );
    assert_eq!(
        planned(std::slice::from_ref(&small), &["10.0.0.1"]),
        Plan::Wait
    );
    assert_eq!(
        planned(std::slice::from_ref(&small), &["10.0.1.1", "fd00::1"]),
        GONE
    );
    // Its own ten seconds.
    let young = network("a", &["10.0.0.0/24"], Some(4));
    assert_eq!(
        planned(&[young], &[]),
        Plan::LetGoIn(Duration::from_secs(6))
    );
    // Another one holds all of it, or the one address there is.
    let wide = network("b", &["10.0.0.0/16"], None);
    assert_eq!(planned(&[small.clone(), wide], &["10.0.0.1"]), GONE);
    let half = network("b", &["10.0.0.0/25"], None);
    assert_eq!(planned(&[small.clone(), half.clone()], &["10.0.0.1"]), GONE);
    assert_eq!(planned(&[small.clone(), half], &["10.0.0.129"]), Plan::Wait);
    // Two that go together do not hold each other's addresses.
    let twin = network("b", &["10.0.0.0/24"], Some(10));
    assert_eq!(planned(&[small, twin], &["10.0.0.1"]), Plan::Wait);
    let dual = network("a", &["10.0.0.0/24", "fd00::/120"], Some(10));
    let wide = network("b", &["10.0.0.0/16"], None);
    assert_eq!(planned(&[dual.clone(), wide.clone()], &["10.0.0.1"]), GONE);
    assert_eq!(planned(&[dual, wide], &["fd00::1"]), Plan::Wait);
}

const NETWORKS: &str = "/apis/networking.k8s.io/v1/servicecidrs";
const ADDRESSES: &str = "/apis/networking.k8s.io/v1/ipaddresses";

fn put_address(cluster: &FakeCluster, address: &str, manager: &str) {
    let labels = json!({"ipaddress.kubernetes.io/managed-by": manager});
    let parent = json!({"resource": "services", "namespace": "default", "name": "web"});
    cluster.api.put(
        &format!("{ADDRESSES}/{address}"),
        json!({"metadata": {"labels": labels}, "spec": {"parentRef": parent}}),
    );
}

fn put_network(cluster: &FakeCluster, name: &str, cidr: &str) {
    let spec = json!({"spec": {"cidrs": [cidr]}});
    cluster.api.put(&format!("{NETWORKS}/{name}"), spec);
}

fn shown(cluster: &FakeCluster, name: &str) -> String {
    let network = cluster.api.get(&format!("{NETWORKS}/{name}"));
    let network = network.unwrap_or_default();
    let condition = &network["status"]["conditions"][0];
    let text = |field: &str| condition[field].as_str().unwrap_or("").to_owned();
    format!("{} {}: {}", text("status"), text("reason"), text("message"))
}

#[tokio::test(start_paused = true)]
async fn a_network_is_ready_and_stays_while_addresses_need_it() {
    let cluster = FakeCluster::new();
    put_network(&cluster, "more", "10.9.0.0/24");
    let _running = spawn(cluster.client(), Config::default(), run);
    let ready = "True : Kubernetes Service CIDR is ready";
    eventually("ready", || shown(&cluster, "more") == ready).await;
    let path = format!("{NETWORKS}/more");
    let network = cluster.api.get(&path).unwrap();
    assert_eq!(network["metadata"]["finalizers"], json!([FINALIZER]));
    put_address(&cluster, "10.9.0.7", "ipallocator.k8s.io");
    put_address(&cluster, "10.9.0.8", "somebody.else");
    // As the server does it: it is marked, and the finalizer keeps it.
    cluster.delete_as(&path, "Background");
    eventually("in use", || {
        shown(&cluster, "more")
            == "False Terminating: There are still IPAddresses referencing the ServiceCIDR, \
                please remove them or create a new ServiceCIDR"
    })
    .await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(cluster.api.get(&path).is_some());
    cluster.api.delete(&format!("{ADDRESSES}/10.9.0.7"));
    eventually("gone", || cluster.api.get(&path).is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn a_wider_network_takes_the_addresses_over() {
    let cluster = FakeCluster::new();
    put_network(&cluster, "more", "10.9.0.0/24");
    put_address(&cluster, "10.9.0.7", "ipallocator.k8s.io");
    let _running = spawn(cluster.client(), Config::default(), run);
    eventually("ready", || shown(&cluster, "more").starts_with("True")).await;
    let path = format!("{NETWORKS}/more");
    cluster.delete_as(&path, "Background");
    eventually("in use", || {
        shown(&cluster, "more").starts_with("False Terminating")
    })
    .await;
    put_network(&cluster, "wide", "10.9.0.0/16");
    eventually("gone", || cluster.api.get(&path).is_none()).await;
    eventually("ready too", || shown(&cluster, "wide").starts_with("True")).await;
}

#[tokio::test(start_paused = true)]
async fn one_that_nobody_uses_goes_after_ten_seconds() {
    let cluster = FakeCluster::new();
    put_network(&cluster, "more", "10.9.0.0/24");
    let begun = tokio::time::Instant::now();
    let _running = spawn(cluster.client(), Config::default(), run);
    eventually("ready", || shown(&cluster, "more").starts_with("True")).await;
    let path = format!("{NETWORKS}/more");
    cluster.delete_as(&path, "Background");
    eventually("gone", || cluster.api.get(&path).is_none()).await;
    let waited = begun.elapsed();
    assert!(
        waited >= Duration::from_secs(10) && waited < Duration::from_secs(60),
        "{waited:?}"
    );
}

/// Two networks come; both are deleted, and one is needed for a while.
async fn live(death: Option<Death>) -> Calls {
    let cluster = FakeCluster::new();
    let path = |name: &str| format!("{NETWORKS}/{name}");
    put_network(&cluster, "more", "10.9.0.0/24");
    put_network(&cluster, "most", "10.10.0.0/24");
    put_address(&cluster, "10.9.0.7", "ipallocator.k8s.io");
    let living = spawn_mortal(&cluster, run, death);
    let is_kept = |name: &str| {
        let network = cluster.api.get(&path(name)).unwrap_or_default();
        network["metadata"]["finalizers"] == json!([FINALIZER])
            && shown(&cluster, name).starts_with("True ")
    };
    eventually(&format!("ready, {death:?}"), || {
        is_kept("more") && is_kept("most")
    })
    .await;
    cluster.api.break_watches();
    cluster.delete_as(&path("more"), "Background");
    cluster.delete_as(&path("most"), "Background");
    cluster.api.compact();
    eventually(&format!("in use, {death:?}"), || {
        shown(&cluster, "more").starts_with("False Terminating: ")
    })
    .await;
    let is_there = |name: &str| cluster.api.get(&path(name)).is_some();
    eventually(&format!("one gone, {death:?}"), || !is_there("most")).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(is_there("more"), "{death:?}");
    cluster.api.delete(&format!("{ADDRESSES}/10.9.0.7"));
    eventually(&format!("gone, {death:?}"), || !is_there("more")).await;
    living.calls.clone()
}

#[tokio::test(start_paused = true)]
async fn wherever_it_dies_a_network_stays_as_long_as_it_is_needed() {
    let calls = live(None).await;
    let writes = calls.writes();
    assert!(writes >= 7, "{writes}");
    for death in calls.deaths(1) {
        live(Some(death)).await;
    }
}
