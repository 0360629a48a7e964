//! What plugins are told of a pod: `CNI_ARGS`, and `runtimeConfig` by their capabilities. Pure.

use super::configuration::Plugin;
use crate::network::bandwidth::{Bandwidth, BandwidthError};
use crate::runtime::{SandboxConfig, SandboxId};
use serde_json::{Map, Value, json};

/// The hardware address that a pod is to have.
const MAC: &str = "cni.coracle/mac";
/// As containerd gives it: no burst is too large.
const BURST: u64 = u32::MAX as u64;

/// Who answers names for a pod, and what it adds to them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resolvers {
    pub servers: Vec<String>,
    pub searches: Vec<String>,
    pub options: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum CapabilityError {
    #[error("failed to get bandwidth info from annotations")]
    Bandwidth(#[from] BandwidthError),
    #[error("the annotation {MAC} is no hardware address: {0:?}")]
    Mac(String),
}

/// As containerd and CRI-O pass them.
pub fn arguments(sandbox: &SandboxId, config: &SandboxConfig) -> String {
    let all = [
        ("IgnoreUnknown", "1"),
        ("K8S_POD_NAMESPACE", &config.pod_namespace),
        ("K8S_POD_NAME", &config.pod_name),
        ("K8S_POD_INFRA_CONTAINER_ID", &sandbox.0),
        ("K8S_POD_UID", &config.pod_uid),
    ];
    let all = all.map(|(name, value)| format!("{name}={value}"));
    all.join(";")
}

/// All that there is; each plugin gets what it has a capability for.
pub fn offered(
    config: &SandboxConfig,
    resolvers: &Resolvers,
    pod_cidrs: &[String],
) -> Result<Map<String, Value>, CapabilityError> {
    let mut all = Map::new();
    let mut offer = |name: &str, value: Value| all.insert(name.to_owned(), value);
    if !config.ports.is_empty() {
        let ports = config.ports.iter().map(|port| {
            let mut mapping = json!({
                "hostPort": port.host_port,
                "containerPort": port.container_port,
                "protocol": protocol(&port.protocol),
            });
            if !port.host_ip.is_empty() {
                mapping["hostIP"] = port.host_ip.as_str().into();
            }
            mapping
        });
        offer("portMappings", ports.collect());
    }
    let bandwidth = bandwidth(Bandwidth::of(&config.annotations)?);
    if !bandwidth.is_empty() {
        offer("bandwidth", bandwidth.into());
    }
    if !pod_cidrs.is_empty() {
        let sets = pod_cidrs.iter().map(|cidr| json!([{ "subnet": cidr }]));
        offer("ipRanges", sets.collect());
    }
    if *resolvers != Resolvers::default() {
        let dns = json!({
            "servers": resolvers.servers,
            "searches": resolvers.searches,
            "options": resolvers.options,
        });
        offer("dns", dns);
    }
    if let Some(mac) = config.annotations.get(MAC) {
        if !is_mac(mac) {
            return Err(CapabilityError::Mac(mac.clone()));
        }
        offer("mac", mac.as_str().into());
    }
    let annotations = config.annotations.iter();
    let annotations: Map<_, _> = annotations
        .map(|(name, value)| (name.clone(), value.as_str().into()))
        .collect();
    offer("io.kubernetes.cri.pod-annotations", annotations.into());
    Ok(all)
}

fn protocol(of_pod: &str) -> String {
    match of_pod {
        "" => "tcp".to_owned(),
        named => named.to_lowercase(),
    }
}

/// In bits a second.
fn bandwidth(asked: Bandwidth) -> Map<String, Value> {
    let mut all = Map::new();
    for (name, bytes) in [("ingress", asked.ingress), ("egress", asked.egress)] {
        if let Some(bytes) = bytes {
            all.insert(format!("{name}Rate"), (bytes * 8).into());
            all.insert(format!("{name}Burst"), BURST.into());
        }
    }
    all
}

fn is_mac(text: &str) -> bool {
    let mut parts = 0;
    let is_byte = |part: &str| part.len() == 2 && part.chars().all(|c| c.is_ascii_hexdigit());
    text.split(':').all(|part| {
        parts += 1;
        is_byte(part)
    }) && parts == 6
}

/// `runtimeConfig` of one plugin.
pub fn taken(plugin: &Plugin, offered: &Map<String, Value>) -> Map<String, Value> {
    let taken = offered.iter().filter(|(name, _)| plugin.has(name));
    taken
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

#[cfg(test)]
mod tests;
