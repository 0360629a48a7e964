//! The server's objects follow the drivers that come and go.

use super::{csi_node, install, installed, is_of, uninstall, uninstalled};
use crate::csi::messages::{NodeGetInfoResponse, Topology};
use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn node(metadata: Value) -> Node {
    serde_json::from_value(json!({ "metadata": metadata })).unwrap()
}

fn zone(name: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("topology.d/zone".to_owned(), name.to_owned())])
}

#[test]
fn the_node_says_what_its_drivers_call_it_and_where_it_is() {
    let change = installed(&node(json!({})), "d", "id", &zone("z")).unwrap();
    let expected = json!({
        "annotations": {"csi.volume.kubernetes.io/nodeid": "{\"d\":\"id\"}"},
        "labels": {"topology.d/zone": "z"},
    });
    assert_eq!(change, Some(expected.clone()));
    let known = node(expected);
    assert_eq!(installed(&known, "d", "id", &zone("z")), Ok(None));
    assert_eq!(
        installed(&known, "d", "id", &zone("other")).unwrap_err(),
        "detected topology value collision: driver reported \"topology.d/zone\":\"other\" but \
         existing label is \"topology.d/zone\":\"z\""
    );
    let gone = uninstalled(&known, "d").unwrap();
    let none = json!({"annotations": {"csi.volume.kubernetes.io/nodeid": null}});
    assert_eq!(gone, Some(none));
    assert_eq!(uninstalled(&known, "other"), Ok(None));
}

#[test]
fn an_annotation_that_is_no_map_is_told_of() {
    let broken = json!({"annotations": {"csi.volume.kubernetes.io/nodeid": "{"}});
    let error = installed(&node(broken), "d", "id", &BTreeMap::new()).unwrap_err();
    assert!(error.starts_with("failed to parse node's"), "{error}");
}

#[test]
fn the_nodes_own_object_lists_its_drivers() {
    let mut own = csi_node("n", "u");
    assert!(is_of(&own, "n", "u") && !is_of(&own, "n", "former"));
    let mut info = NodeGetInfoResponse {
        node_id: "id".to_owned(),
        max_volumes_per_node: 7,
        accessible_topology: Some(Topology {
            segments: zone("z"),
        }),
    };
    assert!(install(&mut own, "d", &info));
    assert!(!install(&mut own, "d", &info));
    let driver = &own.spec.drivers[0];
    assert_eq!(
        driver.topology_keys,
        Some(vec!["topology.d/zone".to_owned()])
    );
    assert_eq!(driver.allocatable.as_ref().unwrap().count, Some(7));
    info.max_volumes_per_node = 0;
    assert!(install(&mut own, "d", &info));
    assert_eq!(own.spec.drivers.len(), 1);
    assert_eq!(own.spec.drivers[0].allocatable, None);
    assert!(uninstall(&mut own, "d"));
    assert!(!uninstall(&mut own, "d"));
}
