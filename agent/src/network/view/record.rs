//! What routing and DNS need of a Service and of its EndpointSlices. Nothing else is kept.
//!
//! Defaults are resolved here: who reads a record asks no further what an absent field means.
//! Records are compared as a whole, so what is not in them changes nothing for their readers.

use crate::network::subnet::Subnet;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::sync::Arc;
use uuid::Uuid;

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Service {
    /// For events about it. Nil when it has none.
    #[serde(with = "uid")]
    pub uid: Uuid,
    pub kind: ServiceKind,
    /// At most one a family. Empty for `ExternalName`, for a headless Service, and while none is
    /// given yet.
    pub cluster_ips: Box<[IpAddr]>,
    /// `clusterIP: None`.
    pub is_headless: bool,
    pub ports: Box<[ServicePort]>,
    pub external_ips: Box<[IpAddr]>,
    /// Addresses of the load balancer that the node is to accept: those without `ipMode: Proxy`.
    pub load_balancer_ips: Box<[IpAddr]>,
    /// Who may use the addresses of the load balancer. Empty: everyone.
    pub source_ranges: Box<[Subnet]>,
    /// `externalTrafficPolicy: Local`, of a Service that is reached from outside at all.
    pub is_external_local: bool,
    /// `internalTrafficPolicy: Local`.
    pub is_internal_local: bool,
    /// 0 for none.
    pub health_check_node_port: u16,
    /// A client keeps its endpoint for this long after its last connection.
    pub affinity_seconds: Option<u32>,
    pub distribution: Distribution,
    pub external_name: Option<Box<str>>,
    /// Its label `service.kubernetes.io/service-proxy-name` or `service.kubernetes.io/headless`
    /// says that other software routes it. Names are answered all the same.
    pub is_routed_by_others: bool,
    /// The domain of the cluster's names, which the Service of its DNS tells.
    pub cluster_domain: Option<Box<str>>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub enum ServiceKind {
    #[default]
    ClusterIp,
    NodePort,
    LoadBalancer,
    ExternalName,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub enum Distribution {
    #[default]
    Everywhere,
    /// `PreferClose` too.
    PreferSameZone,
    PreferSameNode,
}

#[derive(
    Clone, Copy, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize,
)]
pub enum Protocol {
    #[default]
    Tcp,
    Udp,
    Sctp,
}

impl Protocol {
    /// As the server writes it.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "TCP" => Some(Self::Tcp),
            "UDP" => Some(Self::Udp),
            "SCTP" => Some(Self::Sctp),
            _ => None,
        }
    }

    /// In the header of IP.
    pub fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
            Self::Sctp => 132,
        }
    }

    /// As names of SRV records and variables have it.
    pub fn lower(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Sctp => "sctp",
        }
    }
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ServicePort {
    /// Empty when it has none. Leads to the port of the same name in the slices.
    pub name: Box<str>,
    pub protocol: Protocol,
    pub port: u16,
    /// 0 for none.
    pub node_port: u16,
}

/// One EndpointSlice of addresses; slices of names (`FQDN`) are not kept.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Slice {
    /// In the namespace of the Service.
    pub name: Box<str>,
    pub is_v6: bool,
    pub ports: Box<[SlicePort]>,
    pub endpoints: Box<[Endpoint]>,
    /// As of a Service: by the same labels.
    pub is_routed_by_others: bool,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct SlicePort {
    /// Empty when it has none.
    pub name: Box<str>,
    pub protocol: Protocol,
    /// None: all ports. Upstream routes such a port nowhere.
    pub port: Option<u16>,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Endpoint {
    /// The first is the one that is routed to, as upstream has it. Never empty.
    pub addresses: Box<[IpAddr]>,
    /// Unknown counts as ready.
    pub is_ready: bool,
    pub is_serving: bool,
    pub is_terminating: bool,
    pub hostname: Option<Box<str>>,
    pub node: Option<Arc<str>>,
    pub zone: Option<Arc<str>>,
    pub hint_zones: Box<[Arc<str>]>,
    pub hint_nodes: Box<[Arc<str>]>,
}

impl Endpoint {
    pub fn address(&self) -> IpAddr {
        self.addresses[0]
    }
}

/// As text.
pub mod uid {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};
    use uuid::Uuid;

    pub fn serialize<S: Serializer>(uid: &Uuid, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(uid)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Uuid, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}
