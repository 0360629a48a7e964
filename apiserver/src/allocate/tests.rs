//! Addresses and node ports: what is given, kept, refused and free again.

use super::*;
use crate::view::View;
use coracle_api::resource::Part;
use coracle_store::{Config, Expect};
use serde_json::json;

struct Site {
    registry: Registry,
    allocator: Allocator,
    _directory: tempfile::TempDir,
}

/// A cluster with these networks, and a ServiceCIDR that says so.
async fn site(cidrs: &str) -> Site {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(Config::new(directory.path().join("store"))).unwrap();
    let site = Site {
        registry: Registry::new(store),
        allocator: Allocator::new(cidrs).unwrap(),
        _directory: directory,
    };
    let cidrs: Vec<&str> = cidrs.split(',').collect();
    site.put(service_cidr("kubernetes", &cidrs, "True")).await;
    site
}

fn service_cidr(name: &str, cidrs: &[&str], ready: &str) -> Object {
    Object::from_value(json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR",
        "metadata": { "name": name }, "spec": { "cidrs": cidrs },
        "status": { "conditions": [{ "type": "Ready", "status": ready }] },
    }))
    .unwrap()
}

fn service(name: &str, spec: Value) -> Object {
    Object::from_value(json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": name, "namespace": "default" }, "spec": spec,
    }))
    .unwrap()
}

fn row(object: &Object) -> &'static Resource {
    let (group, version) = object
        .api_version()
        .split_once('/')
        .unwrap_or(("", object.api_version()));
    coracle_api::catalogue::by_kind(group, version, object.kind()).unwrap()
}

const NOW: &str = "2026-01-01T00:00:00Z";

impl Site {
    /// A Service as it would be written; errors as they stand in a Status.
    async fn assign(&self, object: &mut Object) -> Result<(), Vec<String>> {
        self.update(object, None, false).await
    }

    /// Writes a Service that gets what it asks for.
    async fn update(
        &self,
        object: &mut Object,
        old: Option<&Object>,
        dry_run: bool,
    ) -> Result<(), Vec<String>> {
        let row = row(object);
        match old {
            None => row.rules.prepare_create(object),
            Some(old) => row.rules.prepare_update(object, old, Part::Main),
        }
        let mut hold = self.allocator.hold_for(row).await.unwrap();
        hold.assign(&self.registry.store, object, old, dry_run)
            .map_err(|status| errors(&status))?;
        if !dry_run {
            hold.claim(&self.registry, object, NOW).await.unwrap();
            self.put(object.clone()).await;
            hold.finish(&self.registry, object, true).await;
        }
        Ok(())
    }

    async fn put(&self, object: Object) {
        let durability = coracle_api::resource::Durability::Lazy;
        let expect = Expect::Any;
        self.registry
            .put(row(&object), &object, expect, durability)
            .await
            .unwrap();
    }

    async fn delete(&self, object: &Object) {
        let durability = coracle_api::resource::Durability::Lazy;
        let expect = Expect::Any;
        self.registry
            .delete(row(object), object, expect, durability)
            .await
            .unwrap();
    }

    /// Deletes a Service, and what it had.
    async fn end(&self, service: &Object) {
        self.delete(service).await;
        self.allocator
            .release(&self.registry, row(service), service)
            .await;
    }

    fn addresses(&self) -> Vec<Object> {
        let store = &self.registry.store;
        store.list(objects::GROUP, objects::ADDRESSES, None)
    }

    /// Names of the IPAddress objects.
    fn given(&self) -> Vec<String> {
        let all = self.addresses();
        all.iter().map(|one| one.name().to_owned()).collect()
    }
}

fn errors(status: &Status) -> Vec<String> {
    let causes = status.details["causes"].as_array();
    let texts = causes.into_iter().flatten().map(|cause| {
        let field = cause["field"].as_str().unwrap_or("");
        format!("{field}: {}", cause["message"].as_str().unwrap_or(""))
    });
    texts.collect()
}

