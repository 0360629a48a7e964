//! Addresses and node ports: what is given, kept, refused and free again.

use super::*;
use coracle_api::catalogue;
use coracle_store::{Change, Config, Durability, Expect, Stamped, Write};
use serde_json::json;

struct Site {
    store: Store,
    allocator: Allocator,
    _directory: tempfile::TempDir,
}

fn site(cidr: &str) -> Site {
    let directory = tempfile::tempdir().unwrap();
    Site {
        store: Store::open(Config::new(directory.path().join("store"))).unwrap(),
        allocator: Allocator::new(cidr).unwrap(),
        _directory: directory,
    }
}

fn service(name: &str, spec: Value) -> Object {
    Object::from_value(json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": name, "namespace": "default" }, "spec": spec,
    }))
    .unwrap()
}

impl Site {
    async fn assign(&self, object: &mut Object) -> Result<(), Vec<String>> {
        let services = catalogue::find("", "v1", "services").unwrap();
        let mut hold = self.allocator.hold_for(services).await.unwrap();
        hold.assign(&self.store, object, None).map_err(|errors| {
            let texts = errors.iter().map(ToString::to_string);
            texts.collect()
        })
    }

    async fn write(&self, object: &Object, change: fn(Stamped) -> Change) {
        let write = Write {
            partition: "/services".into(),
            key: object.key().to_string().into(),
            change: change(Stamped {
                value: serde_json::to_vec(object.root()).unwrap(),
                revision_at: None,
            }),
            expect: Expect::Any,
            durability: Durability::Lazy,
        };
        self.store.commit(write).await.unwrap();
    }
}

#[tokio::test]
async fn an_address_is_given_once_until_its_service_is_gone() {
    let site = site("10.43.0.0/29");
    let mut given = Vec::new();
    // Six addresses: the first and the last of a network are none.
    for name in ["a", "b", "c", "d", "e", "f"] {
        let mut one = service(name, json!({ "type": "ClusterIP" }));
        site.assign(&mut one).await.unwrap();
        site.write(&one, Change::Put).await;
        given.push(one);
    }
    let addresses: HashSet<&str> = given
        .iter()
        .map(|one| one.str(&["spec", "clusterIP"]))
        .collect();
    assert_eq!(addresses.len(), 6);
    assert!(!addresses.contains("10.43.0.0") && !addresses.contains("10.43.0.7"));
    let mut late = service("late", json!({ "type": "ClusterIP" }));
    let errors = site.assign(&mut late).await.unwrap_err();
    assert!(errors[0].ends_with("range is full"), "{errors:?}");
    site.write(&given[2], Change::Delete).await;
    site.assign(&mut late).await.unwrap();
    assert_eq!(
        late.str(&["spec", "clusterIP"]),
        given[2].str(&["spec", "clusterIP"])
    );
}

#[tokio::test]
async fn what_is_asked_for_is_checked_in_upstreams_words() {
    let site = site("10.43.0.0/16");
    let mut first = service(
        "a",
        json!({ "type": "ClusterIP", "clusterIP": "10.43.0.9" }),
    );
    site.assign(&mut first).await.unwrap();
    assert_eq!(
        first.get(&["spec", "clusterIPs"]),
        Some(&json!(["10.43.0.9"]))
    );
    assert_eq!(first.get(&["spec", "ipFamilies"]), Some(&json!(["IPv4"])));
    site.write(&first, Change::Put).await;
    let mut again = service(
        "b",
        json!({ "type": "ClusterIP", "clusterIP": "10.43.0.9" }),
    );
    assert_eq!(
        site.assign(&mut again).await.unwrap_err(),
        [
            "spec.clusterIPs[0]: Invalid value: \"10.43.0.9\": failed to allocate IP 10.43.0.9: \
          provided IP is already allocated"
        ]
    );
    let mut outside = service("c", json!({ "type": "ClusterIP", "clusterIP": "10.9.0.9" }));
    assert_eq!(
        site.assign(&mut outside).await.unwrap_err(),
        [
            "spec.clusterIPs[0]: Invalid value: \"10.9.0.9\": failed to allocate IP 10.9.0.9: the \
          provided IP (10.9.0.9) is not in the valid range. The range of valid IPs is \
          10.43.0.0/16"
        ]
    );
}

