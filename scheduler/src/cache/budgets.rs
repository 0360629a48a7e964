//! Disruption budgets: how many of their pods may go now.

use coracle_api::object::ObjectKey;
use coracle_api::selector::LabelSelector;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

#[derive(Debug)]
pub struct Budget {
    pub namespace: String,
    /// Matches nothing when it is absent, empty or cannot be read.
    pub selector: LabelSelector,
    pub allowed: i32,
    /// Names of pods whose eviction was granted already.
    pub disrupted: BTreeSet<String>,
}

impl Budget {
    fn new(namespace: &str, budget: &PodDisruptionBudget) -> Self {
        let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        let selector = selector
            .and_then(|selector| serde_json::to_value(selector).ok())
            .and_then(|selector| LabelSelector::from_json(&selector).ok())
            .filter(|selector| !selector.is_empty());
        let status = budget.status.as_ref();
        let disrupted = status.and_then(|status| status.disrupted_pods.as_ref());
        Self {
            namespace: namespace.to_owned(),
            selector: selector.unwrap_or_else(LabelSelector::nothing),
            allowed: status
                .and_then(|status| status.disruptions_allowed)
                .unwrap_or(0),
            disrupted: disrupted
                .into_iter()
                .flat_map(BTreeMap::keys)
                .cloned()
                .collect(),
        }
    }
}

/// Cheap to copy: a copy is not changed by what is set later.
#[derive(Clone, Debug, Default)]
pub struct Budgets(Arc<BTreeMap<ObjectKey, Arc<Budget>>>);

impl Budgets {
    pub fn iter(&self) -> impl Iterator<Item = &Budget> {
        self.0.values().map(AsRef::as_ref)
    }

    pub(super) fn set(&mut self, budget: &PodDisruptionBudget) {
        let key = coracle_client::key_of(budget);
        let budget = Arc::new(Budget::new(&key.namespace, budget));
        Arc::make_mut(&mut self.0).insert(key, budget);
    }

    pub(super) fn remove(&mut self, key: &ObjectKey) {
        Arc::make_mut(&mut self.0).remove(key);
    }
}
