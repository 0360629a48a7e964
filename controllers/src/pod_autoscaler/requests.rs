//! What pods ask for of a resource. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::metrics::milli;

/// In thousandths, by the pod's name.
pub(super) type Requests = BTreeMap<String, i64>;

/// Of a container, or of whole pods, which may ask for themselves.
pub(super) fn of(
    pods: &[Arc<Pod>],
    container: Option<&str>,
    resource: &str,
) -> Result<Requests, String> {
    let mut requests = Requests::new();
    for pod in pods {
        let name = pod.metadata.name.clone().unwrap_or_default();
        let nothing = PodSpec::default();
        let spec = pod.spec.as_ref().unwrap_or(&nothing);
        let request = match container {
            None if asks_for_itself(spec) => of_pod(spec, resource)
                .ok_or_else(|| format!("missing pod-level request for {resource} in Pod {name}"))?,
            None => of_containers(spec, &name, resource)?,
            Some(container) => of_container(spec, &name, container, resource)?,
        };
        requests.insert(name, request);
    }
    Ok(requests)
}

fn own_requests(spec: &PodSpec) -> Option<&BTreeMap<String, Quantity>> {
    spec.resources.as_ref()?.requests.as_ref()
}

fn is_for_pods(resource: &str) -> bool {
    matches!(resource, "cpu" | "memory") || resource.starts_with("hugepages-")
}

fn asks_for_itself(spec: &PodSpec) -> bool {
    own_requests(spec).is_some_and(|own| own.keys().any(|name| is_for_pods(name)))
}

/// What the scheduler counts: its own request or that of its containers, and the overhead.
fn of_pod(spec: &PodSpec, resource: &str) -> Option<i64> {
    let own = own_requests(spec).and_then(|own| own.get(resource));
    let request = match own.filter(|_| is_for_pods(resource)) {
        Some(own) => Some(milli(own)),
        None => most_at_once(spec, resource),
    };
    let overhead = spec.overhead.as_ref().and_then(|all| all.get(resource));
    match (request, overhead.map(milli)) {
        (None, None) => None,
        (request, overhead) => Some(request.unwrap_or(0) + overhead.unwrap_or(0)),
    }
}

/// The most that containers ask for at one time: those that stay, and each that starts before.
fn most_at_once(spec: &PodSpec, resource: &str) -> Option<i64> {
    let of = |container: &Container| request(container, resource).map(milli);
    let (mut stay, mut most, mut is_named) = (0, 0, false);
    for container in spec.init_containers.iter().flatten() {
        let amount = of(container);
        is_named |= amount.is_some();
        let amount = amount.unwrap_or(0);
        if is_sidecar(container) {
            stay += amount;
            most = most.max(stay);
        } else {
            most = most.max(stay + amount);
        }
    }
    for container in &spec.containers {
        let amount = of(container);
        is_named |= amount.is_some();
        stay += amount.unwrap_or(0);
    }
    is_named.then_some(most.max(stay))
}

fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

fn request<'a>(container: &'a Container, resource: &str) -> Option<&'a Quantity> {
    let resources = container.resources.as_ref()?;
    resources.requests.as_ref()?.get(resource)
}

/// Those that run as long as the pod.
fn lasting(spec: &PodSpec) -> impl Iterator<Item = &Container> {
    let initial = spec.init_containers.iter().flatten();
    spec.containers
        .iter()
        .chain(initial.filter(|one| is_sidecar(one)))
}

fn asked(container: &Container, pod: &str, resource: &str) -> Result<i64, String> {
    let request = request(container, resource).ok_or_else(|| {
        let name = &container.name;
        format!("missing request for {resource} in container {name} of Pod {pod}")
    })?;
    Ok(milli(request))
}

fn of_containers(spec: &PodSpec, pod: &str, resource: &str) -> Result<i64, String> {
    lasting(spec).try_fold(0_i64, |sum, one| {
        Ok(sum.saturating_add(asked(one, pod, resource)?))
    })
}

fn of_container(spec: &PodSpec, pod: &str, name: &str, resource: &str) -> Result<i64, String> {
    let container = lasting(spec).find(|one| one.name == name);
    let container = container.ok_or_else(|| format!("container {name} not found in Pod {pod}"))?;
    asked(container, pod, resource)
}
