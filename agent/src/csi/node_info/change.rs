//! What is to be changed of the Node and of the CSINode when a driver comes or goes. Pure.

use crate::csi::messages::NodeGetInfoResponse;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::storage::v1::{CSINode, CSINodeDriver, CSINodeSpec, VolumeNodeResources};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A map of drivers' names to what they call the node, in JSON.
const NODE_IDS: &str = "csi.volume.kubernetes.io/nodeid";
const MIGRATED: &str = "storage.alpha.kubernetes.io/migrated-plugins";
/// Kinds of volumes that upstream has left to drivers, which the scheduler's plugins look at.
const MIGRATED_PLUGINS: &str = "kubernetes.io/aws-ebs,kubernetes.io/azure-disk,\
    kubernetes.io/azure-file,kubernetes.io/cinder,kubernetes.io/gce-pd,\
    kubernetes.io/portworx-volume,kubernetes.io/vsphere-volume";

fn node_ids(node: &Node) -> Result<BTreeMap<String, String>, String> {
    let annotations = node.metadata.annotations.as_ref();
    let given = annotations.and_then(|all| all.get(NODE_IDS));
    let Some(given) = given.filter(|given| !given.is_empty()) else {
        return Ok(BTreeMap::new());
    };
    let ids: Result<Option<BTreeMap<String, String>>, _> = serde_json::from_str(given);
    ids.map(Option::unwrap_or_default).map_err(|error| {
        format!("failed to parse node's {NODE_IDS:?} annotation value ({given:?}) err={error}")
    })
}

/// Of the Node's metadata; None when all is as it should be.
pub fn installed(
    node: &Node,
    driver: &str,
    id: &str,
    topology: &BTreeMap<String, String>,
) -> Result<Option<Value>, String> {
    let mut ids = node_ids(node)?;
    let labels = node.metadata.labels.as_ref();
    let label = |key: &str| labels.and_then(|labels| labels.get(key));
    for (key, value) in topology {
        if let Some(has) = label(key).filter(|has| *has != value) {
            return Err(format!(
                "detected topology value collision: driver reported {key:?}:{value:?} but existing \
                 label is {key:?}:{has:?}"
            ));
        }
    }
    let is_known = ids.get(driver).is_some_and(|known| known == id);
    let is_labelled = topology.keys().all(|key| label(key).is_some());
    if is_known && is_labelled {
        return Ok(None);
    }
    ids.insert(driver.to_owned(), id.to_owned());
    let ids = json!(ids).to_string();
    Ok(Some(
        json!({ "annotations": { NODE_IDS: ids }, "labels": topology }),
    ))
}

/// Labels stay.
pub fn uninstalled(node: &Node, driver: &str) -> Result<Option<Value>, String> {
    let mut ids = node_ids(node)?;
    if ids.remove(driver).is_none() {
        return Ok(None);
    }
    let left = (!ids.is_empty()).then(|| json!(ids).to_string());
    Ok(Some(json!({ "annotations": { NODE_IDS: left } })))
}

pub fn csi_node(name: &str, uid: &str) -> CSINode {
    CSINode {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            annotations: Some(BTreeMap::from([(
                MIGRATED.to_owned(),
                MIGRATED_PLUGINS.to_owned(),
            )])),
            owner_references: Some(vec![OwnerReference {
                api_version: "v1".to_owned(),
                kind: "Node".to_owned(),
                name: name.to_owned(),
                uid: uid.to_owned(),
                ..OwnerReference::default()
            }]),
            ..ObjectMeta::default()
        },
        spec: CSINodeSpec {
            drivers: Vec::new(),
        },
    }
}

pub fn is_of(found: &CSINode, name: &str, uid: &str) -> bool {
    let mut owners = found.metadata.owner_references.iter().flatten();
    owners.any(|owner| owner.kind == "Node" && owner.name == name && owner.uid == uid)
}

/// False when it is as it should be.
pub fn install(own: &mut CSINode, driver: &str, info: &NodeGetInfoResponse) -> bool {
    let topology = info.accessible_topology.as_ref();
    let keys: BTreeSet<String> = topology
        .map(|topology| topology.segments.keys().cloned().collect())
        .unwrap_or_default();
    let count = match info.max_volumes_per_node {
        count if count > 0 => Some(i32::try_from(count).unwrap_or(i32::MAX)),
        _ => None,
    };
    let new = CSINodeDriver {
        name: driver.to_owned(),
        node_id: info.node_id.clone(),
        topology_keys: Some(keys.iter().cloned().collect())
            .filter(|keys: &Vec<_>| !keys.is_empty()),
        allocatable: count.map(|count| VolumeNodeResources { count: Some(count) }),
    };
    let is_same = |known: &CSINodeDriver| {
        let known_keys = known.topology_keys.iter().flatten().cloned();
        let known_count = known.allocatable.as_ref().and_then(|known| known.count);
        known.name == new.name
            && known.node_id == new.node_id
            && known_keys.collect::<BTreeSet<String>>() == keys
            && known_count == count
    };
    let drivers = &mut own.spec.drivers;
    if drivers.iter().any(is_same) {
        return false;
    }
    drivers.retain(|known| known.name != driver);
    drivers.push(new);
    true
}

/// False when there is nothing of it.
pub fn uninstall(own: &mut CSINode, driver: &str) -> bool {
    let before = own.spec.drivers.len();
    own.spec.drivers.retain(|known| known.name != driver);
    own.spec.drivers.len() != before
}

#[cfg(test)]
mod tests;
