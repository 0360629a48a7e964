//! A Service, its pods and slices in; what is written out, as text.

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::endpoint_slices::endpoints_of;
use crate::endpointslice::execute::recycle;
use crate::endpointslice::packing::ENDPOINTS_PER_SLICE_MAX;

struct Site {
    service: Value,
    pods: Vec<Arc<Pod>>,
    slices: Vec<EndpointSlice>,
    topology: Topology,
    made: usize,
}

fn service(spec: &Value) -> Value {
    let mut value = json!({
        "metadata": {"name": "web", "namespace": "default", "uid": "s"},
        "spec": {
            "selector": {"app": "web"}, "clusterIP": "10.43.0.9", "ipFamilies": ["IPv4"],
            "ports": [{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}],
        },
    });
    for (key, one) in spec.as_object().unwrap() {
        value["spec"][key] = one.clone();
    }
    value
}

/// `NAME ADDRESS[,ADDRESS] [ready|deleting|done|pending] [node=NAME] [host=NAME] [port=NUMBER]`.
fn pod(line: &str) -> Arc<Pod> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let option = |name: &str| words.iter().find_map(|word| word.strip_prefix(name));
    let addresses = words[1].split(',').map(|ip| json!({ "ip": ip }));
    let mut pod = json!({
        "metadata": {"name": words[0], "namespace": "default", "uid": words[0]},
        "spec": {
            "nodeName": option("node=").unwrap_or("n-a"),
            "containers": [{"name": "c", "ports": [
                {"name": "http", "containerPort": option("port=").unwrap_or("8080").parse::<i32>().unwrap()},
            ]}],
        },
        "status": {"phase": "Running", "podIPs": addresses.collect::<Vec<_>>()},
    });
    if let Some(host) = option("host=") {
        pod["spec"]["hostname"] = json!(host);
        pod["spec"]["subdomain"] = json!("web");
    }
    for word in &words[2..] {
        match *word {
            "ready" => pod["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]),
            "deleting" => pod["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z"),
            "done" => pod["status"]["phase"] = json!("Succeeded"),
            "pending" => pod["status"]["podIPs"] = json!([]),
            _ => {}
        }
    }
    Arc::new(serde_json::from_value(pod).unwrap())
}

/// Nodes `n-ZONE`; others are not there.
fn node(name: &str) -> Option<Arc<Node>> {
    let zone = name.strip_prefix("n-")?;
    let labels = json!({ "topology.kubernetes.io/zone": zone });
    let node = json!({"metadata": {"name": name, "labels": labels}});
    Some(Arc::new(serde_json::from_value(node).unwrap()))
}

fn site(spec: &Value, pods: &str) -> Site {
    Site {
        service: service(spec),
        pods: pods.lines().map(pod).collect(),
        slices: Vec::new(),
        topology: Topology::default(),
        made: 0,
    }
}

impl Site {
    fn service(&self) -> Service {
        serde_json::from_value(self.service.clone()).unwrap()
    }

    fn plan(&self) -> Plan {
        let service = self.service();
        let observed = Observed {
            service: &service,
            pods: &self.pods,
            node: &node,
            existing: self.slices.clone(),
        };
        plan(observed, &self.topology)
    }

    /// Plans, writes as the server would, and tells.
    fn pass(&mut self) -> String {
        let mut plan = self.plan();
        let mut told = String::new();
        let service = self.service();
        for slice in &plan.other_families {
            writeln!(told, "delete {} of another family", name(slice)).unwrap();
        }
        self.slices.clear();
        for family in &mut plan.families {
            recycle(&service, &mut family.changes);
            let changes = std::mem::take(&mut family.changes);
            for mut slice in changes.create {
                self.made += 1;
                writeln!(told, "create {}", shown(&slice)).unwrap();
                slice.metadata.name = Some(format!("web-{}", self.made));
                self.slices.push(slice);
            }
            for slice in changes.update {
                writeln!(told, "update {} {}", name(&slice), shown(&slice)).unwrap();
                self.slices.push(slice);
            }
            for slice in &changes.delete {
                writeln!(told, "delete {}", name(slice)).unwrap();
            }
            self.slices.extend(changes.unchanged);
            for missing in &family.missing_nodes {
                writeln!(told, "no node {} of {}", missing.node, missing.pod).unwrap();
            }
            for event in &family.events {
                let (kind, reason) = (event.kind.as_str(), event.reason);
                writeln!(told, "{kind} {reason} {}", event.message).unwrap();
            }
        }
        told
    }
}

