//! What a server tells its nodes for NetworkPolicy: one JSON object a line, until the server ends it:
//! the node asks again, and with it for the right to.
//!
//! Between `Begin` and `Listed` is all that there is: what was known before and is not said again
//! is gone. After that comes what changes. Namespaces and pods are told of only while there is a
//! policy. Of pods no more is said than rules are made of: a node is not to read their specs.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Whoever may `get` it is told.
pub const PATH: &str = "/coracle/v1/policy";

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Told {
    Begin,
    Listed,
    Policy {
        namespace: String,
        name: String,
        /// Of the NetworkPolicy. None: it is gone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        spec: Option<Value>,
    },
    Namespace {
        name: String,
        /// None: it is gone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        labels: Option<BTreeMap<String, String>>,
    },
    Pod {
        namespace: String,
        name: String,
        /// None: it is gone, or nothing can be said of it. Pods that have no address of their own
        /// (yet, any more, or on the host's network) are never told of.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pod: Option<Pod>,
    },
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Pod {
    pub uid: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    pub addresses: Vec<IpAddr>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<NamedPort>,
}

/// Of a container that runs as long as the pod does.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NamedPort {
    pub name: String,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: String,
    pub port: u16,
}

impl NamedPort {
    /// Of a container's port; an empty protocol is the default. None for one without a name, and
    /// for what no validated pod has.
    pub fn new(name: &str, protocol: &str, port: i64) -> Option<Self> {
        let protocol = if protocol.is_empty() { "TCP" } else { protocol };
        Some(Self {
            name: Some(name).filter(|name| !name.is_empty())?.to_owned(),
            protocol: protocol.to_owned(),
            port: port.try_into().ok()?,
        })
    }
}
