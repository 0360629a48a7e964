//! Amounts of resources: cpu in thousandths, memory and storage in bytes, the rest by name.

use coracle_api::pod_spec::resources::is_pod_level;
use coracle_api::quantity::Quantity;
use k8s_openapi::api::core::v1::{Container, PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a container without a request counts as when nodes are scored, as upstream has it.
const SCORED_MILLI_CPU_DEFAULT: i64 = 100;
const SCORED_MEMORY_DEFAULT: i64 = 200 * 1024 * 1024;

type Quantities = BTreeMap<String, WireQuantity>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    pub milli_cpu: i64,
    pub memory: i64,
    pub ephemeral_storage: i64,
    /// How many pods: a limit of nodes, never requested.
    pub pods: i64,
    /// Extended resources and huge pages, sorted by name.
    pub scalars: Vec<(Arc<str>, i64)>,
}

impl Resources {
    /// A quantity that cannot be read counts as none: validation keeps such out.
    pub fn from_quantities(quantities: &Quantities) -> Self {
        let mut found = Self::default();
        for (name, quantity) in quantities {
            let Ok(quantity) = Quantity::parse(&quantity.0) else {
                continue;
            };
            match name.as_str() {
                "cpu" => found.milli_cpu = quantity.milli_value(),
                "memory" => found.memory = quantity.value(),
                "ephemeral-storage" => found.ephemeral_storage = quantity.value(),
                "pods" => found.pods = quantity.value(),
                _ => found.scalars.push((name.as_str().into(), quantity.value())),
            }
        }
        found
    }

    pub fn scalar(&self, name: &str) -> i64 {
        let found = self
            .scalars
            .binary_search_by(|(known, _)| known.as_ref().cmp(name));
        found.map_or(0, |index| self.scalars[index].1)
    }

    pub fn add(&mut self, other: &Self) {
        self.combine(other, i64::saturating_add);
    }

    pub fn subtract(&mut self, other: &Self) {
        self.combine(other, i64::saturating_sub);
    }

    /// The larger of each amount.
    pub fn raise_to(&mut self, other: &Self) {
        self.combine(other, i64::max);
    }

    fn combine(&mut self, other: &Self, with: fn(i64, i64) -> i64) {
        self.milli_cpu = with(self.milli_cpu, other.milli_cpu);
        self.memory = with(self.memory, other.memory);
        self.ephemeral_storage = with(self.ephemeral_storage, other.ephemeral_storage);
        for (name, amount) in &other.scalars {
            match self.scalars.binary_search_by(|(known, _)| known.cmp(name)) {
                Ok(index) => self.scalars[index].1 = with(self.scalars[index].1, *amount),
                Err(index) => self
                    .scalars
                    .insert(index, (Arc::clone(name), with(0, *amount))),
            }
        }
    }
}

/// What a pod asks of a node (KEP-753): its containers and sidecars together, or an init container
/// with the sidecars before it where that is more; then the pod's overhead.
pub fn pod_requests(spec: &PodSpec) -> Resources {
    let mut total = effective(spec, &|container| requests(container.resources.as_ref()));
    if let Some(of_pod) = spec
        .resources
        .as_ref()
        .and_then(|all| all.requests.as_ref())
    {
        override_by_pod(&mut total, of_pod);
    }
    if let Some(overhead) = &spec.overhead {
        total.add(&Resources::from_quantities(overhead));
    }
    total
}

/// The same, with defaults for containers that ask for nothing: what scoring works with.
pub fn pod_scored_requests(spec: &PodSpec) -> Resources {
    let mut total = effective(spec, &|container| {
        let mut asked = requests(container.resources.as_ref());
        let names = container
            .resources
            .as_ref()
            .and_then(|all| all.requests.as_ref());
        let has = |name: &str| names.is_some_and(|names| names.contains_key(name));
        if !has("cpu") {
            asked.milli_cpu = SCORED_MILLI_CPU_DEFAULT;
        }
        if !has("memory") {
            asked.memory = SCORED_MEMORY_DEFAULT;
        }
        asked
    });
    if let Some(of_pod) = spec
        .resources
        .as_ref()
        .and_then(|all| all.requests.as_ref())
    {
        override_by_pod(&mut total, of_pod);
    }
    if let Some(overhead) = &spec.overhead {
        total.add(&Resources::from_quantities(overhead));
    }
    total
}

/// Requests of the pod as a whole (KEP-2837) stand in for the sum over its containers.
fn override_by_pod(total: &mut Resources, of_pod: &Quantities) {
    let asked = Resources::from_quantities(of_pod);
    if of_pod.contains_key("cpu") {
        total.milli_cpu = asked.milli_cpu;
    }
    if of_pod.contains_key("memory") {
        total.memory = asked.memory;
    }
    for (name, amount) in asked
        .scalars
        .into_iter()
        .filter(|(name, _)| is_pod_level(name))
    {
        match total
            .scalars
            .binary_search_by(|(known, _)| known.cmp(&name))
        {
            Ok(index) => total.scalars[index].1 = amount,
            Err(index) => total.scalars.insert(index, (name, amount)),
        }
    }
}

fn requests(resources: Option<&ResourceRequirements>) -> Resources {
    resources
        .and_then(|all| all.requests.as_ref())
        .map(Resources::from_quantities)
        .unwrap_or_default()
}

fn effective(spec: &PodSpec, of: &dyn Fn(&Container) -> Resources) -> Resources {
    let mut together = Resources::default();
    for container in &spec.containers {
        together.add(&of(container));
    }
    let mut sidecars = Resources::default();
    let mut peak = Resources::default();
    for container in spec.init_containers.iter().flatten() {
        let asked = of(container);
        let mut now = sidecars.clone();
        now.add(&asked);
        peak.raise_to(&now);
        if container.restart_policy.as_deref() == Some("Always") {
            sidecars.add(&asked);
        }
    }
    together.add(&sidecars);
    together.raise_to(&peak);
    together
}

#[cfg(test)]
mod tests;
