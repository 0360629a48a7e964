//! What the containers of a pod ask for as requests of one claim, and which container has which. Pure.
//!
//! A container that stays has devices of its own. Init containers that end use those of who stays
//! and comes after them, one after the other, and together ask for what the hungriest of them needs
//! more.

use coracle_api::quantity::Quantity;
use k8s_openapi::api::core::v1::{Container, ContainerExtendedResourceRequest, PodSpec};
use k8s_openapi::api::resource::v1::{DeviceRequest, ExactDeviceRequest};
use std::collections::BTreeSet;

type Mapping = ContainerExtendedResourceRequest;

/// An extended resource, and the class that stands behind it.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    pub resource: &'a str,
    pub class: &'a str,
}

/// A request of one container.
#[derive(Clone, Debug)]
struct Own {
    name: String,
    count: i64,
}

/// Requests by name; the mappings of each resource with those first who stay.
pub fn of(spec: &PodSpec, wanted: &[Wanted<'_>]) -> (Vec<DeviceRequest>, Vec<Mapping>) {
    let init = spec.init_containers.as_deref().unwrap_or_default();
    let containers: Vec<&Container> = init.iter().chain(&spec.containers).collect();
    let stays = |place: &usize| {
        let policy = containers[*place].restart_policy.as_deref();
        *place >= init.len() || policy == Some("Always")
    };
    let (staying, ending): (Vec<_>, Vec<_>) = (0..containers.len()).partition(stays);
    let (mut requests, mut mappings) = (Vec::new(), Vec::new());
    for one in wanted {
        let mut kept: Vec<Option<Own>> = vec![None; containers.len()];
        for place in &staying {
            let (own, uses) = of_container(*place, containers[*place], one.resource, &[]);
            kept[*place] = own;
            mappings.extend(uses);
        }
        let (mut most, mut lesser, mut passing) = (None::<Own>, BTreeSet::new(), Vec::new());
        for place in &ending {
            let later = &kept[*place..];
            let (own, uses) = of_container(*place, containers[*place], one.resource, later);
            passing.extend(uses);
            let Some(own) = own else { continue };
            lesser.insert(own.name.clone());
            if most.as_ref().is_none_or(|most| most.count < own.count) {
                most = Some(own);
            }
        }
        if let Some(most) = &most {
            let others = passing
                .iter_mut()
                .filter(|one| lesser.contains(&one.request_name));
            others.for_each(|one| one.request_name.clone_from(&most.name));
        }
        mappings.extend(passing);
        let all = most.into_iter().chain(kept.into_iter().flatten());
        requests.extend(all.map(|own| request(own, one.class)));
    }
    requests.sort_by(|one, other| one.name.cmp(&other.name));
    (requests, mappings)
}

fn request(own: Own, class: &str) -> DeviceRequest {
    DeviceRequest {
        name: own.name,
        exactly: Some(ExactDeviceRequest {
            device_class_name: class.to_owned(),
            allocation_mode: Some("ExactCount".to_owned()),
            count: Some(own.count),
            ..ExactDeviceRequest::default()
        }),
        first_available: None,
    }
}

/// What the container asks for beyond what it may use of others, and all that it uses.
fn of_container(
    place: usize,
    container: &Container,
    resource: &str,
    usable: &[Option<Own>],
) -> (Option<Own>, Vec<Mapping>) {
    let requests = container.resources.as_ref();
    let Some(requests) = requests.and_then(|all| all.requests.as_ref()) else {
        return (None, Vec::new());
    };
    let amount = requests.get(resource).map(|one| Quantity::parse(&one.0));
    let count = match amount {
        Some(Ok(amount)) if amount.value() != 0 => amount.value(),
        _ => return (None, Vec::new()),
    };
    let mapping = |name: &str| Mapping {
        container_name: container.name.clone(),
        resource_name: resource.to_owned(),
        request_name: name.to_owned(),
    };
    let (mut has, mut uses) = (0, Vec::new());
    for one in usable.iter().flatten() {
        has += one.count;
        uses.push(mapping(&one.name));
        if has >= count {
            return (None, uses);
        }
    }
    // Requests have their place in the order of their names, those for other things counted.
    let index = requests.keys().position(|name| name == resource);
    let name = format!("container-{place}-request-{}", index.unwrap_or(0));
    uses.push(mapping(&name));
    let count = count - has;
    (Some(Own { name, count }), uses)
}

#[cfg(test)]
mod tests;
