//! Which volume a claim gets, and what becomes of one. Pure.

use std::collections::BTreeMap;

use coracle_client::events;
use coracle_client::volumes::{
    self, LOCAL_PATH, LOCAL_PATH_DIRECTORY, PROVISIONED_BY, PROVISIONER, SELECTED_NODE, annotation,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{
    LocalVolumeSource, Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm,
    PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimSpec, PersistentVolumeSpec,
    VolumeNodeAffinity,
};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::nodes;

const CLASS: &str = "local-path";
const DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";
/// Keeps a volume until its directory is removed; every provisioner's.
const FINALIZER: &str = "external-provisioner.volume.kubernetes.io/finalizer";
/// Keeps a volume while it is bound.
const PROTECTION: &str = "kubernetes.io/pv-protection";
/// Of a volume: the name of the node that its directory is on.
const NODE: &str = "coracle.io/local-path-node";
const HOSTNAME: &str = "kubernetes.io/hostname";
/// A node that was deleted may register again; what it has after that is left to it.
const ABANDONED: SignedDuration = SignedDuration::from_mins(5);

pub(super) fn class(is_default: bool) -> StorageClass {
    let default = (DEFAULT.to_owned(), "true".to_owned());
    StorageClass {
        metadata: ObjectMeta {
            name: Some(CLASS.to_owned()),
            annotations: is_default.then(|| BTreeMap::from([default])),
            ..ObjectMeta::default()
        },
        provisioner: LOCAL_PATH.to_owned(),
        reclaim_policy: Some("Delete".to_owned()),
        volume_binding_mode: Some("WaitForFirstConsumer".to_owned()),
        ..StorageClass::default()
    }
}

/// Where a node keeps volumes; `None` when it has no place for them.
pub(super) fn directory(node: &Node) -> Option<&str> {
    annotation(&node.metadata, LOCAL_PATH_DIRECTORY).filter(|path| path.starts_with('/'))
}

/// Whether the volume is right below this directory: its node removes nothing elsewhere.
fn is_below(volume: &PersistentVolume, directory: &str) -> bool {
    let name = volume.metadata.name.as_deref().unwrap_or_default();
    let local = volume.spec.as_ref().and_then(|spec| spec.local.as_ref());
    local.is_some_and(|local| local.path == place(directory, name))
}

fn place(directory: &str, name: &str) -> String {
    format!("{}/{name}", directory.trim_end_matches('/'))
}

#[derive(Debug)]
pub(super) enum Provision {
    Nothing,
    Volume(Box<PersistentVolume>),
    /// No node will do.
    Refuse(String),
    /// Another node may.
    Elsewhere(String),
}

/// `class` is the claim's, `node` the one that was chosen for it, if they are there.
pub(super) fn provision(
    claim: &PersistentVolumeClaim,
    class: Option<&StorageClass>,
    node: Option<&Node>,
) -> Provision {
    let (Some(spec), Some(class)) = (&claim.spec, class) else {
        return Provision::Nothing;
    };
    let is_asked = annotation(&claim.metadata, PROVISIONER) == Some(LOCAL_PATH);
    let is_open = volumes::volume_name(claim).is_empty();
    let is_going = claim.metadata.deletion_timestamp.is_some();
    if class.provisioner != LOCAL_PATH || !is_asked || !is_open || is_going {
        return Provision::Nothing;
    }
    if let Some(why) = unfit(spec) {
        return Provision::Refuse(why.to_owned());
    }
    let Some(chosen) = annotation(&claim.metadata, SELECTED_NODE) else {
        let why = "no node is chosen: the class needs volumeBindingMode WaitForFirstConsumer";
        return match volumes::binds_late(class) {
            true => Provision::Nothing, // It was given back.
            false => Provision::Refuse(why.to_owned()),
        };
    };
    let Some(node) = node else {
        return Provision::Elsewhere(format!("node {chosen:?} is not there"));
    };
    match directory(node) {
        Some(directory) => Provision::Volume(Box::new(volume(claim, spec, class, node, directory))),
        None => Provision::Elsewhere(format!("node {chosen:?} has no place for local paths")),
    }
}

fn unfit(spec: &PersistentVolumeClaimSpec) -> Option<&'static str> {
    let mut modes = spec.access_modes.iter().flatten();
    if spec.volume_mode.as_deref() == Some("Block") {
        Some("a directory is no block device: volumeMode must be Filesystem")
    } else if !modes.all(|mode| matches!(mode.as_str(), "ReadWriteOnce" | "ReadWriteOncePod")) {
        Some("accessModes other than ReadWriteOnce and ReadWriteOncePod: it is on one node")
    } else if spec.selector.is_some() {
        Some("claim Selector is not supported")
    } else if spec.data_source.is_some() || spec.data_source_ref.is_some() {
        Some("a data source is not supported")
    } else {
        None
    }
}