#[tokio::test]
async fn an_address_is_given_once_until_its_service_is_gone() {
    let site = site("10.43.0.0/29").await;
    let mut given = Vec::new();
    // Six addresses: the first and the last of a network are none.
    for name in ["a", "b", "c", "d", "e", "f"] {
        let mut one = service(name, json!({ "type": "ClusterIP" }));
        site.assign(&mut one).await.unwrap();
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
    assert_eq!(site.given().len(), 6);
    site.end(&given[2]).await;
    site.assign(&mut late).await.unwrap();
    assert_eq!(
        late.str(&["spec", "clusterIP"]),
        given[2].str(&["spec", "clusterIP"])
    );
}

#[tokio::test]
async fn what_is_asked_for_is_checked_in_upstreams_words() {
    let site = site("10.43.0.0/16").await;
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
    let mut again = service(
        "b",
        json!({ "type": "ClusterIP", "clusterIP": "10.43.0.9" }),
    );
    assert_eq!(
        site.assign(&mut again).await.unwrap_err(),
        [
            "spec.clusterIPs: Invalid value: [\"10.43.0.9\"]: failed to allocate IP 10.43.0.9: \
             provided IP is already allocated"
        ]
    );
    let mut outside = service("c", json!({ "type": "ClusterIP", "clusterIP": "10.9.0.9" }));
    assert_eq!(
        site.assign(&mut outside).await.unwrap_err(),
        [
            "spec.clusterIPs: Invalid value: [\"10.9.0.9\"]: failed to allocate IP 10.9.0.9: the \
             provided network does not match the current range"
        ]
    );
}

#[tokio::test]
async fn headless_and_external_services_get_no_address() {
    let site = site("10.43.0.0/16").await;
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
    let site = site("10.43.0.0/16").await;
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
    let site = site("10.43.0.0/16").await;
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
    let port = |number: i64| json!({ "port": 1, "protocol": "TCP", "nodePort": number });
    let mut again = service(
        "b",
        json!({ "type": "NodePort", "ports": [port(30080), port(99)] }),
    );
    assert_eq!(
        site.assign(&mut again).await.unwrap_err(),
        ["spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated"]
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
    assert!(Range::of_object("2001:db8::/63").is_none());
    let one = Range::of_object("10.0.0.7/32").unwrap();
    assert_eq!(one.any(|_| true), None);
    let two = ranges("10.43.0.0/16,10.44.0.0/16");
    assert_eq!(two, Err(RangeError::SameFamily));
}

#[tokio::test]
async fn each_address_has_an_object_that_names_its_service() {
    let site = site("10.43.0.0/16,fd00::/112").await;
    let spec = json!({
        "type": "ClusterIP", "clusterIP": "10.43.0.9", "clusterIPs": ["10.43.0.9", "fd00::9"],
        "ipFamilyPolicy": "RequireDualStack",
    });
    let mut both = service("a", spec);
    site.assign(&mut both).await.unwrap();
    assert_eq!(site.given(), ["10.43.0.9", "fd00::9"]);
    let all = site.addresses();
    let object = &all[1];
    let labels: Vec<(&str, &str)> = object.labels().collect();
    assert_eq!(
        labels,
        [
            ("ipaddress.kubernetes.io/ip-family", "IPv6"),
            ("ipaddress.kubernetes.io/managed-by", "ipallocator.k8s.io"),
        ]
    );
    assert_eq!(
        object.get(&["spec", "parentRef"]),
        Some(&json!({ "resource": "services", "namespace": "default", "name": "a" }))
    );
    // Back to one family, then none.
    let mut single = both.clone();
    single.set(&["spec", "ipFamilyPolicy"], "SingleStack".into());
    site.update(&mut single, Some(&both), false).await.unwrap();
    assert_eq!(
        single.get(&["spec", "clusterIPs"]),
        Some(&json!(["10.43.0.9"]))
    );
    assert_eq!(site.given(), ["10.43.0.9"]);
    let mut named = service("a", json!({ "type": "ExternalName", "externalName": "x" }));
    site.update(&mut named, Some(&single), false).await.unwrap();
    assert!(site.given().is_empty());
}

#[tokio::test]
async fn a_second_family_is_given_when_it_may_be() {
    let site = site("10.43.0.0/16,fd00::/112").await;
    let mut one = service("a", json!({ "type": "ClusterIP" }));
    site.assign(&mut one).await.unwrap();
    assert_eq!(one.get(&["spec", "ipFamilies"]), Some(&json!(["IPv4"])));
    let mut both = one.clone();
    both.set(&["spec", "ipFamilyPolicy"], "PreferDualStack".into());
    site.update(&mut both, Some(&one), false).await.unwrap();
    assert_eq!(
        both.get(&["spec", "ipFamilies"]),
        Some(&json!(["IPv4", "IPv6"]))
    );
    let addresses = both.list(&["spec", "clusterIPs"]);
    assert!(addresses[1].as_str().unwrap().starts_with("fd00::"));
    assert_eq!(addresses[0], one.list(&["spec", "clusterIPs"])[0]);
    assert_eq!(site.given().len(), 2);
}

#[tokio::test]
async fn networks_that_are_not_ready_are_passed_over() {
    let site = site("10.43.0.0/29").await;
    site.put(service_cidr("late", &["10.44.0.0/24"], "False"))
        .await;
    let asked = || {
        service(
            "a",
            json!({ "type": "ClusterIP", "clusterIP": "10.44.0.9" }),
        )
    };
    assert!(site.assign(&mut asked()).await.is_err());
    site.put(service_cidr("late", &["10.44.0.0/24"], "True"))
        .await;
    site.assign(&mut asked()).await.unwrap();
    // The first network has room for six.
    for name in ["b", "c", "d", "e", "f", "g", "h"] {
        let mut more = service(name, json!({ "type": "ClusterIP" }));
        site.assign(&mut more).await.unwrap();
    }
    let first = site
        .given()
        .iter()
        .filter(|one| one.starts_with("10.43."))
        .count();
    assert_eq!((first, site.given().len()), (6, 8));
}

#[tokio::test]
async fn a_trial_takes_nothing() {
    let site = site("10.43.0.0/16").await;
    let mut trial = service("a", json!({ "type": "ClusterIP" }));
    site.update(&mut trial, None, true).await.unwrap();
    assert_eq!(trial.str(&["spec", "clusterIP"]), "10.43.0.0");
    assert!(site.given().is_empty());
}

#[tokio::test]
async fn lost_addresses_are_written_down_and_orphans_freed() {
    let site = site("10.43.0.0/16").await;
    let mut one = service("a", json!({ "type": "ClusterIP" }));
    site.assign(&mut one).await.unwrap();
    let mut gone = service("b", json!({ "type": "ClusterIP" }));
    site.assign(&mut gone).await.unwrap();
    site.delete(&gone).await;
    let own = one.str(&["spec", "clusterIP"]).to_owned();
    let all = site.addresses();
    let lost = all.iter().find(|object| object.name() == own).unwrap();
    site.delete(lost).await;
    let pass = async |now: &str, address: &Object| {
        let key = repair::Key::Address(address.str(&["spec", "clusterIP"]).parse().unwrap());
        let now = now.parse().unwrap();
        repair::pass(&site.allocator, &site.registry, vec![key], now).await
    };
    let soon = pass("2026-01-01T00:00:30Z", &gone).await;
    assert_eq!(soon.told, [], "it may be about to get its Service");
    assert_eq!(soon.again[0].1, std::time::Duration::from_secs(30));
    let told = pass("2026-01-01T00:00:30Z", &one).await.told;
    assert_eq!(told[0].reason, "ClusterIPNotAllocated");
    assert_eq!(site.given().len(), 2);
    let told = pass("2026-01-01T00:01:00Z", &gone).await.told;
    assert_eq!(told[0].reason, "IPAddressNotAllocated");
    assert_eq!(site.given(), [own]);
    assert_eq!(pass("2026-01-01T00:01:00Z", &one).await.told, []);
}
