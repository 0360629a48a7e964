//! What pods and claims are to each other. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Pod, PodResourceClaim, PodResourceClaimStatus};
use k8s_openapi::api::resource::v1::{
    ResourceClaim, ResourceClaimConsumerReference as Consumer, ResourceClaimTemplate,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::ownership::{controller_of, is_controlled_by};
use crate::pods;

/// Keeps a claim while it is allocated.
pub(super) const FINALIZER: &str = "resource.kubernetes.io/delete-protection";
/// On a claim: for which of the pod's claims it was made.
const ANNOTATION: &str = "resource.kubernetes.io/pod-claim-name";
/// As many as the API lets in.
const RESERVED_FOR_MAX: usize = 256;
/// Leaves room for five characters and a hyphen in a name of 63.
const GENERATE_NAME_MAX: usize = 57;

/// What a pod says of one of its claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Named<'a> {
    /// Made by a user.
    Direct(&'a str),
    /// Made for this pod before.
    Generated(&'a str),
    /// It was found that none is needed.
    NotNeeded,
    /// None was made yet.
    Missing,
}

pub(crate) fn named<'a>(pod: &'a Pod, claim: &'a PodResourceClaim) -> Named<'a> {
    if let Some(name) = &claim.resource_claim_name {
        return Named::Direct(name);
    }
    let mut statuses = statuses(pod).iter();
    match statuses.find(|one| one.name == claim.name) {
        None => Named::Missing,
        Some(one) => match &one.resource_claim_name {
            Some(name) => Named::Generated(name),
            None => Named::NotNeeded,
        },
    }
}

pub(crate) fn claims(pod: &Pod) -> &[PodResourceClaim] {
    let claims = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.resource_claims.as_deref());
    claims.unwrap_or_default()
}

pub(crate) fn statuses(pod: &Pod) -> &[PodResourceClaimStatus] {
    let status = pod.status.as_ref();
    let statuses = status.and_then(|status| status.resource_claim_statuses.as_deref());
    statuses.unwrap_or_default()
}

/// Of a claim that the scheduler made for the pod's extended resources.
fn extended(pod: &Pod) -> Option<&str> {
    let status = pod
        .status
        .as_ref()?
        .extended_resource_claim_status
        .as_ref()?;
    Some(&status.resource_claim_name)
}

/// The names of the claims that a pod uses.
pub(super) fn names(pod: &Pod) -> impl Iterator<Item = &str> {
    let named = claims(pod)
        .iter()
        .filter_map(|claim| match named(pod, claim) {
            Named::Direct(name) | Named::Generated(name) => Some(name),
            Named::NotNeeded | Named::Missing => None,
        });
    named.chain(extended(pod))
}

fn in_namespace(pod: &Pod, name: &str) -> String {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    format!("{namespace}/{name}")
}

/// For an index.
pub(super) fn claims_named(pod: &Pod) -> Vec<String> {
    names(pod).map(|name| in_namespace(pod, name)).collect()
}

/// For an index.
pub(super) fn templates_named(pod: &Pod) -> Vec<String> {
    let templates = claims(pod).iter();
    let templates = templates.filter_map(|claim| claim.resource_claim_template_name.as_deref());
    templates.map(|name| in_namespace(pod, name)).collect()
}

/// It will not run any more, or never.
pub(super) fn is_done(pod: &Pod) -> bool {
    pods::is_finished(pod) || pods::is_deleting(pod) && pods::node_name(pod).is_empty()
}

pub(crate) fn is_for(claim: &ResourceClaim, pod: &Pod) -> bool {
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    is_controlled_by(&claim.metadata, uid)
}

/// Made for this one of a pod's claims.
pub(super) fn is_made_for(claim: &ResourceClaim, pod: &Pod, name: &str) -> bool {
    let annotations = claim.metadata.annotations.as_ref();
    let of = annotations.and_then(|all| all.get(ANNOTATION));
    of.is_some_and(|of| of == name) && is_for(claim, pod)
}

/// The pod that a claim was made for: its name and uid.
pub(super) fn owner(claim: &ResourceClaim) -> Option<(&str, &str)> {
    let owner = controller_of(&claim.metadata)?;
    let is_pod = owner.api_version == "v1" && owner.kind == "Pod";
    is_pod.then_some((&owner.name, &owner.uid))
}

pub(super) fn from_template(
    pod: &Pod,
    name: &str,
    template: &ResourceClaimTemplate,
) -> ResourceClaim {
    let meta = template.spec.metadata.clone().unwrap_or_default();
    let mut annotations: BTreeMap<_, _> = meta.annotations.unwrap_or_default();
    annotations.insert(ANNOTATION.to_owned(), name.to_owned());
    let pod_name = pod.metadata.name.clone().unwrap_or_default();
    ResourceClaim {
        metadata: ObjectMeta {
            generate_name: Some(generate_name(&pod_name, name)),
            owner_references: Some(vec![OwnerReference {
                api_version: "v1".to_owned(),
                kind: "Pod".to_owned(),
                name: pod_name,
                uid: pod.metadata.uid.clone().unwrap_or_default(),
                controller: Some(true),
                block_owner_deletion: None,
            }]),
            annotations: Some(annotations),
            labels: meta.labels,
            ..ObjectMeta::default()
        },
        spec: template.spec.spec.clone(),
        status: None,
    }
}

/// Both names, each shortened by the same part where they are too long together.
fn generate_name(pod: &str, claim: &str) -> String {
    let whole = format!("{pod}-{claim}-");
    if whole.len() <= GENERATE_NAME_MAX {
        return whole;
    }
    let part = |name: &str| {
        let length = name.len() * GENERATE_NAME_MAX / whole.len();
        name.get(..length).unwrap_or(name).to_owned()
    };
    format!("{}-{}", part(pod), part(claim))
}

pub(super) fn reserved_for(claim: &ResourceClaim) -> &[Consumer] {
    let reserved = claim
        .status
        .as_ref()
        .and_then(|status| status.reserved_for.as_deref());
    reserved.unwrap_or_default()
}

/// The pod was put on a node by somebody who reserves nothing.
pub(super) fn wants_reservation(claim: &ResourceClaim, pod: &Pod) -> bool {
    let allocation = claim
        .status
        .as_ref()
        .and_then(|status| status.allocation.as_ref());
    let reserved = reserved_for(claim);
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    allocation.is_some()
        && reserved.len() < RESERVED_FOR_MAX
        && !reserved.iter().any(|one| one.uid == uid)
}

pub(super) fn reservation(pod: &Pod) -> Consumer {
    Consumer {
        api_group: None,
        name: pod.metadata.name.clone().unwrap_or_default(),
        resource: "pods".to_owned(),
        uid: pod.metadata.uid.clone().unwrap_or_default(),
    }
}

/// Of a pod; others' reservations are theirs.
pub(super) fn is_pod(consumer: &Consumer) -> bool {
    consumer.api_group.as_deref().unwrap_or_default().is_empty() && consumer.resource == "pods"
}

pub(super) fn is_protected(claim: &ResourceClaim) -> bool {
    claim
        .metadata
        .finalizers
        .iter()
        .flatten()
        .any(|one| one == FINALIZER)
}

/// What is to be written of a claim.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Release {
    /// With the new status; `None` where it stays.
    pub status: Option<ResourceClaim>,
    pub drop_finalizer: bool,
}

/// `remaining` are the consumers that are left.
pub(super) fn release(claim: &ResourceClaim, remaining: Vec<Consumer>) -> Release {
    let is_shorter = remaining.len() < reserved_for(claim).len();
    let is_free = remaining.is_empty() && is_protected(claim);
    let is_going = claim.metadata.deletion_timestamp.is_some();
    let is_allocated = claim
        .status
        .as_ref()
        .is_some_and(|one| one.allocation.is_some());
    // One that is not shorter stays allocated for whoever comes next, unless it is to go.
    let deallocates = is_free && is_allocated && (is_shorter || is_going);
    let mut wanted = claim.clone();
    let status = wanted.status.get_or_insert_default();
    status.reserved_for = (!remaining.is_empty()).then_some(remaining);
    if deallocates {
        status.allocation = None;
    }
    Release {
        status: (is_shorter || deallocates).then_some(wanted),
        drop_finalizer: is_free && (is_shorter || is_going),
    }
}
