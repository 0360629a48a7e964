//! Follows the Service of the cluster's DNS, and answers where it says.

use super::asked::Domain;
use super::forward::Forwarder;
use super::listen::Sockets;
use super::resolvers::Resolvers;
use super::responder::Responder;
use super::zone::{DNS_SERVICE, Zone};
use crate::PodDns;
use crate::error::chain;
use crate::network::view::{Subscription, View};
use crate::network::{self, Links};
use coracle_client::clock::Clock;
use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The addresses of the cluster's DNS are on it. Its name is fixed, as the bridge's is.
const LINK: &str = "coracle-dns";
const PORT: u16 = 53;
/// Between two tries to take an address, the first and the longest.
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(30);
/// A look at the link without a reason, in case a word of it was lost.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// What changes together is looked at together.
const SETTLE: Duration = Duration::from_millis(100);

/// Where the cluster's names are asked for, and what they end in.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClusterDns {
    pub servers: Vec<IpAddr>,
    pub domain: String,
}

/// What pods are told: what the node was told, else what the cluster says of itself. None when
/// neither names a server.
pub fn cluster_dns(told: &PodDns, view: &View) -> Option<ClusterDns> {
    let found = view.get(DNS_SERVICE).and_then(|entry| entry.service);
    let servers = match (&told.servers[..], &found) {
        ([], Some(service)) => service.cluster_ips.to_vec(),
        (told, _) => told.to_vec(),
    };
    if servers.is_empty() {
        return None;
    }
    let domain = found.and_then(|service| service.cluster_domain.clone());
    let domain = told.domain.clone().or(domain.map(String::from));
    Some(ClusterDns {
        servers,
        domain: domain.unwrap_or_else(|| DOMAIN_DEFAULT.to_owned()),
    })
}

pub const DOMAIN_DEFAULT: &str = "cluster.local";

#[derive(Debug)]
pub struct Service {
    pub view: View,
    pub clock: Clock,
    /// The node's own.
    pub resolv_conf: PathBuf,
}

impl Service {
    /// Until `stop`. The link stays: what runs next finds it.
    pub async fn run(self, stop: CancellationToken) {
        let mut changes = self.view.subscribe();
        let mut current: Option<ClusterDns> = None;
        let mut running = Running::default();
        loop {
            let wanted = self.wanted();
            if wanted != current {
                running.end().await;
                if let Some(wanted) = wanted.clone() {
                    running.begin(&self, wanted, &stop);
                } else {
                    forget().await;
                }
                current = wanted;
            }
            tokio::select! {
                () = stop.cancelled() => break,
                () = self.changed(&mut changes) => {}
            }
        }
        running.end().await;
    }

    /// The Service tells the domain only where nodes answer themselves.
    fn wanted(&self) -> Option<ClusterDns> {
        let service = self.view.get(DNS_SERVICE)?.service?;
        Some(ClusterDns {
            domain: service.cluster_domain.clone()?.into(),
            servers: service.cluster_ips.to_vec(),
        })
        .filter(|wanted| !wanted.servers.is_empty())
    }

    async fn changed(&self, changes: &mut Subscription) {
        loop {
            if changes.changed().await.contains(DNS_SERVICE) {
                return;
            }
        }
    }
}

#[derive(Default)]
struct Running {
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Running {
    fn begin(&mut self, service: &Service, wanted: ClusterDns, stop: &CancellationToken) {
        self.stop = stop.child_token();
        self.tasks = TaskTracker::new();
        let Some(domain) = Domain::parse(&wanted.domain) else {
            let domain = &wanted.domain;
            tracing::warn!(%domain, "names are not answered: the cluster's domain is no name");
            return;
        };
        let resolvers = Resolvers::new(service.resolv_conf.clone(), wanted.servers.clone());
        let forwarder = Forwarder::new(resolvers, service.clock.clone());
        let serial = u32::try_from(service.clock.now().as_second()).unwrap_or(1);
        let zone = Zone::new(domain, service.view.clone(), serial);
        let responder = Arc::new(Responder::new(zone, forwarder));
        let (tasks, stop) = (self.tasks.clone(), self.stop.clone());
        let mut held = Held::default();
        self.tasks.spawn(async move {
            let serve = |sockets: Sockets| {
                tasks.spawn(sockets.serve(responder.clone(), stop.clone()));
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = held.keep(&wanted, serve) => {}
            }
        });
    }

    async fn end(&mut self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// The addresses, each for itself: where one cannot be had the others are answered at all the same.
#[derive(Default)]
struct Held {
    answered: BTreeSet<IpAddr>,
    /// Problems that were told, until they are gone.
    told: BTreeSet<String>,
}

impl Held {
    /// Takes the addresses, however long it takes, and again should somebody take them away. The
    /// sockets outlive that.
    async fn keep(&mut self, wanted: &ClusterDns, serve: impl Fn(Sockets)) {
        let mut changes = network::link_changes();
        let mut pause = RETRY_MIN;
        loop {
            let problems = self.look(&wanted.servers, &serve).await;
            for problem in problems.difference(&self.told) {
                tracing::warn!(problem, "names are not answered everywhere yet");
            }
            let (next, then) = if problems.is_empty() {
                (LOOK_EVERY, RETRY_MIN)
            } else {
                (pause, (pause * 2).min(RETRY_MAX))
            };
            pause = then;
            self.told = problems;
            tokio::select! {
                () = changes.next() => {}
                () = tokio::time::sleep(next) => {}
            }
            tokio::time::sleep(SETTLE).await;
        }
    }

    /// Gives back what is not as it should be.
    async fn look(&mut self, servers: &[IpAddr], serve: &impl Fn(Sockets)) -> BTreeSet<String> {
        let refused = match Links::open() {
            Ok(links) => links.keep_addressed(LINK, servers).await,
            Err(error) => Err(error),
        };
        let refused = match refused {
            Ok(refused) => refused,
            Err(error) => return BTreeSet::from([chain(&error)]),
        };
        let mut problems: BTreeSet<_> = refused
            .iter()
            .map(|(server, error)| format!("{server}: {}", chain(error)))
            .collect();
        for server in servers {
            if self.answered.contains(server) || refused.contains_key(server) {
                continue;
            }
            let address = SocketAddr::new(*server, PORT);
            match Sockets::bind(address).await {
                Ok(sockets) => {
                    tracing::info!(%address, "names are answered");
                    self.answered.insert(*server);
                    serve(sockets);
                }
                Err(error) => {
                    let error = in_the_users_terms(address, error);
                    problems.insert(format!("{server}: {error}"));
                }
            }
        }
        problems
    }
}

fn in_the_users_terms(address: SocketAddr, error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::AddrInUse {
        let text = format!(
            "another program has port 53 on all addresses, so that {address} cannot be had; let \
             it listen on its own addresses alone"
        );
        return io::Error::new(error.kind(), text);
    }
    error
}

async fn forget() {
    let removed = match Links::open() {
        Ok(links) => links.remove_addressed(LINK).await,
        Err(error) => Err(error),
    };
    if let Err(error) = removed {
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "the link {LINK} stays"
        );
    }
}

#[cfg(test)]
mod tests;