fn name(slice: &EndpointSlice) -> &str {
    slice.metadata.name.as_deref().unwrap()
}

fn shown(slice: &EndpointSlice) -> String {
    let ports = slice.ports.iter().flatten().map(|port| {
        let (name, number) = (port.name.as_deref().unwrap(), port.port.unwrap());
        format!("{name}:{number}/{}", port.protocol.as_deref().unwrap())
    });
    let ports: Vec<String> = ports.collect();
    let mut text = format!("{} [{}]", slice.address_type, ports.join(" "));
    for endpoint in endpoints_of(slice) {
        let conditions = endpoint.conditions.clone().unwrap();
        write!(text, " {}", endpoint.addresses.join(",")).unwrap();
        for (says, letter) in [
            (conditions.ready, "+"),
            (conditions.serving, "s"),
            (conditions.terminating, "t"),
        ] {
            text += if says == Some(true) { letter } else { "" };
        }
        if let Some(host) = &endpoint.hostname {
            write!(text, "({host})").unwrap();
        }
        let hints = endpoint.hints.clone().unwrap_or_default();
        for zone in hints.for_zones.iter().flatten() {
            write!(text, ">{}", zone.name).unwrap();
        }
        for node in hints.for_nodes.iter().flatten() {
            write!(text, ">{}", node.name).unwrap();
        }
    }
    text
}

fn check(spec: &Value, pods: &str, wanted: Expect) {
    let mut site = site(spec, pods);
    wanted.assert_eq(&site.pass());
    // What was written is what was wanted: nothing is left to do.
    let again = site.pass();
    let writes = again
        .lines()
        .filter(|line| line.starts_with("create") || line.starts_with("update"));
    assert_eq!(writes.count(), 0, "{again}");
}

