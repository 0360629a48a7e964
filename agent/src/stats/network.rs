//! `/proc/net/dev`: what went through a network's interfaces. Pure.

use super::summary::{At, InterfaceStats, NetworkStats};

/// The pod's own interface, and the usual name of a node's.
const DEFAULT: &str = "eth0";
/// Upstream leaves these out, and ours of pods: what goes through them is counted elsewhere.
const LEFT_OUT: [&str; 5] = ["lo", "veth", "docker", "nerdctl", "cveth"];

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Interface {
    pub name: String,
    pub received: Counts,
    pub sent: Counts,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    pub bytes: u64,
    pub packets: u64,
    pub errors: u64,
    pub dropped: u64,
}

pub fn parse(text: &str) -> Vec<Interface> {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    lines
        .filter_map(|(name, rest)| interface(name.trim(), rest))
        .collect()
}

fn interface(name: &str, rest: &str) -> Option<Interface> {
    if LEFT_OUT.iter().any(|prefix| name.starts_with(prefix)) {
        return None;
    }
    let numbers: Vec<u64> = rest
        .split_whitespace()
        .map_while(|word| word.parse().ok())
        .collect();
    let counts = |at: usize| {
        Some(Counts {
            bytes: *numbers.get(at)?,
            packets: *numbers.get(at + 1)?,
            errors: *numbers.get(at + 2)?,
            dropped: *numbers.get(at + 3)?,
        })
    };
    Some(Interface {
        name: name.to_owned(),
        received: counts(0)?,
        sent: counts(8)?,
    })
}

/// None where there is nothing to count.
pub fn stats(interfaces: &[Interface], time: At) -> Option<NetworkStats> {
    let each = |interface: &Interface| InterfaceStats {
        name: interface.name.clone(),
        rx_bytes: Some(interface.received.bytes),
        rx_errors: Some(interface.received.errors),
        tx_bytes: Some(interface.sent.bytes),
        tx_errors: Some(interface.sent.errors),
    };
    let all: Vec<_> = interfaces.iter().map(each).collect();
    let default = all.iter().find(|one| one.name == DEFAULT).cloned();
    (!all.is_empty()).then(|| NetworkStats {
        time,
        default: default.unwrap_or_default(),
        interfaces: all,
    })
}

#[cfg(test)]
mod tests;
