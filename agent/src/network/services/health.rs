//! What load balancers ask a node: whether a Service with `externalTrafficPolicy: Local` has
//! endpoints here (on its health check node port), and whether the node routes Services at all (on
//! the port of kube-proxy); and what others ask of kube-proxy on the node itself. Paths, headers and
//! bodies are upstream's. Pure.

mod ports; // The listeners.

pub use ports::{HealthPorts, bind, bind_local};

use super::node::Node;
use super::steps::Family;
use crate::network::view::{Entry, Key, ServiceKind, parts};
use coracle_client::clock::{Clock, Instant};
use http::StatusCode;
use jiff::Timestamp;
use parking_lot::RwLock;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A change that is not in the kernel after this time means that the node does not follow.
const LATE: Duration = Duration::from_secs(60);

/// kube-proxy's word for how Services are routed.
const MODE: &str = "nftables";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// What is asked about. Written by what routes, read by what answers.
#[derive(Debug)]
pub struct Health {
    clock: Clock,
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    services: BTreeMap<Key, Checked>,
    updated: Option<Timestamp>,
    /// Since when a change waits.
    waiting: Option<Instant>,
    is_eligible: bool,
}

/// A Service with a port of its own for checks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Checked {
    pub port: u16,
    pub endpoints: usize,
}

#[derive(Debug, Eq, PartialEq)]
pub struct Answer {
    pub status: StatusCode,
    pub body: String,
    pub content_type: &'static str,
    /// `X-Load-Balancing-Endpoint-Weight`.
    pub weight: Option<usize>,
}

/// None without a port. Upstream counts addresses that are ready, whatever port they are at.
pub fn checked(entry: &Entry, node: &Node) -> Option<Checked> {
    let service = entry.service.as_deref()?;
    let is_asked = service.kind == ServiceKind::LoadBalancer && service.is_external_local;
    if !is_asked || service.health_check_node_port == 0 || !super::plan::is_routed(service) {
        return None;
    }
    let ready = |family| {
        let all = entry.endpoints();
        let here = all.filter(|(slice, endpoint)| {
            !slice.is_routed_by_others && node.has(endpoint) && endpoint.is_ready
        });
        let addresses = here.map(|(_, endpoint)| endpoint.address());
        let of_family = addresses.filter(|address| Family::of(*address) == family);
        of_family.collect::<BTreeSet<_>>().len()
    };
    Some(Checked {
        port: service.health_check_node_port,
        endpoints: ready(Family::Ip4).max(ready(Family::Ip6)),
    })
}

/// As upstream writes it, field by field.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    last_updated: String,
    current_time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_eligible: Option<bool>,
    healthy: bool,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    status: BTreeMap<&'static str, FamilyReport>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FamilyReport {
    last_updated: String,
    healthy: bool,
}

impl Health {
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            state: RwLock::default(),
        }
    }

    /// True when the port is new or another one.
    pub fn set(&self, key: &Key, checked: Option<Checked>) -> bool {
        let mut state = self.state.write();
        let before = match checked {
            Some(checked) => state.services.insert(key.clone(), checked),
            None => state.services.remove(key),
        };
        before.map(|of| of.port) != checked.map(|of| of.port)
    }

    pub fn set_eligible(&self, is_eligible: bool) {
        self.state.write().is_eligible = is_eligible;
    }

    /// A change waits to be put into the kernel.
    pub fn wait(&self) {
        let now = self.clock.monotonic();
        self.state.write().waiting.get_or_insert(now);
    }

    /// All that was known is in the kernel.
    pub fn done(&self) {
        let mut state = self.state.write();
        state.updated = Some(self.clock.now());
        state.waiting = None;
    }

    fn ports(&self) -> BTreeMap<Key, u16> {
        let state = self.state.read();
        let all = state.services.iter();
        all.map(|(key, of)| (key.clone(), of.port)).collect()
    }

    fn follows(&self, state: &State) -> bool {
        let now = self.clock.monotonic();
        state.waiting.is_none_or(|since| now - since < LATE)
    }

    /// None for a Service that has no such port any more.
    pub fn of_service(&self, key: &str) -> Option<Answer> {
        let state = self.state.read();
        let endpoints = state.services.get(key)?.endpoints;
        let is_healthy = self.follows(&state);
        let (namespace, name) = parts(key);
        Some(Answer {
            status: status(endpoints > 0 && is_healthy),
            body: format!(
                "{{\n\t\"service\": {{\n\t\t\"namespace\": \"{namespace}\",\n\t\t\"name\": \
                 \"{name}\"\n\t}},\n\t\"localEndpoints\": {endpoints},\n\t\"serviceProxyHealthy\": \
                 {is_healthy}\n}}"
            ),
            content_type: JSON,
            weight: Some(endpoints),
        })
    }

    /// None for a path that there is not.
    pub fn of_node(&self, path: &str) -> Option<Answer> {
        let of_node = match path {
            "/healthz" => true,
            "/livez" => false,
            _ => return None,
        };
        let state = self.state.read();
        let follows = self.follows(&state);
        let is_well = follows && (!of_node || state.is_eligible);
        let now = self.clock.now();
        let last = if is_well { Some(now) } else { state.updated };
        let families = state.updated.map(|updated| {
            ["IPv4", "IPv6"].map(|family| {
                let report = FamilyReport {
                    last_updated: updated.to_string(),
                    healthy: follows,
                };
                (family, report)
            })
        });
        let report = Report {
            // Go's time before all times.
            last_updated: last
                .map_or_else(|| "0001-01-01T00:00:00Z".to_owned(), |at| at.to_string()),
            current_time: now.to_string(),
            node_eligible: of_node.then_some(state.is_eligible),
            healthy: follows,
            status: families.into_iter().flatten().collect(),
        };
        Some(Answer {
            status: status(is_well),
            body: serde_json::to_string(&report).unwrap_or_default(),
            content_type: JSON,
            weight: None,
        })
    }
}

/// Where kube-proxy has its metrics, of which there are none here. None for a path that there is not.
pub fn of_proxy(path: &str) -> Option<Answer> {
    let body = match path {
        "/proxyMode" => MODE,
        "/healthz" => "ok",
        _ => return None,
    };
    Some(Answer {
        status: StatusCode::OK,
        body: body.to_owned(),
        content_type: TEXT,
        weight: None,
    })
}

fn status(is_well: bool) -> StatusCode {
    if is_well {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    }
}

#[cfg(test)]
mod tests;
