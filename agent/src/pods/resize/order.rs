//! In which order limits are changed, so that the pod's are never below those of its containers.

use crate::runtime::Resources;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Resource {
    Memory,
    Cpu,
}

/// A change of one resource of one container.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Which of the containers.
    pub number: usize,
    pub resource: Resource,
    pub is_growing: bool,
    pub resources: Resources,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Step {
    Pod(Resources),
    Container(usize, Resources),
}

/// The part of limits that is about one resource.
pub fn only(resource: Resource, of: &Resources) -> Resources {
    match resource {
        Resource::Memory => Resources {
            memory_limit_bytes: of.memory_limit_bytes,
            ..Resources::default()
        },
        Resource::Cpu => Resources {
            cpu_shares: of.cpu_shares,
            cpu_quota_us: of.cpu_quota_us,
            cpu_period_us: of.cpu_period_us,
            ..Resources::default()
        },
    }
}

/// From what the pod has to what it is to have. A limit that is not said stays.
pub fn steps(has: &Resources, wanted: &Resources, parts: &[Part]) -> Vec<Step> {
    let mut steps = Vec::new();
    let memory = Resources {
        memory_limit_bytes: wanted.memory_limit_bytes,
        ..Resources::default()
    };
    let limits = (has.memory_limit_bytes, wanted.memory_limit_bytes);
    around(Resource::Memory, &[(limits, memory)], parts, &mut steps);
    let quota = Resources {
        cpu_quota_us: wanted.cpu_quota_us,
        cpu_period_us: wanted.cpu_period_us,
        ..Resources::default()
    };
    let shares = Resources {
        cpu_shares: wanted.cpu_shares,
        ..Resources::default()
    };
    let number = |shares: u64| i64::try_from(shares).unwrap_or(i64::MAX);
    let requests = (number(has.cpu_shares), number(wanted.cpu_shares));
    let limits = (has.cpu_quota_us, wanted.cpu_quota_us);
    // Limits grow before requests and shrink after them.
    let pod = [(limits, quota), (requests, shares)];
    around(Resource::Cpu, &pod, parts, &mut steps);
    steps
}

/// The containers' changes, with the pod's growth before and its shrinking after them.
fn around(
    resource: Resource,
    pod: &[((i64, i64), Resources)],
    parts: &[Part],
    steps: &mut Vec<Step>,
) {
    // No limit at all is more than any.
    let height = |value: i64| if value <= 0 { i64::MAX } else { value };
    let grows = |(has, wanted): &(i64, i64)| *wanted > 0 && *has > 0 && wanted > has;
    let shrinks = |(has, wanted): &(i64, i64)| *wanted > 0 && *wanted < height(*has);
    let growing = pod.iter().filter(|(change, _)| grows(change));
    steps.extend(growing.map(|(_, resources)| Step::Pod(resources.clone())));
    let mut own: Vec<&Part> = parts
        .iter()
        .filter(|part| part.resource == resource)
        .collect();
    own.sort_by_key(|part| part.is_growing);
    let change = |part: &&Part| Step::Container(part.number, part.resources.clone());
    steps.extend(own.iter().map(change));
    let shrinking = pod.iter().rev().filter(|(change, _)| shrinks(change));
    steps.extend(shrinking.map(|(_, resources)| Step::Pod(resources.clone())));
}

#[cfg(test)]
mod tests;