fn volume(
    claim: &PersistentVolumeClaim,
    spec: &PersistentVolumeClaimSpec,
    class: &StorageClass,
    node: &Node,
    directory: &str,
) -> PersistentVolume {
    let uid = claim.metadata.uid.as_deref().unwrap_or_default();
    let name = format!("pvc-{uid}");
    let requests = spec.resources.as_ref().and_then(|all| all.requests.clone());
    let node_name = node.metadata.name.clone().unwrap_or_default();
    let annotations = BTreeMap::from([
        (PROVISIONED_BY.to_owned(), LOCAL_PATH.to_owned()),
        (NODE.to_owned(), node_name),
    ]);
    PersistentVolume {
        spec: Some(PersistentVolumeSpec {
            capacity: requests,
            access_modes: spec.access_modes.clone(),
            claim_ref: Some(events::reference(claim)),
            persistent_volume_reclaim_policy: class.reclaim_policy.clone(),
            storage_class_name: class.metadata.name.clone(),
            mount_options: class.mount_options.clone(),
            volume_mode: Some("Filesystem".to_owned()),
            local: Some(LocalVolumeSource {
                path: place(directory, &name),
                fs_type: None,
            }),
            node_affinity: Some(only(node)),
            ..PersistentVolumeSpec::default()
        }),
        metadata: ObjectMeta {
            name: Some(name),
            annotations: Some(annotations),
            finalizers: Some(vec![FINALIZER.to_owned()]),
            ..ObjectMeta::default()
        },
        status: None,
    }
}

fn only(node: &Node) -> VolumeNodeAffinity {
    let labels = node.metadata.labels.as_ref();
    let host = labels.and_then(|labels| labels.get(HOSTNAME));
    let host = host.or(node.metadata.name.as_ref());
    let requirement = NodeSelectorRequirement {
        key: HOSTNAME.to_owned(),
        operator: "In".to_owned(),
        values: Some(host.cloned().into_iter().collect()),
    };
    VolumeNodeAffinity {
        required: Some(NodeSelector {
            node_selector_terms: vec![NodeSelectorTerm {
                match_expressions: Some(vec![requirement]),
                match_fields: None,
            }],
        }),
    }
}

/// Made here.
pub(super) fn is_own(volume: &PersistentVolume) -> bool {
    annotation(&volume.metadata, PROVISIONED_BY) == Some(LOCAL_PATH)
}

pub(super) fn node_of(volume: &PersistentVolume) -> &str {
    annotation(&volume.metadata, NODE).unwrap_or_default()
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum End {
    Nothing,
    /// Its claim is gone: the object is deleted as it is now, and the rest follows from that.
    Delete,
    /// It goes, and its directory with it.
    Remove,
    /// It goes, and its directory stays.
    LetGo,
}

pub(super) fn end(volume: &PersistentVolume) -> End {
    let meta = &volume.metadata;
    let has = |name: &str| meta.finalizers.iter().flatten().any(|one| one == name);
    let spec = volume.spec.as_ref();
    let policy = spec.and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
    let is_deleted = policy == Some("Delete");
    let phase = volume.status.as_ref().and_then(|it| it.phase.as_deref());
    match (is_own(volume), meta.deletion_timestamp.is_some()) {
        (false, _) => End::Nothing,
        // Without a claim it was taken back by hand, and its phase is not news yet.
        (true, false) if is_deleted && is_held(volume) && phase == Some("Released") => End::Delete,
        (true, false) => End::Nothing,
        // While it is bound its claim may be in use.
        (true, true) if !has(FINALIZER) || has(PROTECTION) || phase == Some("Bound") => {
            End::Nothing
        }
        (true, true) if is_deleted => End::Remove,
        (true, true) => End::LetGo,
    }
}

/// By one claim and no other.
fn is_held(volume: &PersistentVolume) -> bool {
    let uid = volumes::claim_ref(volume).and_then(|held| held.uid.as_deref());
    uid.is_some_and(|uid| !uid.is_empty())
}

/// What becomes of the directory of a volume that goes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Removal {
    Ask,
    Wait,
    /// There is nobody to ask who could remove it; why.
    Leave(String),
}

pub(super) fn removal(volume: &PersistentVolume, node: Option<&Node>, now: Timestamp) -> Removal {
    let name = node_of(volume);
    match node {
        Some(node) if !nodes::is_ready(node) => Removal::Wait,
        Some(node) if directory(node).is_some_and(|it| is_below(volume, it)) => Removal::Ask,
        Some(_) => Removal::Leave(format!("node {name} has its volumes elsewhere now")),
        None if is_going_for(volume, ABANDONED, now) => {
            Removal::Leave(format!("node {name} is gone"))
        }
        None => Removal::Wait,
    }
}

/// Whether the volume has been on its way out for so long.
fn is_going_for(volume: &PersistentVolume, at_least: SignedDuration, now: Timestamp) -> bool {
    let since = volume.metadata.deletion_timestamp.as_ref();
    since.is_some_and(|since| now.duration_since(since.0) >= at_least)
}

/// The volume without what keeps it here.
pub(super) fn let_go(volume: &PersistentVolume) -> PersistentVolume {
    let mut free = volume.clone();
    if let Some(finalizers) = &mut free.metadata.finalizers {
        finalizers.retain(|one| one != FINALIZER);
    }
    free
}