#[test]
fn conditions_follow_the_pod() {
    check(
        &json!({}),
        "a 10.0.0.1 ready
         b 10.0.0.2
         c 10.0.0.3 ready deleting
         d 10.0.0.4 deleting
         e 10.0.0.5 done
         f 10.0.0.6 pending",
        expect![[r#"
            create IPv4 [http:8080/TCP] 10.0.0.1+s 10.0.0.2 10.0.0.3st 10.0.0.4t
        "#]],
    );
    check(
        &json!({"publishNotReadyAddresses": true}),
        "a 10.0.0.1
         b 10.0.0.2 ready deleting
         c 10.0.0.3 node=gone",
        expect![[r#"
            create IPv4 [http:8080/TCP] 10.0.0.1+ 10.0.0.2+st 10.0.0.3+
        "#]],
    );
}

#[test]
fn a_pod_whose_node_is_gone_is_left_out_and_told() {
    check(
        &json!({}),
        "a 10.0.0.1 ready
         b 10.0.0.2 ready node=gone",
        expect![[r#"
            create IPv4 [http:8080/TCP] 10.0.0.1+s
            no node gone of b
        "#]],
    );
}

#[test]
fn each_family_has_slices_of_its_own() {
    check(
        &json!({"ipFamilies": ["IPv6", "IPv4"]}),
        "a 10.0.0.1,fd00::1 ready
         b 010.0.0.2 ready",
        expect![[r#"
            create IPv4 [http:8080/TCP] 10.0.0.1+s 10.0.0.2+s
            create IPv6 [http:8080/TCP] fd00::1+s
        "#]],
    );
    let mut site = site(
        &json!({"ipFamilies": ["IPv6", "IPv4"]}),
        "a 10.0.0.1,fd00::1 ready",
    );
    site.pass();
    site.service["spec"]["ipFamilies"] = json!(["IPv4"]);
    expect![[r#"
        delete web-2 of another family
    "#]]
    .assert_eq(&site.pass());
}

#[test]
fn ports_by_name_are_those_of_each_pod() {
    let ports = json!([
        {"name": "web", "port": 80, "targetPort": "http", "protocol": "TCP"},
        {"name": "odd", "port": 81, "targetPort": "nowhere", "protocol": "TCP"},
        {"name": "more", "port": 82, "protocol": "TCP"},
    ]);
    check(
        &json!({"ports": ports}),
        "a 10.0.0.1 ready
         b 10.0.0.2 ready port=9090
         c 10.0.0.3 ready",
        expect![[r#"
            create IPv4 [web:9090/TCP more:82/TCP] 10.0.0.2+s
            create IPv4 [more:82/TCP web:8080/TCP] 10.0.0.1+s 10.0.0.3+s
        "#]],
    );
    check(
        &json!({"ports": [], "clusterIP": "None"}),
        "a 10.0.0.1 ready host=first",
        expect![[r#"
            create IPv4 [] 10.0.0.1+s(first)
        "#]],
    );
}

#[test]
fn a_service_without_endpoints_has_an_empty_slice() {
    check(
        &json!({}),
        "",
        expect![[r#"
        create IPv4 []
    "#]],
    );
    let mut site = site(&json!({}), "");
    site.pass();
    site.pods = vec![pod("a 10.0.0.1 ready")];
    // The empty one takes on the endpoints.
    expect![[r#"
        update web-1 IPv4 [http:8080/TCP] 10.0.0.1+s
    "#]]
    .assert_eq(&site.pass());
    site.pods.clear();
    expect![[r#"
        update web-1 IPv4 []
    "#]]
    .assert_eq(&site.pass());
    site.service["metadata"]["labels"] = json!({"tier": "front"});
    expect![[r#"
        update web-1 IPv4 []
    "#]]
    .assert_eq(&site.pass());
    assert_eq!(site.pass(), "");
}

#[test]
fn labels_are_the_service_s_and_say_whose_the_slice_is() {
    let mut site = site(&json!({"clusterIP": "None"}), "a 10.0.0.1 ready");
    site.service["metadata"]["labels"] =
        json!({"tier": "front", "kubernetes.io/service-name": "forged"});
    site.pass();
    let expected = json!({
        "tier": "front", "service.kubernetes.io/headless": "",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    });
    let slice = &site.slices[0];
    assert_eq!(json!(slice.metadata.labels), expected);
    assert_eq!(slice.metadata.generate_name.as_deref(), Some("web-"));
    let owner = &slice.metadata.owner_references.as_ref().unwrap()[0];
    assert_eq!((&*owner.kind, &*owner.uid), ("Service", "s"));
    assert_eq!(owner.controller, Some(true));
    site.service["metadata"]["labels"] = json!({});
    assert!(site.pass().starts_with("update web-1"));
}

#[test]
fn slices_of_an_earlier_service_go() {
    let mut site = site(&json!({}), "a 10.0.0.1 ready");
    site.pass();
    site.service["metadata"]["uid"] = json!("another");
    expect![[r#"
        create IPv4 [http:8080/TCP] 10.0.0.1+s
        delete web-1
    "#]]
    .assert_eq(&site.pass());
}

/// So many pods, from a number on.
fn many(from: usize, count: usize) -> Vec<Arc<Pod>> {
    let line = |number: usize| {
        let (high, low) = (number / 250, number % 250);
        format!("p{number:04} 10.0.{high}.{low} ready")
    };
    (from..from + count)
        .map(|number| pod(&line(number)))
        .collect()
}

fn sizes(site: &Site) -> Vec<usize> {
    let mut sizes: Vec<usize> = site
        .slices
        .iter()
        .map(|one| endpoints_of(one).len())
        .collect();
    sizes.sort_unstable();
    sizes
}

fn writes(told: &str) -> Vec<&str> {
    let words = told.lines().map(|line| line.split(' ').next().unwrap());
    words.collect()
}

#[test]
fn slices_are_filled_with_few_writes() {
    let mut site = site(&json!({}), "");
    site.pods = many(0, 250);
    assert_eq!(writes(&site.pass()), ["create", "create", "create"]);
    assert_eq!(sizes(&site), [50, 100, 100]);
    // What is new goes where there is room.
    site.pods = many(0, 290);
    assert_eq!(writes(&site.pass()), ["update"]);
    assert_eq!(sizes(&site), [90, 100, 100]);
    // Two slices lose some; what is new fills them, and no third one is touched.
    site.pods = many(5, 285);
    site.pods.extend(many(1000, 5));
    let told = site.pass();
    assert_eq!(writes(&told), ["update", "update"], "{told}");
    assert_eq!(sizes(&site), [90, 100, 100]);
    // A slice left empty goes.
    site.pods = many(1000, 5);
    let told = site.pass();
    assert_eq!(writes(&told), ["update", "update", "delete"], "{told}");
    assert_eq!(sizes(&site), [2, 3]);
}

#[test]
fn hints_of_traffic_distribution_are_the_endpoint_s_own_zone_and_node() {
    let pods = "a 10.0.0.1 ready
                b 10.0.0.2 node=n-b";
    check(
        &json!({"trafficDistribution": "PreferClose"}),
        pods,
        expect![[r#"
            create IPv4 [http:8080/TCP] 10.0.0.1+s>a 10.0.0.2
        "#]],
    );
    let mut site = site(&json!({}), pods);
    site.pass();
    site.service["spec"]["trafficDistribution"] = json!("PreferSameNode");
    expect![[r#"
        update web-1 IPv4 [http:8080/TCP] 10.0.0.1+s>a>n-a 10.0.0.2
    "#]]
    .assert_eq(&site.pass());
    site.service["spec"]["trafficDistribution"] = json!("PreferSameZone");
    expect![[r#"
        update web-1 IPv4 [http:8080/TCP] 10.0.0.1+s>a 10.0.0.2
    "#]]
    .assert_eq(&site.pass());
    site.service["spec"]["trafficDistribution"] = Value::Null;
    expect![[r#"
        update web-1 IPv4 [http:8080/TCP] 10.0.0.1+s 10.0.0.2
    "#]]
    .assert_eq(&site.pass());
    assert_eq!(site.pass(), "");
}

fn capacity(zones: &[(&str, &str)]) -> Vec<Arc<Node>> {
    let node = |(zone, cpu): &(&str, &str)| {
        Arc::new(
            serde_json::from_value(json!({
                "metadata": {"name": format!("n-{zone}"),
                             "labels": {"topology.kubernetes.io/zone": zone}},
                "status": {"allocatable": {"cpu": cpu},
                           "conditions": [{"type": "Ready", "status": "True"}]},
            }))
            .unwrap(),
        )
    };
    zones.iter().map(node).collect()
}

#[test]
fn hints_of_topology_divide_endpoints_by_cpus() {
    let mut site = site(
        &json!({}),
        "a 10.0.0.1 ready node=n-a
         b 10.0.0.2 ready node=n-a
         c 10.0.0.3 ready node=n-a
         d 10.0.0.4 ready node=n-b",
    );
    site.service["metadata"]["annotations"] =
        json!({"service.kubernetes.io/topology-mode": "Auto"});
    expect![[r#"
        create IPv4 [http:8080/TCP] 10.0.0.1+s 10.0.0.2+s 10.0.0.3+s 10.0.0.4+s
        Warning TopologyAwareHintsDisabled Insufficient Node information: allocatable CPU or zone not specified on one or more nodes, addressType: IPv4
    "#]]
    .assert_eq(&site.pass());
    site.topology
        .set_nodes(&capacity(&[("a", "2"), ("b", "2000m")]));
    expect![[r#"
        update web-1 IPv4 [http:8080/TCP] 10.0.0.1+s>b 10.0.0.2+s>a 10.0.0.3+s>a 10.0.0.4+s>b
        Normal TopologyAwareHintsEnabled Topology Aware Hints has been enabled, addressType: IPv4
    "#]]
    .assert_eq(&site.pass());
    assert_eq!(site.pass(), "");
    assert!(site.topology.overloaded().is_empty());
    // A node more, and the shares are other ones.
    site.topology
        .set_nodes(&capacity(&[("a", "2"), ("b", "8")]));
    assert_eq!(site.topology.overloaded().len(), 1);
    expect![[r#"
        update web-1 IPv4 [http:8080/TCP] 10.0.0.1+s>b 10.0.0.2+s>b 10.0.0.3+s>a 10.0.0.4+s>b
    "#]]
    .assert_eq(&site.pass());
    site.topology.set_nodes(&capacity(&[
        ("a", "2"),
        ("b", "2"),
        ("c", "2"),
        ("d", "2"),
        ("e", "2"),
    ]));
    expect![[r#"
        update web-1 IPv4 [http:8080/TCP] 10.0.0.1+s 10.0.0.2+s 10.0.0.3+s 10.0.0.4+s
        Warning TopologyAwareHintsDisabled Insufficient number of endpoints (4 endpoints, 5 zones), addressType: IPv4
    "#]]
    .assert_eq(&site.pass());
}

#[test]
fn hints_of_topology_go_with_the_annotation() {
    let mut site = site(
        &json!({}),
        "a 10.0.0.1 ready node=n-a
         b 10.0.0.2 ready node=n-b",
    );
    site.service["metadata"]["annotations"] =
        json!({"service.kubernetes.io/topology-aware-hints": "auto"});
    site.topology
        .set_nodes(&capacity(&[("a", "2"), ("b", "2")]));
    expect![[r#"
        create IPv4 [http:8080/TCP] 10.0.0.1+s>a 10.0.0.2+s>b
        Normal TopologyAwareHintsEnabled Topology Aware Hints has been enabled, addressType: IPv4
    "#]]
    .assert_eq(&site.pass());
    site.service["metadata"]["annotations"] = json!({});
    expect![[r#"
        update web-1 IPv4 [http:8080/TCP] 10.0.0.1+s 10.0.0.2+s
        Warning TopologyAwareHintsDisabled Topology Aware Hints has been disabled, addressType: IPv4
    "#]]
    .assert_eq(&site.pass());
    assert_eq!(site.pass(), "");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever comes and goes: every pod is in one slice, no slice is too large, and what was
    /// written needs no more writes.
    #[test]
    fn any_change_ends_in_order(steps in prop::collection::vec((0_usize..300, 0_usize..260), 1..5)) {
        let mut site = site(&json!({}), "");
        for (from, count) in steps {
            site.pods = many(from, count);
            site.pass();
            let mut found: Vec<String> = Vec::new();
            for slice in &site.slices {
                prop_assert!(endpoints_of(slice).len() <= ENDPOINTS_PER_SLICE_MAX);
                found.extend(endpoints_of(slice).iter().map(|one| one.addresses[0].clone()));
            }
            found.sort();
            let mut wanted: Vec<String> = site.pods.iter()
                .map(|pod| pod.status.as_ref().unwrap().pod_ips.as_ref().unwrap()[0].ip.clone())
                .collect();
            wanted.sort();
            prop_assert_eq!(found, wanted);
            prop_assert_eq!(site.pass(), "");
        }
    }
}
