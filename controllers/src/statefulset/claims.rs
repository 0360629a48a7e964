//! The volume claims of a set's pods, and who owns them. Pure.
//!
//! Claims outlive pods, and the set too, unless the retention policy says otherwise: then they
//! are owned by what they go with, and the garbage collector does the rest. A claim that somebody
//! else controls, or that a predecessor of the same name owns, is nobody's here to change.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::spec::{self, Retention};
use crate::ownership::controller_reference;

/// Finds a claim of the set's namespace by its name.
pub(super) type Find<'a> = &'a (dyn Fn(&str) -> Option<Arc<PersistentVolumeClaim>> + Send + Sync);

/// What has to be done about the claims of one pod.
#[derive(Debug, Default)]
pub(super) struct Claims {
    pub create: Vec<PersistentVolumeClaim>,
    /// Names of those that are being deleted: the pod must wait for their successors.
    pub going: Vec<String>,
    /// With the owners that each should have.
    pub own: Vec<(Arc<PersistentVolumeClaim>, Vec<OwnerReference>)>,
    /// Names of those that others control.
    pub conflicting: Vec<String>,
}

impl Claims {
    pub(super) fn is_empty(&self) -> bool {
        self.create.is_empty() && self.going.is_empty() && self.own.is_empty()
    }
}

pub(super) fn templates(spec: &StatefulSetSpec) -> impl Iterator<Item = &PersistentVolumeClaim> {
    spec.volume_claim_templates.iter().flatten()
}

/// The name of the claim of a template for an ordinal.
pub(super) fn name(set: &StatefulSet, template: &str, ordinal: i32) -> String {
    let set = set.metadata.name.as_deref().unwrap_or_default();
    format!("{template}-{set}-{ordinal}")
}

/// The names of all claims of an ordinal, with their templates.
fn named<'a>(
    set: &'a StatefulSet,
    spec: &'a StatefulSetSpec,
    ordinal: i32,
) -> impl Iterator<Item = (String, &'a PersistentVolumeClaim)> {
    templates(spec).map(move |template| {
        let of = template.metadata.name.as_deref().unwrap_or_default();
        (name(set, of, ordinal), template)
    })
}

/// Whether an object may be a claim of this set, by its name.
pub(super) fn may_be_of(set: &StatefulSet, spec: &StatefulSetSpec, claim: &str) -> bool {
    let of = set.metadata.name.as_deref().unwrap_or_default();
    templates(spec).any(|template| {
        let template = template.metadata.name.as_deref().unwrap_or_default();
        claim
            .strip_prefix(template)
            .and_then(|rest| rest.strip_prefix('-'))
            .and_then(|rest| rest.strip_prefix(of))
            .is_some_and(|rest| rest.starts_with('-'))
    })
}

/// What is missing, and whose the others should be.
pub(super) fn look(
    set: &StatefulSet,
    spec: &StatefulSetSpec,
    pod: &Pod,
    ordinal: i32,
    find: Find<'_>,
) -> Claims {
    let mut claims = owners(set, spec, pod, ordinal, find);
    for (name, template) in named(set, spec, ordinal) {
        match find(&name) {
            None => claims.create.push(from_template(set, spec, template, name)),
            Some(claim) if claim.metadata.deletion_timestamp.is_some() => claims.going.push(name),
            Some(_) => {}
        }
    }
    claims
}

/// Whose the claims that exist should be.
pub(super) fn owners(
    set: &StatefulSet,
    spec: &StatefulSetSpec,
    pod: &Pod,
    ordinal: i32,
    find: Find<'_>,
) -> Claims {
    let mut claims = Claims::default();
    let owners = Owners {
        set,
        pod,
        retention: spec::retention(spec),
        wanted: spec::wants(spec, ordinal),
    };
    for (name, _) in named(set, spec, ordinal) {
        let Some(claim) = find(&name) else { continue };
        if owners.has_unexpected_controller(&claim) {
            claims.conflicting.push(name);
        }
        if !owners.is_up_to_date(&claim) {
            let wanted = owners.wanted_of(&claim);
            claims.own.push((claim, wanted));
        }
    }
    claims
}

