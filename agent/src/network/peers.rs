//! The other nodes: routes to their pods, straight on a segment that both are on, else through a
//! VXLAN device; or all by one link that encrypts.
//!
//! Reads Nodes, and keeps what was read last on disk for a start without the server. What the
//! kernel has is looked up and compared with the plan whenever Nodes, links, addresses or routes
//! change, and now and then: what someone took away comes back. Routes are known as ours by their
//! protocol number, and no others are touched.

mod encryption; // What the link that encrypts is to be.
mod feed; // From the server, and from disk.
mod kernel; // What is there, and its change.
mod links; // A word of the kernel when it changes.
mod plan; // Pure. Start reading here.
mod record;
mod telling; // Which problems, and when.

pub use kernel::remove;
pub use links::changes;

use super::bridged::Bridged;
use super::link::Links;
use super::nft::Range;
use super::subnet::Subnet;
use super::view::{Subscription, View};
use super::wireguard::{self, Encrypted, PublicKey, Told};
use crate::node::OwnAddresses;
use coracle_client::Client;
use coracle_client::events::{EventType, Recorder};
use feed::Known;
use kernel::Encryption;
use plan::{Own, Plan, Problem};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use telling::Telling;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;
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
    /// Whether what pods send each other is encrypted.
    pub encryption: watch::Receiver<Told>,
    /// Where this node's key is.
    pub key_file: PathBuf,
    /// What may not pass in plain text then. None until it is known.
    pub guarded: watch::Sender<Option<Vec<Range>>>,
}

impl Peers {
    /// Runs until `stop`. The routes stay then.
    pub async fn run(self, client: Client, stop: CancellationToken) {
        let known = Known::open(self.file.clone());
        let following = known.clone().follow(client.clone(), stop.clone());
        let own_key = watch::Sender::new(None);
        tokio::select! {
            () = stop.cancelled() => {}
            () = following => {}
            () = self.keep(&known, &own_key) => {}
            // A server that does not answer keeps no route waiting.
            () = self.publish_key(&client, &known, own_key.subscribe()) => {}
        }
    }

    async fn keep(&self, known: &Known, own_key: &watch::Sender<Option<PublicKey>>) {
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
        let mut encryption = self.encryption.clone();
        let mut telling = Telling::default();
        let mut ticks = tokio::time::interval(RETRY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut end = None;
        loop {
            nodes.mark_unchanged();
            bridges.mark_unchanged();
            addresses.mark_unchanged();
            encryption.mark_unchanged();
            let reconciled = self.reconcile(&links, known, &mut telling, &mut end).await;
            let key = end.as_ref().map(Encrypted::key);
            own_key.send_if_modified(|known| std::mem::replace(known, key) != key);
            let pause = match reconciled {
                Ok(()) if telling.may_pass() => RETRY,
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
                Ok(()) = encryption.changed() => {}
                () = changes.next() => {}
                () = servers_changed(&mut services) => {}
                () = tokio::time::sleep(pause) => {}
                _ = ticks.tick(), if telling.waits() => telling.tick(),
            }
            tokio::time::sleep(SETTLE).await;
        }
    }

    async fn reconcile(
        &self,
        links: &Links,
        known: &Known,
        telling: &mut Telling,
        end: &mut Option<Encrypted>,
    ) -> Result<(), super::LinkError> {
        if self.bridged.is_down() {
            telling.forget();
            *end = None;
            self.guard_nothing();
            return kernel::remove(links).await;
        }
        let (networks, nodes) = (self.bridged.subnets(), known.nodes());
        let Some(nodes) = nodes.filter(|_| !networks.is_empty()) else {
            return Ok(());
        };
        let encryption = self.encryption.borrow().clone();
        if encryption == Told::Nothing {
            return Ok(());
        }
        self.open_end(&encryption, end);
        let observed = kernel::observe(links).await?;
        let own = Own {
            name: self.node_name.clone(),
            networks,
            addresses: self.addresses.all(),
            segments: observed.segments(),
            servers: self.servers(),
            key: end.as_ref().map(Encrypted::key),
        };
        let plan = plan::plan(&own, &nodes);
        self.publish(&own, &plan);
        let mut problems = plan.problems.clone();
        self.guard(&own, &plan, &nodes, &encryption);
        let mtu = observed.mtu_towards(own.underlay());
        let encrypted = encryption::link(links, &observed, &own, &plan, mtu, &encryption, end);
        let encrypted = encrypted.await.unwrap_or_else(|error| {
            let reason = crate::error::chain(&error);
            if own.key.is_none() {
                tracing::warn!(reason, "the link that encrypted is still there");
                return Encryption::Off;
            }
            problems.insert(Problem::NotEncrypted { reason });
            Encryption::By(observed.link_named(wireguard::DEVICE))
        });
        let applied = kernel::apply(links, &observed, &own, &plan, mtu, encrypted).await;
        let applied = applied.map(|applied| {
            self.bridged.set_mtu(applied.pod_mtu);
            problems.extend(applied.problems);
        });
        self.tell(problems, telling);
        applied
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

    fn tell(&self, problems: BTreeSet<Problem>, telling: &mut Telling) {
        for problem in telling.news(problems) {
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
