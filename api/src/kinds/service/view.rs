//! Questions about a service that defaults, strategy and validation ask alike.

use crate::json;
use crate::object::Object;
use serde_json::Value;

/// A service, seen for reading.
#[derive(Clone, Copy, Debug)]
pub struct Service<'a> {
    pub spec: &'a Value,
    pub status: &'a Value,
    pub annotations: &'a Value,
}

impl<'a> Service<'a> {
    pub fn of(object: &'a Object) -> Self {
        Self {
            spec: object.get(&["spec"]).unwrap_or(&json::NULL),
            status: object.get(&["status"]).unwrap_or(&json::NULL),
            annotations: object
                .get(&["metadata", "annotations"])
                .unwrap_or(&json::NULL),
        }
    }

    pub fn of_spec(spec: &'a Value) -> Self {
        Self {
            spec,
            status: &json::NULL,
            annotations: &json::NULL,
        }
    }

    pub fn kind(&self) -> &'a str {
        json::text(self.spec, "type")
    }

    pub fn ports(&self) -> &'a [Value] {
        json::list(self.spec, "ports")
    }

    pub fn cluster_ips(&self) -> &'a [Value] {
        json::list(self.spec, "clusterIPs")
    }

    pub fn is_headless(&self) -> bool {
        matches!(self.cluster_ips(), [one] if one == "None")
    }

    /// True when an address is allocated for it.
    pub fn needs_cluster_ip(&self) -> bool {
        matches!(self.kind(), "ClusterIP" | "NodePort" | "LoadBalancer")
    }

    pub fn needs_node_ports(&self) -> bool {
        let allocates = json::some(self.spec, "allocateLoadBalancerNodePorts");
        match self.kind() {
            "NodePort" => true,
            "LoadBalancer" => allocates.is_none_or(|value| value == true),
            _ => false,
        }
    }

    pub fn needs_health_check(&self) -> bool {
        self.kind() == "LoadBalancer" && json::text(self.spec, "externalTrafficPolicy") == "Local"
    }

    pub fn is_externally_accessible(&self) -> bool {
        matches!(self.kind(), "LoadBalancer" | "NodePort")
            || self.kind() == "ClusterIP" && !json::list(self.spec, "externalIPs").is_empty()
    }
}
