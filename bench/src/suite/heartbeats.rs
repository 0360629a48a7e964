//! Nodes that exist only as objects renew their leases, as fast as they are answered.
//!
//! A node renews its lease each ten seconds: a tenth of what is asked at the rate measured here is
//! what so many nodes ask of a server at rest.

use crate::fake_nodes;
use crate::pool;
use crate::scratch::Scratch;
use crate::stats::Report;
use coracle_client::Client;
use coracle_client::clock::Clock;
use coracle_client::lease::NodeLease;
use std::sync::Arc;
use tokio::sync::Mutex;

pub const CONNECTIONS: usize = 64;
const NODES: [usize; 3] = [100, 1_000, 5_000];
/// So many renewals in a round, or one of each node.
const RENEWALS: usize = 2_000;

#[derive(Clone, Debug, PartialEq)]
pub struct Heartbeats {
    pub nodes: usize,
}

pub fn cases(nodes_max: usize) -> Vec<Heartbeats> {
    let numbers = NODES.into_iter().filter(|some| *some <= nodes_max);
    numbers.map(|nodes| Heartbeats { nodes }).collect()
}

pub async fn prepare(
    scratch: &Scratch,
    clients: &[Client],
    nodes: &[String],
) -> anyhow::Result<()> {
    fake_nodes::register_all(scratch, clients, nodes).await
}

impl Heartbeats {
    pub fn name(&self) -> String {
        format!("heartbeats of {} nodes", self.nodes)
    }

    pub async fn measure(&self, clients: &[Client], nodes: &[String]) -> anyhow::Result<Report> {
        let leases = nodes.iter().enumerate().map(|(number, name)| {
            let client = clients[number % clients.len()].clone();
            Mutex::new(NodeLease::new(client, name, Clock::system()))
        });
        let leases: Arc<[_]> = leases.collect();
        // A lease is read or made before its first write and never again: that is not measured.
        let first = renew("first heartbeat", clients, &leases, nodes.len()).await?;
        anyhow::ensure!(first.failed == 0, "{} heartbeats failed", first.failed);
        renew(&self.name(), clients, &leases, RENEWALS.max(nodes.len())).await
    }
}

/// Each node has its own connection, as many of them share one as there are too few.
async fn renew(
    work: &str,
    clients: &[Client],
    leases: &Arc<[Mutex<NodeLease>]>,
    count: usize,
) -> anyhow::Result<Report> {
    let leases = Arc::clone(leases);
    pool::run(work, clients, count, move |_, number| {
        let leases = Arc::clone(&leases);
        async move { leases[number % leases.len()].lock().await.renew().await }
    })
    .await
}
