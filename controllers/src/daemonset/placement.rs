//! On which nodes a DaemonSet's pods run, and what ties a pod to its node. Pure.
//!
//! The scheduler binds these pods like any others: each asks for one node by name, and bears the
//! taints of nodes that are not ready, under pressure or cordoned.

use std::collections::BTreeMap;
use std::sync::Arc;

use coracle_client::node_selector::term_matches;
use coracle_client::toleration::tolerates;
use k8s_openapi::api::core::v1::{
    Node, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodSpec,
    PodTemplateSpec, Taint, Toleration,
};

use super::spec::Spec;
use crate::history::HASH_LABEL;
use crate::pods;

/// The label that says from which number of the template a pod was made.
pub(super) const GENERATION_LABEL: &str = "pod-template-generation";

const NODE_NAME_FIELD: &str = "metadata.name";

/// What every pod of a DaemonSet bears, in the order in which it is added.
const BORNE: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];
/// One with the host's network does not wait for that of pods.
const BORNE_ON_HOST: (&str, &str) = ("node.kubernetes.io/network-unavailable", "NoSchedule");

/// What a node is to a DaemonSet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Placement {
    /// A pod belongs there.
    pub run: bool,
    /// A pod that is there may stay.
    pub stay: bool,
}

/// Every node, by name.
pub(super) type Nodes = BTreeMap<String, Placement>;

/// What the template asks of a node.
#[derive(Debug)]
pub(super) struct Requirements<'a> {
    spec: Option<&'a PodSpec>,
    tolerations: Vec<Toleration>,
}

impl<'a> Requirements<'a> {
    pub(super) fn of(template: &'a PodTemplateSpec) -> Self {
        let spec = template.spec.as_ref();
        Self {
            spec,
            tolerations: spec.map(tolerations).unwrap_or_default(),
        }
    }

    pub(super) fn on_all(&self, nodes: &[Arc<Node>]) -> Nodes {
        let placed = nodes.iter().map(|node| {
            let name = node.metadata.name.clone().unwrap_or_default();
            (name, self.on(node))
        });
        placed.collect()
    }

    pub(super) fn on(&self, node: &Node) -> Placement {
        if !self.spec.is_none_or(|spec| selects(spec, node)) {
            return Placement::default();
        }
        let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref());
        let bears = |effect: &str| {
            let mut taints = taints.unwrap_or_default().iter();
            taints.all(|taint| taint.effect != effect || self.bears(taint))
        };
        let stay = bears("NoExecute");
        Placement {
            run: stay && bears("NoSchedule"),
            stay,
        }
    }

    fn bears(&self, taint: &Taint) -> bool {
        self.tolerations.iter().any(|one| tolerates(one, taint))
    }
}

/// Whether name, labels and required affinity let the pod on this node.
fn selects(spec: &PodSpec, node: &Node) -> bool {
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let label = |key: &str| node.metadata.labels.as_ref()?.get(key).map(String::as_str);
    let named = spec.node_name.as_deref().unwrap_or_default();
    let mut selector = spec.node_selector.iter().flatten();
    (named.is_empty() || named == name)
        && selector.all(|(key, value)| label(key) == Some(value.as_str()))
        && required(spec).is_none_or(|required| {
            let mut terms = required.node_selector_terms.iter();
            terms.any(|term| term_matches(term, label, name))
        })
}

fn required(spec: &PodSpec) -> Option<&NodeSelector> {
    let affinity = spec.affinity.as_ref()?.node_affinity.as_ref()?;
    affinity
        .required_during_scheduling_ignored_during_execution
        .as_ref()
}

/// The template's tolerations, and those of every DaemonSet.
fn tolerations(spec: &PodSpec) -> Vec<Toleration> {
    let mut all = spec.tolerations.clone().unwrap_or_default();
    let on_host = spec.host_network == Some(true);
    let added = BORNE.iter().chain(on_host.then_some(&BORNE_ON_HOST));
    for (key, effect) in added {
        let toleration = Toleration {
            key: Some((*key).to_owned()),
            operator: Some("Exists".to_owned()),
            effect: Some((*effect).to_owned()),
            ..Toleration::default()
        };
        let limited = |one: &Toleration| Toleration {
            toleration_seconds: one.toleration_seconds,
            ..toleration.clone()
        };
        // One that the template has for a time only is made to last.
        match all.iter_mut().find(|one| **one == limited(one)) {
            Some(same) => *same = toleration,
            None => all.push(toleration),
        }
    }
    all
}

/// The template with what every pod of this revision has; `pin` does the rest.
pub(super) fn template_for_pods(spec: &Spec<'_>, hash: &str) -> PodTemplateSpec {
    let mut template = spec.template.clone();
    let meta = template.metadata.get_or_insert_default();
    let labels = meta.labels.get_or_insert_default();
    if let Some(generation) = &spec.template_generation {
        labels.insert(GENERATION_LABEL.to_owned(), generation.clone());
    }
    labels.insert(HASH_LABEL.to_owned(), hash.to_owned());
    let pod = template.spec.get_or_insert_default();
    pod.tolerations = Some(tolerations(pod));
    template
}

/// Ties a pod to a node. What else the template requires of nodes holds for this one.
pub(super) fn pin(pod: &mut Pod, node: &str) {
    let term = NodeSelectorTerm {
        match_fields: Some(vec![NodeSelectorRequirement {
            key: NODE_NAME_FIELD.to_owned(),
            operator: "In".to_owned(),
            values: Some(vec![node.to_owned()]),
        }]),
        match_expressions: None,
    };
    let spec = pod.spec.get_or_insert_default();
    let affinity = spec.affinity.get_or_insert_default();
    let affinity: &mut NodeAffinity = affinity.node_affinity.get_or_insert_default();
    affinity.required_during_scheduling_ignored_during_execution = Some(NodeSelector {
        node_selector_terms: vec![term],
    });
}

/// The node that a pod runs on or is tied to.
pub(super) fn target(pod: &Pod) -> Option<&str> {
    let bound = pods::node_name(pod);
    if !bound.is_empty() {
        return Some(bound);
    }
    let terms = &required(pod.spec.as_ref()?)?.node_selector_terms;
    let mut fields = terms
        .iter()
        .flat_map(|term| term.match_fields.iter().flatten());
    let pinned = fields.find(|one| one.key == NODE_NAME_FIELD && one.operator == "In")?;
    match pinned.values.as_deref()? {
        [node] => Some(node),
        _ => None,
    }
}
