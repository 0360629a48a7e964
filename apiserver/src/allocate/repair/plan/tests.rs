//! Addresses in every state that they can be in, and what is made of each.

use super::*;
use coracle_api::object::Object;
use expect_test::{Expect, expect};
use serde_json::{Value, json};

const BEGUN: &str = "2026-01-01T00:00:00Z";

fn at(seconds: i64) -> Timestamp {
    let begun: Timestamp = BEGUN.parse().unwrap();
    begun + SignedDuration::from_secs(seconds)
}

fn object(mut value: Value, created: i64) -> Object {
    value["metadata"]["creationTimestamp"] = at(created).to_string().into();
    Object::from_value(value).unwrap()
}

/// A Service in the namespace `ns` with these addresses.
fn owner(name: &str, addresses: &[&str]) -> Object {
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": name, "namespace": "ns" },
        "spec": { "type": "ClusterIP", "clusterIPs": addresses },
    });
    object(service, 0)
}

fn reference(name: &str) -> Value {
    json!({ "resource": "services", "namespace": "ns", "name": name })
}

/// The object of 10.43.0.9, made at a second.
fn given(parent: Value, created: i64) -> Object {
    let address = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "IPAddress",
        "metadata": {
            "name": "10.43.0.9",
            "labels": {
                "ipaddress.kubernetes.io/ip-family": "IPv4",
                "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
            },
        },
        "spec": { "parentRef": parent },
    });
    object(address, created)
}

fn told(tells: &[Tell]) -> String {
    let lines = tells.iter().map(|tell| {
        let (kind, name) = (tell.about.kind(), tell.about.name());
        format!(
            "{kind} {name}: {} {}: {}\n",
            tell.reason, tell.action, tell.note
        )
    });
    lines.collect()
}

/// What is made of 10.43.0.9 at a second.
#[track_caller]
fn check(
    object: Option<&Object>,
    owners: &[&Object],
    parent: Option<&Object>,
    second: i64,
    wanted: Expect,
) {
    let owners: Vec<Object> = owners.iter().map(|one| (*one).clone()).collect();
    let seen = Seen {
        address: "10.43.0.9".parse().unwrap(),
        object,
        owners: &owners,
        parent,
        is_in_network: true,
    };
    let (mend, tells) = address(&seen, at(second));
    let mend = match mend {
        Mend::Create(owner) => format!("Create for {}", owner.name()),
        Mend::Replace(owner) => format!("Replace for {}", owner.name()),
        other => format!("{other:?}"),
    };
    wanted.assert_eq(&format!("{mend}\n{}", told(&tells)));
}

