//! Amounts of resources: cpu in thousandths, memory and storage in bytes, the rest by name.

use coracle_api::pod_spec::resources::is_pod_level;
use coracle_api::quantity::Quantity;
use k8s_openapi::api::core::v1::{
    Container, ContainerStatus, Pod, PodSpec, PodStatus, ResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;
use std::collections::BTreeMap;
use std::sync::Arc;

const CPU: &str = "cpu";
const MEMORY: &str = "memory";
/// What a container without a request counts as when nodes are scored, as upstream has it.
const SCORED_DEFAULTS: [(&str, i64); 2] = [(CPU, 100), (MEMORY, 200 * 1024 * 1024)];

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
                CPU => found.milli_cpu = quantity.milli_value(),
                MEMORY => found.memory = quantity.value(),
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

    /// True where it is named, be it with nothing.
    pub fn has_scalar(&self, name: &str) -> bool {
        let mut known = self.scalars.iter();
        known.any(|(known, _)| known.as_ref() == name)
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

/// What a pod asks of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodRequests {
    /// Containers and sidecars together, or an init container with the sidecars before it where
    /// that is more (KEP-753); then the pod's overhead.
    pub asked: Resources,
    /// What scoring works with for a pod that has no node: something for containers that ask for
    /// nothing, and no look at requests of the pod as a whole, which upstream's score has not learnt.
    pub scored: Resources,
    /// What scoring works with for one that has: requests of the pod as a whole leave a silent
    /// container nothing of what any part of the pod asks for.
    pub scored_on_node: Resources,
}

impl PodRequests {
    pub fn of(pod: &Pod) -> Self {
        let none = PodSpec::default();
        let reading = Reading {
            spec: pod.spec.as_ref().unwrap_or(&none),
            status: pod.status.as_ref(),
        };
        let asked = reading.total(&[]);
        let mut scored = reading.effective(&SCORED_DEFAULTS);
        scored.add(&reading.overhead());
        let has_own = reading.of_pod().is_some_and(|all| {
            let mut names = all.keys();
            names.any(|name| is_pod_level(name))
        });
        let left: Vec<_> = SCORED_DEFAULTS
            .into_iter()
            .filter(|(name, _)| !has_own || !reading.mentions(name))
            .collect();
        Self {
            scored_on_node: reading.total(&left),
            asked,
            scored,
        }
    }
}

/// A pod as it is resized in place: what its node has given it counts while that is more.
struct Reading<'a> {
    spec: &'a PodSpec,
    status: Option<&'a PodStatus>,
}

impl<'a> Reading<'a> {
    /// `defaults` are for containers that say nothing of them.
    fn total(&self, defaults: &[(&str, i64)]) -> Resources {
        let mut total = self.effective(defaults);
        if let Some(of_pod) = self.of_pod() {
            let actual = self.status.filter(|status| status.resources.is_some());
            let actual = actual.map(|status| {
                let given = status.allocated_resources.as_ref();
                self.raised(Some(of_pod), requests_of(status.resources.as_ref()), given)
            });
            override_by_pod(&mut total, of_pod, actual.as_ref());
        }
        total.add(&self.overhead());
        total
    }

    fn overhead(&self) -> Resources {
        let overhead = self.spec.overhead.as_ref();
        overhead.map(Resources::from_quantities).unwrap_or_default()
    }