/// Whether a claim still belongs to the pod's predecessor, and will be deleted for that: a pod
/// made now would lose it.
pub(super) fn is_stale(
    set: &StatefulSet,
    spec: &StatefulSetSpec,
    pod: &Pod,
    ordinal: i32,
    find: Find<'_>,
) -> bool {
    spec::retention(spec).delete_when_scaled
        && named(set, spec, ordinal)
            .filter_map(|(name, _)| find(&name))
            .any(|claim| has_stale_reference(&claim, pod))
}

fn from_template(
    set: &StatefulSet,
    spec: &StatefulSetSpec,
    template: &PersistentVolumeClaim,
    name: String,
) -> PersistentVolumeClaim {
    let mut claim = template.clone();
    claim.metadata.name = Some(name);
    claim.metadata.namespace.clone_from(&set.metadata.namespace);
    if let Some(selected) = &spec.selector.match_labels {
        let labels = claim.metadata.labels.get_or_insert_default();
        labels.extend(selected.clone());
    }
    claim
}

struct Owners<'a> {
    set: &'a StatefulSet,
    pod: &'a Pod,
    retention: Retention,
    /// Whether the set still wants the pod.
    wanted: bool,
}

impl Owners<'_> {
    fn is_up_to_date(&self, claim: &PersistentVolumeClaim) -> bool {
        if has_stale_reference(claim, self.set) || has_stale_reference(claim, self.pod) {
            return true;
        }
        let (by_set, by_pod) = (is_owned_by(claim, self.set), is_owned_by(claim, self.pod));
        if self.has_unexpected_controller(claim) {
            return !by_set && !by_pod;
        }
        let ours = |one: &&OwnerReference| refers_to(one, self.set) || refers_to(one, self.pod);
        if references(claim)
            .iter()
            .filter(ours)
            .any(|one| one.controller != Some(true))
        {
            return false;
        }
        by_set == self.set_should_own() && by_pod == self.pod_should_own()
    }

    fn set_should_own(&self) -> bool {
        self.retention.delete_with_set && (self.wanted || !self.retention.delete_when_scaled)
    }

    fn pod_should_own(&self) -> bool {
        self.retention.delete_when_scaled && !self.wanted
    }

    fn has_unexpected_controller(&self, claim: &PersistentVolumeClaim) -> bool {
        if !self.retention.delete_with_set && !self.retention.delete_when_scaled {
            return false; // Whoever controls it does not matter here.
        }
        references(claim).iter().any(|reference| {
            if names(reference, self.set) {
                !refers_to(reference, self.set)
            } else if names(reference, self.pod) {
                !refers_to(reference, self.pod)
            } else {
                reference.controller == Some(true)
            }
        })
    }

    fn wanted_of(&self, claim: &PersistentVolumeClaim) -> Vec<OwnerReference> {
        let others = references(claim).iter();
        let others = others.filter(|one| !names(one, self.set) && !names(one, self.pod));
        let mut wanted: Vec<OwnerReference> = others.cloned().collect();
        if self.has_unexpected_controller(claim) {
            return wanted;
        }
        if self.pod_should_own() {
            wanted.push(controller_reference(self.pod));
        }
        if self.set_should_own() {
            wanted.push(controller_reference(self.set));
        }
        wanted
    }
}

fn references(claim: &PersistentVolumeClaim) -> &[OwnerReference] {
    claim
        .metadata
        .owner_references
        .as_deref()
        .unwrap_or_default()
}

/// The same kind and name, though perhaps not the same object.
fn names<K: kube::Resource<DynamicType = ()>>(reference: &OwnerReference, object: &K) -> bool {
    reference.api_version == K::api_version(&())
        && reference.kind == K::kind(&())
        && Some(&reference.name) == object.meta().name.as_ref()
}

fn refers_to<K: kube::Resource>(reference: &OwnerReference, object: &K) -> bool {
    object.meta().uid.as_ref() == Some(&reference.uid)
}

fn is_owned_by<K: kube::Resource>(claim: &PersistentVolumeClaim, object: &K) -> bool {
    references(claim).iter().any(|one| refers_to(one, object))
}

fn has_stale_reference<K>(claim: &PersistentVolumeClaim, object: &K) -> bool
where
    K: kube::Resource<DynamicType = ()>,
{
    let reference = references(claim).iter().find(|one| names(one, object));
    reference.is_some_and(|one| !refers_to(one, object))
}
