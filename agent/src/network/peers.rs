//! The other nodes: routes to their pods, straight on a segment that both are on, else through a
//! VXLAN device.
//!
//! Reads Nodes, and keeps what was read last on disk for a start without the server. What the
//! kernel has is looked up and compared with the plan whenever Nodes, links, addresses or routes
//! change, and now and then: what someone took away comes back. Routes are known as ours by their
//! protocol number, and no others are touched.

mod feed; // From the server, and from disk.
mod kernel; // What is there, and its change.
mod links; // A word of the kernel when it changes.
mod plan; // Pure. Start reading here.
mod record;

pub use kernel::remove;
pub use links::changes;

use super::bridged::Bridged;
use super::link::Links;
use super::subnet::Subnet;
use super::view::{Subscription, View};
use crate::node::OwnAddresses;
use coracle_client::Client;
use coracle_client::events::{EventType, Recorder};
use feed::Known;
use plan::{Own, Plan, Problem};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// A look at the kernel without a reason, in case a word of it was lost.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// What changes together is followed together.
const SETTLE: Duration = Duration::from_millis(100);
/// After a failure.
const RETRY: Duration = Duration::from_secs(5);

/// The Service whose endpoints are API servers.
const API_SERVERS: &str = "default/kubernetes";

/// The networks of the pods of all nodes, for who treats pods apart from the rest of the world.
pub type PodNetworks = BTreeSet<Subnet>;

#[derive(Debug)]
pub struct Peers {
    pub bridged: Arc<Bridged>,
    pub node_name: String,
    /// By which other nodes know this one.
    pub addresses: OwnAddresses,
    /// Where the API server is, if it is named by an address.
    pub server: Option<IpAddr>,
    /// Knows more addresses of API servers.
    pub view: View,
    pub recorder: Recorder,
    /// Where what was known last is kept.
    pub file: PathBuf,
    /// None until nodes are known.
    pub networks: watch::Sender<Option<PodNetworks>>,
}

impl Peers {
    /// Runs until `stop`. The routes stay then.
    pub async fn run(self, client: Client, stop: CancellationToken) {
        let known = Known::open(self.file.clone());
        let following = known.clone().follow(client, stop.clone());
        tokio::select! {
            () = stop.cancelled() => {}
            () = following => {}
            () = self.keep(&known) => {}
        }
    }

    async fn keep(&self, known: &Known) {
        let links = match Links::open() {
            Ok(links) => links,
            Err(error) => {
                tracing::error!(%error, "pods of other nodes are not reached");
                return std::future::pending().await;
            }
        };
        let mut nodes = known.subscribe();
        let mut bridges = self.bridged.subscribe();
        let mut addresses = self.addresses.subscribe();
        let mut changes = links::changes();
        let mut services = self.view.subscribe();
        let mut told = BTreeSet::new();
        loop {
            nodes.mark_unchanged();
            bridges.mark_unchanged();
            addresses.mark_unchanged();
            let pause = match self.reconcile(&links, known, &mut told).await {
                Ok(()) if told.iter().any(Problem::may_pass) => RETRY,
                Ok(()) => LOOK_EVERY,
                Err(error) => {
                    let error: &dyn std::error::Error = &error;
                    tracing::warn!(error, "routes to other nodes are not as they should be");
                    RETRY
                }
            };
            tokio::select! {
                Ok(()) = nodes.changed() => {}
                Ok(()) = bridges.changed() => {}
                Ok(()) = addresses.changed() => {}
                () = changes.next() => {}
                () = servers_changed(&mut services) => {}
                () = tokio::time::sleep(pause) => {}
            }
            tokio::time::sleep(SETTLE).await;
        }
    }

    async fn reconcile(
        &self,
        links: &Links,
        known: &Known,
        told: &mut BTreeSet<Problem>,
    ) -> Result<(), super::LinkError> {
        if self.bridged.is_down() {
            told.clear();
            return kernel::remove(links).await;
        }
        let (networks, nodes) = (self.bridged.subnets(), known.nodes());
        let Some(nodes) = nodes.filter(|_| !networks.is_empty()) else {
            return Ok(());
        };
        let observed = kernel::observe(links).await?;
        let own = Own {
            name: self.node_name.clone(),
            networks,
            addresses: self.addresses.all(),
            segments: observed.segments(),
            servers: self.servers(),
        };
        let plan = plan::plan(&own, &nodes);
        self.publish(&own, &plan);
        let mut problems = plan.problems.clone();
        let mtu = observed.mtu_towards(own.underlay());
        let applied = kernel::apply(links, &observed, &own, &plan, mtu).await?;
        self.bridged.set_mtu(applied.pod_mtu);
        problems.extend(applied.problems);
        self.tell(problems, told);
        Ok(())
    }

    fn servers(&self) -> BTreeSet<IpAddr> {
        let told = self.view.get(API_SERVERS).unwrap_or_default();
        let told = told
            .endpoints()
            .flat_map(|(_, endpoint)| endpoint.addresses.iter().copied());
        told.chain(self.server).collect()
    }

    fn publish(&self, own: &Own, plan: &Plan) {
        let mut networks: PodNetworks = plan.routes.iter().map(|route| route.network).collect();
        networks.extend(own.networks.iter());
        self.networks.send_if_modified(|known| {
            let is_new = known.as_ref() != Some(&networks);
            *known = Some(networks);
            is_new
        });
    }

    /// Each problem once, until it is gone.
    fn tell(&self, problems: BTreeSet<Problem>, told: &mut BTreeSet<Problem>) {
        for problem in problems.difference(told) {
            tracing::warn!("{problem}");
            let reference = crate::node::reference(&self.node_name);
            let message = problem.to_string();
            self.recorder.event(
                &reference,
                EventType::Warning,
                "FailedToCreateRoute",
                &message,
            );
        }
        *told = problems;
    }
}

/// Of a network that hides an API server nothing is known before that is.
async fn servers_changed(services: &mut Subscription) {
    while !services
        .changed()
        .await
        .iter()
        .any(|key| &**key == API_SERVERS)
    {}
}