#[tokio::test]
async fn headless_and_external_services_get_no_address() {
    let site = site("10.43.0.0/16");
    let mut headless = service("a", json!({ "type": "ClusterIP", "clusterIP": "None" }));
    site.assign(&mut headless).await.unwrap();
    assert_eq!(
        headless.get(&["spec", "clusterIPs"]),
        Some(&json!(["None"]))
    );
    assert_eq!(
        headless.str(&["spec", "ipFamilyPolicy"]),
        "RequireDualStack"
    );
    let mut external = service(
        "b",
        json!({ "type": "ExternalName", "externalName": "x.org" }),
    );
    site.assign(&mut external).await.unwrap();
    assert_eq!(external.get(&["spec", "clusterIP"]), None);
}

#[tokio::test]
async fn families_that_the_cluster_lacks_are_refused() {
    let site = site("10.43.0.0/16");
    let mut six = service("a", json!({ "type": "ClusterIP", "ipFamilies": ["IPv6"] }));
    assert_eq!(
        site.assign(&mut six).await.unwrap_err(),
        ["spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured on this cluster"]
    );
    let both = json!({ "type": "ClusterIP", "ipFamilyPolicy": "RequireDualStack" });
    let mut both = service("b", both);
    assert_eq!(
        site.assign(&mut both).await.unwrap_err(),
        [
            "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": this cluster is not \
          configured for dual-stack services"
        ]
    );
    let prefers = json!({ "type": "ClusterIP", "ipFamilyPolicy": "PreferDualStack" });
    let mut prefers = service("c", prefers);
    site.assign(&mut prefers).await.unwrap();
    assert_eq!(prefers.get(&["spec", "ipFamilies"]), Some(&json!(["IPv4"])));
    let by_hand = json!({ "type": "ClusterIP", "clusterIP": "None", "ipFamilies": ["IPv6"] });
    let mut by_hand = service("d", by_hand);
    site.assign(&mut by_hand).await.unwrap();
    assert_eq!(
        by_hand.get(&["spec", "ipFamilies"]),
        Some(&json!(["IPv6", "IPv4"]))
    );
}

#[tokio::test]
async fn node_ports_are_given_kept_apart_and_shared_by_protocols() {
    let site = site("10.43.0.0/16");
    let mut asked = service(
        "a",
        json!({ "type": "NodePort", "ports": [
            { "name": "own", "port": 80, "protocol": "TCP", "nodePort": 30080 },
            { "name": "dns", "port": 53, "protocol": "TCP" },
            { "name": "dns-udp", "port": 53, "protocol": "UDP" },
        ] }),
    );
    site.assign(&mut asked).await.unwrap();
    let ports = asked.list(&["spec", "ports"]);
    assert_eq!(ports[0]["nodePort"], 30080);
    let given = ports[1]["nodePort"].as_i64().unwrap();
    assert!((30086..=32767).contains(&given));
    assert_eq!(ports[2]["nodePort"], given);
    site.write(&asked, Change::Put).await;
    let port = |number: i64| json!({ "port": 1, "protocol": "TCP", "nodePort": number });
    let mut again = service(
        "b",
        json!({ "type": "NodePort", "ports": [port(30080), port(99)] }),
    );
    assert_eq!(
        site.assign(&mut again).await.unwrap_err(),
        [
            "spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated",
            "spec.ports[1].nodePort: Invalid value: 99: provided port is not in the valid range. \
             The range of valid ports is 30000-32767",
        ]
    );
}

#[test]
fn only_networks_of_a_fitting_size_are_taken() {
    assert_eq!(Range::parse("10.43.0.0"), Err(RangeError::NoNetwork));
    assert_eq!(Range::parse("10.43.0.0/40"), Err(RangeError::NoNetwork));
    assert_eq!(Range::parse("10.0.0.0/8"), Err(RangeError::Size));
    assert_eq!(
        Range::parse("10.43.7.0/16").unwrap().to_string(),
        "10.43.0.0/16"
    );
    let six = Range::parse("fd00::/112").unwrap();
    assert_eq!(six.first().to_string(), "fd00::1");
    assert!(six.contains("fd00::ffff".parse().unwrap()));
    assert!(!six.contains("0.0.0.1".parse().unwrap()));
}
