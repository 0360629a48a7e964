//! A pod's terms of affinity to other pods, with their selectors parsed.

use crate::pod_info::Traits;
use crate::selector::{self, Labels, Selector};
use k8s_openapi::api::core::v1::{PodAffinityTerm, PodSpec, WeightedPodAffinityTerm};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AffinityTerm {
    pub namespaces: Vec<String>,
    pub namespace_selector: Selector,
    pub selector: Arc<Selector>,
    pub topology_key: Arc<str>,
}

impl AffinityTerm {
    /// `namespace` is that of the pod whose term it is: what is meant where none is named.
    fn new(term: &PodAffinityTerm, namespace: &str) -> Self {
        let mut namespaces = term.namespaces.clone().unwrap_or_default();
        if namespaces.is_empty() && term.namespace_selector.is_none() {
            namespaces.push(namespace.to_owned());
        }
        Self {
            namespaces,
            namespace_selector: selector::parsed(term.namespace_selector.as_ref()),
            selector: Arc::new(selector::parsed(term.label_selector.as_ref())),
            topology_key: term.topology_key.as_str().into(),
        }
    }

    /// `namespace_labels` are those of the namespace of such pods.
    pub fn matches(&self, pod: &Traits, namespace_labels: Option<&Labels>) -> bool {
        let mut namespaces = self.namespaces.iter();
        (namespaces.any(|name| **name == *pod.namespace)
            || selector::matches(&self.namespace_selector, namespace_labels))
            && selector::matches(&self.selector, Some(&pod.labels))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightedTerm {
    pub term: AffinityTerm,
    /// Below zero for terms of anti-affinity.
    pub weight: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodTerms {
    pub affinity: Arc<[AffinityTerm]>,
    pub anti_affinity: Arc<[AffinityTerm]>,
    pub preferred: Arc<[WeightedTerm]>,
}

pub(super) fn of(spec: &PodSpec, namespace: &str) -> Option<Box<PodTerms>> {
    let affinity = spec.affinity.as_ref()?;
    let (near, far) = (&affinity.pod_affinity, &affinity.pod_anti_affinity);
    if near.is_none() && far.is_none() {
        return None;
    }
    let terms = |terms: Option<&Vec<PodAffinityTerm>>| -> Arc<[AffinityTerm]> {
        let terms = terms.into_iter().flatten();
        terms
            .map(|term| AffinityTerm::new(term, namespace))
            .collect()
    };
    let near_required = near.as_ref().and_then(|all| {
        all.required_during_scheduling_ignored_during_execution
            .as_ref()
    });
    let far_required = far.as_ref().and_then(|all| {
        all.required_during_scheduling_ignored_during_execution
            .as_ref()
    });
    let weighted = |one: &WeightedPodAffinityTerm, sign: i64| WeightedTerm {
        term: AffinityTerm::new(&one.pod_affinity_term, namespace),
        weight: sign * i64::from(one.weight),
    };
    let near_preferred = near.iter().filter_map(|all| {
        all.preferred_during_scheduling_ignored_during_execution
            .as_ref()
    });
    let far_preferred = far.iter().filter_map(|all| {
        all.preferred_during_scheduling_ignored_during_execution
            .as_ref()
    });
    let near_preferred = near_preferred.flatten().map(|one| weighted(one, 1));
    let far_preferred = far_preferred.flatten().map(|one| weighted(one, -1));
    Some(Box::new(PodTerms {
        affinity: terms(near_required),
        anti_affinity: terms(far_required),
        preferred: near_preferred.chain(far_preferred).collect(),
    }))
}
