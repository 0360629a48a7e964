//! The words of events about budgets; upstream's. Pure.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;

use crate::labels::as_go;

pub(super) const NO_PODS: &str = "No matching pods found";
pub(super) const NOT_COUNTED: &str = "Failed to calculate the number of expected pods: ";

pub(super) fn unmanaged(budget: &PodDisruptionBudget) -> String {
    let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    let selector = selector.map_or("nil".to_owned(), as_go);
    format!(
        "Pods selected by this PodDisruptionBudget (selector: {selector}) were found to be \
         unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may \
         result in undefined behavior. To account for these pods please set \
         \".spec.minAvailable\" field of the PDB to an integer value."
    )
}

pub(super) fn not_deleted(budget: &PodDisruptionBudget) -> String {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    let meta = &budget.metadata;
    let (namespace, name) = (text(&meta.namespace), text(&meta.name));
    format!("Pod was expected by PDB {namespace}/{name} to be deleted but it wasn't")
}

pub(super) fn several(pod: &Pod, chosen: &PodDisruptionBudget) -> String {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    let meta = &pod.metadata;
    let (namespace, name) = (text(&meta.namespace), text(&meta.name));
    let chosen = text(&chosen.metadata.name);
    format!(
        "Pod {namespace:?}/{name:?} matches multiple PodDisruptionBudgets.  Chose {chosen:?} \
         arbitrarily."
    )
}