#[test]
fn an_address_that_its_service_has_is_well() {
    let (a, of_a) = (owner("a", &["10.43.0.9"]), given(reference("a"), 0));
    check(
        Some(&of_a),
        &[&a],
        Some(&a),
        0,
        expect![[r#"
        Nothing
    "#]],
    );
}

#[test]
fn a_lost_address_is_written_down_for_the_oldest() {
    let (a, b) = (owner("a", &["10.43.0.9"]), owner("b", &["10.43.0.9"]));
    check(
        None,
        &[&a],
        None,
        0,
        expect![[r#"
        Create for a
        Service a: ClusterIPNotAllocated ClusterIPAllocation: Cluster IP [IPv4]: 10.43.0.9 is not allocated; repairing
    "#]],
    );
    check(
        None,
        &[&b, &a],
        None,
        0,
        expect![[r#"
        Create for b
        Service b: ClusterIPNotAllocated ClusterIPAllocation: Cluster IP [IPv4]: 10.43.0.9 is not allocated; repairing
        Service a: ClusterIPAlreadyAllocated ClusterIPAllocation: Cluster IP [IPv4]:10.43.0.9 was assigned to multiple services; please recreate service
    "#]],
    );
}

#[test]
fn of_two_services_the_one_that_the_object_names_keeps_the_address() {
    let (a, b) = (owner("a", &["10.43.0.9"]), owner("b", &["10.43.0.9"]));
    let of_b = given(reference("b"), 0);
    check(
        Some(&of_b),
        &[&a, &b],
        Some(&b),
        0,
        expect![[r#"
        Nothing
        Service a: ClusterIPAlreadyAllocated ClusterIPAllocation: Cluster IP [IPv4]:10.43.0.9 was assigned to multiple services; please recreate service
    "#]],
    );
}

#[test]
fn an_object_that_names_another_is_replaced() {
    let (a, other) = (owner("a", &["10.43.0.9"]), owner("b", &["10.43.0.10"]));
    let gateway = json!({
        "group": "gateway.networking.k8s.io", "resource": "gateways", "namespace": "ns",
        "name": "a",
    });
    for (parent, found) in [
        (reference("b"), Some(&other)),
        (reference("gone"), None),
        (gateway, None),
    ] {
        check(
            Some(&given(parent, 0)),
            &[&a],
            found,
            0,
            expect![[r#"
            Replace for a
            Service a: ClusterIPNotAllocated ClusterIPAllocation: the ClusterIP [IPv4]: 10.43.0.9 for Service ns/a has a wrong reference; repairing
        "#]],
        );
    }
}

#[test]
fn an_object_without_its_labels_is_replaced_in_silence() {
    let a = owner("a", &["10.43.0.9"]);
    for label in ["ip-family", "managed-by"] {
        let mut of_a = given(reference("a"), 0);
        let label = format!("ipaddress.kubernetes.io/{label}");
        of_a.set(&["metadata", "labels", &label], "x".into());
        check(
            Some(&of_a),
            &[&a],
            Some(&a),
            0,
            expect![[r#"
            Replace for a
        "#]],
        );
    }
}

#[test]
fn an_address_of_no_network_is_told_of_each_that_has_it() {
    let owners = [owner("a", &["10.43.0.9"]), owner("b", &["10.43.0.9"])];
    let seen = Seen {
        address: "10.43.0.9".parse().unwrap(),
        object: None,
        owners: &owners,
        parent: None,
        is_in_network: false,
    };
    let (mend, tells) = address(&seen, at(0));
    assert_eq!(mend, Mend::Nothing);
    expect![[r#"
        Service a: ClusterIPOutOfRange ClusterIPAllocation: Cluster IP [IPv4]: 10.43.0.9 is not within any configured Service CIDR; please recreate service
        Service b: ClusterIPOutOfRange ClusterIPAllocation: Cluster IP [IPv4]: 10.43.0.9 is not within any configured Service CIDR; please recreate service
    "#]]
    .assert_eq(&told(&tells));
}

#[test]
fn an_address_whose_service_is_not_there_is_freed_after_a_minute() {
    let of_a = given(reference("a"), 0);
    check(
        Some(&of_a),
        &[],
        None,
        20,
        expect![[r#"
        LookAgainIn(40s)
    "#]],
    );
    check(
        Some(&of_a),
        &[],
        None,
        -3600,
        expect![[r#"
        LookAgainIn(60s)
    "#]],
    );
    check(
        Some(&of_a),
        &[],
        None,
        60,
        expect![[r#"
        Delete
        IPAddress 10.43.0.9: IPAddressNotAllocated IPAddressAllocation: IPAddress: 10.43.0.9 for Service ns/a appears to have leaked: cleaning up
    "#]],
    );
}

#[test]
fn an_address_that_its_service_does_not_have_is_freed_after_a_while() {
    let a = owner("a", &["10.43.0.10"]);
    let wanted = || {
        expect![[r#"
        Delete
        IPAddress 10.43.0.9: IPAddressWrongReference IPAddressAllocation: IPAddress: 10.43.0.9 for Service ns/a has a wrong reference; cleaning up
    "#]]
    };
    check(Some(&given(reference("a"), 0)), &[], Some(&a), 0, wanted());
    let later = given(reference("a"), 10);
    check(
        Some(&later),
        &[],
        Some(&a),
        12,
        expect![[r#"
        LookAgainIn(3s)
    "#]],
    );
    check(Some(&later), &[], Some(&a), 15, wanted());
    let mut external = owner("a", &[]);
    external.set(&["spec", "type"], "ExternalName".into());
    check(
        Some(&later),
        &[],
        Some(&external),
        15,
        expect![[r#"
        LookAgainIn(55s)
    "#]],
    );
    check(Some(&later), &[], Some(&external), 70, wanted());
}

#[test]
fn an_object_of_ours_that_names_no_service_is_freed_and_that_of_others_stays() {
    let gateway = json!({ "group": "g", "resource": "gateways", "namespace": "ns", "name": "a" });
    let of_gateway = given(gateway, 0);
    check(
        Some(&of_gateway),
        &[],
        None,
        0,
        expect![[r#"
        Delete
        IPAddress 10.43.0.9: IPAddressNotAllocated IPAddressAllocation: IPAddress 10.43.0.9 appears to have been modified, not referencing a Service &ParentReference{Group:g,Resource:gateways,Namespace:ns,Name:a,}: cleaning up
    "#]],
    );
    let mut others = of_gateway;
    others.remove(&["metadata", "labels"]);
    check(
        Some(&others),
        &[],
        None,
        3600,
        expect![[r#"
        Nothing
    "#]],
    );
}

#[test]
fn a_service_is_told_of_ports_and_addresses_that_cannot_be_its_own() {
    let a = owner("a", &["fd00::9", "10.43.0.x"]);
    let tells = service(&a, &[30001, 30002, 80], (30000, 32767), |port| {
        port == 30002
    });
    expect![[r#"
        Service a: ClusterIPNotValid ClusterIPValidation: Cluster IP 10.43.0.x is not a valid IP; please recreate Service
        Service a: PortAlreadyAllocated PortAllocation: Port 30002 was assigned to multiple services; please recreate service
        Service a: PortOutOfRange PortAllocation: Port 80 is not within the port range 30000-32767; please recreate service
    "#]]
    .assert_eq(&told(&tells));
    let headless = owner("a", &["None"]);
    assert_eq!(service(&headless, &[], (30000, 32767), |_| false), []);
}