    fn of_pod(&self) -> Option<&'a Quantities> {
        requests_of(self.spec.resources.as_ref())
    }

    /// Whether any part of the pod says something of the resource, be it that it wants none.
    fn mentions(&self, name: &str) -> bool {
        let has = |all: Option<&Quantities>| all.is_some_and(|all| all.contains_key(name));
        let init = self.spec.init_containers.iter().flatten();
        let mut containers = self.spec.containers.iter().chain(init);
        has(self.of_pod())
            || has(self.spec.overhead.as_ref())
            || containers.any(|one| {
                let status = self.status_of(one);
                let given = status.and_then(|status| status.allocated_resources.as_ref());
                let actual = status.and_then(|status| requests_of(status.resources.as_ref()));
                has(requests_of(one.resources.as_ref())) || has(given) || has(actual)
            })
    }

    fn effective(&self, defaults: &[(&str, i64)]) -> Resources {
        let mut together = Resources::default();
        for container in &self.spec.containers {
            together.add(&self.of(container, defaults));
        }
        let mut sidecars = Resources::default();
        let mut peak = Resources::default();
        for container in self.spec.init_containers.iter().flatten() {
            let asked = self.of(container, defaults);
            let mut now = sidecars.clone();
            now.add(&asked);
            peak.raise_to(&now);
            if is_sidecar(container) {
                sidecars.add(&asked);
            }
        }
        together.add(&sidecars);
        together.raise_to(&peak);
        together
    }

    fn of(&self, container: &Container, defaults: &[(&str, i64)]) -> Resources {
        let asked = requests_of(container.resources.as_ref());
        let status = self.status_of(container);
        let actual = status.and_then(|status| requests_of(status.resources.as_ref()));
        let given = status.and_then(|status| status.allocated_resources.as_ref());
        let mut found = match status {
            Some(_) => self.raised(asked, actual, given),
            None => asked.map(Resources::from_quantities).unwrap_or_default(),
        };
        let is_said = |name: &str| {
            let all = match status.is_some() && self.is_infeasible() {
                true => [None, actual, given],
                false => [asked, actual, given],
            };
            all.into_iter().flatten().any(|all| all.contains_key(name))
        };
        for (name, amount) in defaults.iter().filter(|(name, _)| !is_said(name)) {
            match *name {
                CPU => found.milli_cpu = *amount,
                _ => found.memory = *amount,
            }
        }
        found
    }

    /// Of a container that the node says something of; init containers that end are not resized.
    fn status_of(&self, container: &Container) -> Option<&'a ContainerStatus> {
        let is_init = self.spec.init_containers.iter().flatten();
        if is_init.clone().any(|one| one.name == container.name) && !is_sidecar(container) {
            return None;
        }
        let status = self.status?;
        let mut all = status
            .container_statuses
            .iter()
            .chain(&status.init_container_statuses)
            .flatten();
        all.find(|one| one.name == container.name && one.resources.is_some())
    }

    /// A wish that the node can never fulfil does not count.
    fn raised(
        &self,
        asked: Option<&Quantities>,
        actual: Option<&Quantities>,
        given: Option<&Quantities>,
    ) -> Resources {
        let asked = asked.filter(|_| !self.is_infeasible());
        let mut most = Resources::default();
        for all in [asked, actual, given].into_iter().flatten() {
            most.raise_to(&Resources::from_quantities(all));
        }
        most
    }

    fn is_infeasible(&self) -> bool {
        let conditions = self.status.and_then(|status| status.conditions.as_ref());
        let mut conditions = conditions.into_iter().flatten();
        let pending = conditions.find(|one| one.type_ == "PodResizePending");
        pending.is_some_and(|one| one.reason.as_deref() == Some("Infeasible"))
    }
}

fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

/// Requests of the pod as a whole (KEP-2837) stand in for the sum over its containers; `actual` is
/// what comes of them while the pod is resized.
fn override_by_pod(total: &mut Resources, of_pod: &Quantities, actual: Option<&Resources>) {
    let asked = Resources::from_quantities(of_pod);
    let asked = actual.unwrap_or(&asked);
    if of_pod.contains_key(CPU) {
        total.milli_cpu = asked.milli_cpu;
    }
    if of_pod.contains_key(MEMORY) {
        total.memory = asked.memory;
    }
    let own = of_pod.keys().filter(|name| is_pod_level(name));
    for name in own.filter(|name| ![CPU, MEMORY].contains(&name.as_str())) {
        let amount = asked.scalar(name);
        let known = &mut total.scalars;
        match known.binary_search_by(|(known, _)| known.as_ref().cmp(name)) {
            Ok(index) => known[index].1 = amount,
            Err(index) => known.insert(index, (name.as_str().into(), amount)),
        }
    }
}

fn requests_of(resources: Option<&ResourceRequirements>) -> Option<&Quantities> {
    resources.and_then(|all| all.requests.as_ref())
}

#[cfg(test)]
mod tests;
