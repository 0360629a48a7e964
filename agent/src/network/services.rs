//! Services, as a node of the cluster sees them: which address leads to which endpoint, in the
//! kernel's packet filter. What kube-proxy does elsewhere.
//!
//! Decides from the node's view of Services and EndpointSlices (`plan`, `usable`), keeps what the
//! kernel has (`state`) and writes the difference (`router`, by `kernel`). Never looks at a packet
//! itself, writes nothing to the server but events, and touches no chain but its own.

mod claims; // Elements that several Services want.
mod cleared; // Routing that is off.
pub(super) mod conntrack; // Connections to endpoints that went.
mod health; // What load balancers ask.
mod kernel; // The kernel's messages.
mod node; // This node.
mod places; // Places of endpoints in their lists.
mod plan; // What one Service needs. Start reading here.
mod router; // The loop.
mod state; // What there is, and the steps from there.
mod steps; // The words for all of it.
mod suspects; // Whose connections are looked at.
mod timeouts; // Of connections.
mod usable; // Which endpoints.

#[cfg(test)]
mod fixtures;

pub use cleared::clear;

use crate::network::table::Table;
use crate::network::view::View;
use coracle_client::clock::Clock;
use coracle_client::events::Recorder;
use coracle_client::informer::{Change, Informer};
use health::{Health, HealthPorts};
use k8s_openapi::api::core::v1 as core;
use node::Node;
use router::Router;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What routing is given.
#[derive(Debug)]
pub struct Services {
    pub table: Table,
    pub view: View,
    pub node_name: String,
    /// Of this node alone.
    pub node: Informer<core::Node>,
    /// The one that it had last, for a start without the server.
    pub pod_cidrs: Option<String>,
    pub recorder: Recorder,
    pub clock: Clock,
    /// Where the node answers whether it routes Services.
    pub health_address: Option<SocketAddr>,
    /// Where it says how.
    pub mode_address: Option<SocketAddr>,
}

impl Services {
    /// Routes until `stop`; what is in the kernel then stays.
    pub fn run(self, tasks: &TaskTracker, stop: &CancellationToken) {
        let health = Arc::new(Health::new(self.clock.clone()));
        let ports_changed = Arc::new(Notify::new());
        let unknown = Node::unknown(&self.node_name, self.pod_cidrs.as_deref());
        let (known, node) = watch::channel(unknown);
        self.node.on_change(move |change| {
            let mut node = Node::of(change.object());
            node.is_leaving |= matches!(change, Change::Deleted(_));
            known.send_if_modified(|known| {
                let is_new = *known != node;
                *known = node;
                is_new
            });
        });
        let ports = HealthPorts {
            health: health.clone(),
            changed: ports_changed.clone(),
            view: self.view.clone(),
            recorder: self.recorder,
            node_name: self.node_name,
        };
        tasks.spawn(ports.run(stop.clone()));
        if let Some(address) = self.health_address {
            tasks.spawn(health::bind(health.clone(), address, stop.clone()));
        }
        if let Some(address) = self.mode_address {
            tasks.spawn(health::bind_local(address, stop.clone()));
        }
        tasks.spawn(timeouts::keep(self.table.clone(), stop.clone()));
        let router = Router {
            table: self.table,
            view: self.view,
            node,
            health,
            ports_changed,
            clock: self.clock,
        };
        tasks.spawn(router.run(stop.clone()));
    }
}
