//! What a node has, and what of it is for pods. Pure.

use super::facts::Facts;
use crate::config::Resources;
use crate::pressure::Signal;
use coracle_api::amounts::Amounts;
use coracle_api::quantity::{Format, Quantity};

pub const CPU: &str = "cpu";
pub const MEMORY: &str = "memory";
pub const STORAGE: &str = "ephemeral-storage";
pub const PODS: &str = "pods";
/// Reserved and enforced, but no resource that pods ask for.
pub const PROCESSES: &str = "pid";

/// What of this machine is for pods, or why it cannot be.
pub fn of_machine(facts: &Facts, resources: &Resources) -> Result<Amounts, String> {
    let capacity = capacity(facts, resources);
    check(&capacity, resources)?;
    Ok(allocatable(&capacity, resources))
}

pub fn capacity(facts: &Facts, resources: &Resources) -> Amounts {
    let decimal = |count| Quantity::from_units(count, Format::DecimalSi);
    let mut all = Amounts::default();
    all.set(CPU, decimal(facts.cpus));
    all.set(MEMORY, kibibytes(facts.memory_bytes));
    all.set(STORAGE, kibibytes(facts.disk_bytes));
    all.set(PODS, decimal(i64::from(resources.pods_max)));
    for pages in &facts.huge_pages {
        let name = format!("hugepages-{}", binary(pages.page_bytes));
        all.set(name, binary(pages.page_bytes * pages.count));
    }
    all
}

fn binary(bytes: i64) -> Quantity {
    Quantity::from_units(bytes, Format::BinarySi)
}

/// Disks and memory are told in whole kibibytes.
fn kibibytes(bytes: i64) -> Quantity {
    binary(bytes / 1024 * 1024)
}

/// What pods can ask for: the capacity less what is reserved, what eviction keeps free, and, of
/// the memory, the huge pages.
pub fn allocatable(capacity: &Amounts, resources: &Resources) -> Amounts {
    let mut left = less_reserved(capacity, resources);
    for (signal, name) in [
        (Signal::MemoryAvailable, MEMORY),
        (Signal::NodeFsAvailable, STORAGE),
    ] {
        let mut thresholds = resources.eviction.thresholds.iter();
        let hard = thresholds.find(|one| one.signal == signal && one.is_hard());
        if let (Some(hard), Some(total)) = (hard, capacity.get(name)) {
            take(&mut left, name, hard.value.of(total));
        }
    }
    for (_, pages) in capacity.iter().filter(|(name, _)| is_huge_page(name)) {
        take(&mut left, MEMORY, pages);
    }
    left
}

/// What the pods together are held to: eviction keeps its part free before that.
pub fn less_reserved(capacity: &Amounts, resources: &Resources) -> Amounts {
    let mut left = capacity.clone();
    for reserved in [&resources.system_reserved, &resources.kube_reserved] {
        for (name, amount) in reserved.iter() {
            take(&mut left, name, amount);
        }
    }
    left
}

pub fn cpu_milli(amounts: &Amounts) -> i64 {
    amounts.get(CPU).map_or(0, |cpu| cpu.milli_value())
}

pub fn memory_bytes(amounts: &Amounts) -> i64 {
    amounts.get(MEMORY).map_or(0, |memory| memory.value())
}

fn take(left: &mut Amounts, name: &str, amount: Quantity) {
    if let Some(known) = left.get(name) {
        let rest = known.minus(amount);
        let zero = Quantity::from_units(0, known.format());
        left.set(name, if rest.is_negative() { zero } else { rest });
    }
}

fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}

/// Why such reservations cannot be: more than there is.
fn check(capacity: &Amounts, resources: &Resources) -> Result<(), String> {
    let mut wanted = resources.system_reserved.clone();
    wanted.add(&resources.kube_reserved);
    let beyond = capacity.iter().find_map(|(name, total)| {
        let reserved = wanted.get(name).filter(|reserved| *reserved > total)?;
        Some(format!(
            "resource {name:?} has a reservation of {reserved} but a capacity of {total}"
        ))
    });
    beyond.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests;
