//! The heartbeat of a node: a Lease in a namespace of its own, small and renewed often.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Api;
use kube::api::PostParams;

use super::whole_seconds;
use crate::Client;
use crate::clock::Clock;

/// The namespace of the leases of nodes.
const NODE_LEASE_NAMESPACE: &str = "kube-node-lease";

/// The lease by which a node says that it is alive.
#[derive(Debug)]
pub struct NodeLease {
    api: Api<Lease>,
    node_name: String,
    owner: Option<OwnerReference>,
    duration: Duration,
    clock: Clock,
    held: Option<Lease>,
}

impl NodeLease {
    /// Upstream's kubelet: a duration of 40 s, renewed every quarter of it.
    pub const DURATION: Duration = Duration::from_secs(40);
    pub const RENEW_INTERVAL: Duration = Duration::from_secs(10);

    pub fn new(client: Client, node_name: &str, clock: Clock) -> Self {
        Self {
            api: Api::namespaced(client, NODE_LEASE_NAMESPACE),
            node_name: node_name.to_owned(),
            owner: None,
            duration: Self::DURATION,
            clock,
            held: None,
        }
    }

    /// Makes the lease go with its Node.
    pub fn set_node_uid(&mut self, uid: &str) {
        self.owner = Some(OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Node".to_owned(),
            name: self.node_name.clone(),
            uid: uid.to_owned(),
            ..OwnerReference::default()
        });
    }

    /// Writes the lease once, making it if need be. The caller calls this every
    /// `RENEW_INTERVAL` and, after a failure, sooner.
    pub async fn renew(&mut self) -> Result<(), kube::Error> {
        let written = match self.held.take() {
            Some(held) => match self.update(held).await {
                // Changed or gone since: read it again below.
                Err(kube::Error::Api(status)) if status.code == 409 || status.code == 404 => None,
                other => Some(other?),
            },
            None => None,
        };
        let written = match written {
            Some(written) => written,
            None => match self.api.get_opt(&self.node_name).await? {
                Some(current) => self.update(current).await?,
                None => {
                    let lease = self.fill(Lease {
                        metadata: ObjectMeta {
                            name: Some(self.node_name.clone()),
                            namespace: Some(NODE_LEASE_NAMESPACE.to_owned()),
                            ..ObjectMeta::default()
                        },
                        spec: None,
                    });
                    self.api.create(&PostParams::default(), &lease).await?
                }
            },
        };
        self.held = Some(written);
        Ok(())
    }

    async fn update(&self, lease: Lease) -> Result<Lease, kube::Error> {
        let lease = self.fill(lease);
        self.api
            .replace(&self.node_name, &PostParams::default(), &lease)
            .await
    }

    fn fill(&self, mut lease: Lease) -> Lease {
        if let Some(owner) = &self.owner {
            lease.metadata.owner_references = Some(vec![owner.clone()]);
        }
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = Some(self.node_name.clone());
        spec.lease_duration_seconds = Some(whole_seconds(self.duration));
        spec.renew_time = Some(self.clock.micro_time());
        lease
    }
}
