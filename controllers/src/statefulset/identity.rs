//! What makes a pod the one of its ordinal: its name, labels, host name and volumes. Pure.

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec};
use k8s_openapi::api::core::v1::{PersistentVolumeClaimVolumeSource, Pod, PodTemplateSpec, Volume};

use super::claims;
use crate::pod_control::pod_from;

const POD_NAME_LABEL: &str = "statefulset.kubernetes.io/pod-name";
const POD_INDEX_LABEL: &str = "apps.kubernetes.io/pod-index";
/// Which revision a pod was made from.
const REVISION_LABEL: &str = "controller-revision-hash";

/// One state of the pod template, and the name of the ControllerRevision that keeps it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Revision<'a> {
    pub name: &'a str,
    pub template: &'a PodTemplateSpec,
}

/// The ordinal of a pod, by its name; `None` when it is not one of this set.
pub(super) fn ordinal(set: &StatefulSet, pod: &Pod) -> Option<i32> {
    let (name, parent) = (pod.metadata.name.as_deref()?, set.metadata.name.as_deref()?);
    let digits = name.strip_prefix(parent)?.strip_prefix('-')?;
    let ordinal: i32 = digits.parse().ok()?;
    // No sign and no leading zero: one ordinal has one name.
    (ordinal.to_string() == digits).then_some(ordinal)
}

pub(super) fn pod_name(set: &StatefulSet, ordinal: i32) -> String {
    let name = set.metadata.name.as_deref().unwrap_or_default();
    format!("{name}-{ordinal}")
}

pub(super) fn revision_of(pod: &Pod) -> &str {
    let labels = pod.metadata.labels.as_ref();
    let revision = labels.and_then(|labels| labels.get(REVISION_LABEL));
    revision.map_or("", String::as_str)
}

/// The pod of an ordinal at a revision.
pub(super) fn new_pod(
    set: &StatefulSet,
    spec: &StatefulSetSpec,
    revision: Revision<'_>,
    ordinal: i32,
) -> Pod {
    let name = pod_name(set, ordinal);
    let mut pod = pod_from(set, revision.template);
    pod.metadata.name = Some(name.clone());
    pod.metadata.namespace.clone_from(&set.metadata.namespace);
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(REVISION_LABEL.to_owned(), revision.name.to_owned());
    let placed = pod.spec.get_or_insert_default();
    placed.hostname = Some(name);
    placed.subdomain = spec.service_name.clone().filter(|name| !name.is_empty());
    label(&mut pod, ordinal);
    mount(set, spec, &mut pod, ordinal);
    pod
}

/// The pod as it should be, when its labels or volumes are not those of its ordinal. What a pod
/// was only made with, its host name and subdomain, is left alone.
pub(super) fn mended(
    set: &StatefulSet,
    spec: &StatefulSetSpec,
    pod: &Pod,
    ordinal: i32,
) -> Option<Pod> {
    let (labelled, mounted) = (is_labelled(pod), is_mounted(set, spec, pod, ordinal));
    if labelled && mounted {
        return None;
    }
    let mut mended = pod.clone();
    if !labelled {
        label(&mut mended, ordinal);
    }
    if !mounted {
        mount(set, spec, &mut mended, ordinal);
    }
    Some(mended)
}

fn is_labelled(pod: &Pod) -> bool {
    let labels = pod.metadata.labels.as_ref();
    labels.and_then(|labels| labels.get(POD_NAME_LABEL)) == pod.metadata.name.as_ref()
}

fn label(pod: &mut Pod, ordinal: i32) {
    let name = pod.metadata.name.clone().unwrap_or_default();
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(POD_NAME_LABEL.to_owned(), name);
    labels.insert(POD_INDEX_LABEL.to_owned(), ordinal.to_string());
}

/// Whether the volumes are the claims of this ordinal.
fn is_mounted(set: &StatefulSet, spec: &StatefulSetSpec, pod: &Pod, ordinal: i32) -> bool {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref());
    let volumes = volumes.unwrap_or_default();
    claims::templates(spec).all(|template| {
        let name = template.metadata.name.as_deref().unwrap_or_default();
        let volume = volumes.iter().rfind(|volume| volume.name == name);
        let claim = volume.and_then(|volume| volume.persistent_volume_claim.as_ref());
        claim.is_some_and(|claim| claim.claim_name == claims::name(set, name, ordinal))
    })
}

/// A claim takes the place of a volume of the same name.
fn mount(set: &StatefulSet, spec: &StatefulSetSpec, pod: &mut Pod, ordinal: i32) {
    let names: BTreeSet<&str> = claims::templates(spec)
        .filter_map(|template| template.metadata.name.as_deref())
        .collect();
    if names.is_empty() {
        return;
    }
    let pod = pod.spec.get_or_insert_default();
    let others = pod.volumes.take().unwrap_or_default();
    let claimed = names.iter().map(|name| Volume {
        name: (*name).to_owned(),
        persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
            claim_name: claims::name(set, name, ordinal),
            read_only: None,
        }),
        ..Volume::default()
    });
    let mut volumes: Vec<Volume> = claimed.collect();
    volumes.extend(
        others
            .into_iter()
            .filter(|volume| !names.contains(volume.name.as_str())),
    );
    pod.volumes = Some(volumes);
}
