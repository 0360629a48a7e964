//! Fields that a write through one endpoint never gets to: nobody manages them through it.

use super::element::Element;
use super::set::Set;
use crate::resource::{Part, Resource, SubresourceKind};

/// A path with `*` for any step.
type Pattern = &'static [&'static str];

/// Which fields count.
#[derive(Clone, Debug, Default)]
pub enum Filter {
    #[default]
    All,
    /// All but these and what is below them.
    Except(Set<'static>),
    /// What is below these, and what leads there.
    Only(&'static [Pattern]),
}

const EPHEMERAL: &[Pattern] = &[&["spec", "ephemeralContainers"]];
const RESIZE: &[Pattern] = &[
    &["spec", "containers", "*", "resources"],
    &["spec", "containers", "*", "resizePolicy"],
    &["spec", "initContainers", "*", "resources"],
    &["spec", "initContainers", "*", "resizePolicy"],
];

/// Kinds whose status takes no metadata along.
const STATUS_LEAVES_METADATA: &[&str] = &[
    "APIService",
    "DeviceTaintRule",
    "FlowSchema",
    "PriorityLevelConfiguration",
    "ResourceClaim",
    "ServiceCIDR",
    "StorageVersion",
    "StorageVersionMigration",
    "ValidatingAdmissionPolicy",
    "VolumeAttachment",
];

impl Filter {
    /// The filter of writes to a part of a resource.
    pub fn of(resource: &Resource, part: Part<'_>) -> Self {
        let paths: &[&[&str]] = match (resource.kind, part) {
            ("Pod", Part::Other("ephemeralcontainers")) => return Self::Only(EPHEMERAL),
            ("Pod", Part::Other("resize")) => return Self::Only(RESIZE),
            ("CertificateSigningRequest", Part::Other("approval")) => {
                &[&["spec"], &["status", "certificate"]]
            }
            ("CertificateSigningRequest", Part::Status) => &[&["spec"], &["status", "conditions"]],
            ("CertificateSigningRequest", Part::Main) => &[&["spec"], &["status"]],
            ("Deployment", Part::Status) => &[&["spec"], &["metadata", "labels"]],
            ("Pod", Part::Status) => &[
                &["spec"],
                &["metadata", "deletionTimestamp"],
                &["metadata", "ownerReferences"],
            ],
            (_, Part::Status) if resource.rules.custom().is_some() => &[&["metadata"], &["spec"]],
            (kind, Part::Status) if STATUS_LEAVES_METADATA.contains(&kind) => {
                &[&["metadata"], &["spec"]]
            }
            (_, Part::Status) => &[&["spec"]],
            _ if has_status(resource) => &[&["status"]],
            _ => return Self::All,
        };
        Self::Except(Set::of_fields(paths))
    }

    /// What of `set` counts.
    pub fn keep<'a>(&self, set: Set<'a>) -> Set<'a> {
        match self {
            Self::All => set,
            Self::Except(paths) => set.recursive_difference(paths),
            Self::Only(patterns) => only(&set, patterns),
        }
    }
}

fn has_status(resource: &Resource) -> bool {
    resource
        .subresources
        .iter()
        .any(|one| one.kind == SubresourceKind::Status)
}

fn only<'a>(set: &Set<'a>, patterns: &[Pattern]) -> Set<'a> {
    let mut kept = Set::default();
    for node in set.nodes() {
        let is_step = |step: &str| {
            step == "*" || matches!(&node.element, Element::Field(name) if name == step)
        };
        let rests: Vec<Pattern> = patterns
            .iter()
            .filter_map(|pattern| pattern.split_first())
            .filter(|(step, _)| is_step(step))
            .map(|(_, rest)| rest)
            .collect();
        if rests.is_empty() {
            continue;
        }
        let children = if rests.iter().any(|rest| rest.is_empty()) {
            node.children.clone()
        } else {
            only(&node.children, &rests)
        };
        kept.add(node.element.clone(), node.is_member, children);
    }
    kept
}
