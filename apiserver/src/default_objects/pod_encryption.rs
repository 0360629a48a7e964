//! Whether nodes encrypt what they send each other's pods: said on the Namespace `kube-system`,
//! where agents look for it and which nobody but an admin may change.
//!
//! A cluster that never had it has no word of it.

use super::{ReconcileError, Wanted, ensure, following, read};
use crate::server::InProcess;
use serde_json::json;

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PodEncryption {
    /// UDP, of WireGuard on all nodes.
    pub port: u16,
    /// Where pods of the cluster may be.
    pub cluster_cidr: String,
}

const COLLECTION: &str = "/api/v1/namespaces";
const NAME: &str = "kube-system";
const ENCRYPTION: &str = "network.coracle/encryption";
const PORT: &str = "network.coracle/wireguard-port";
const CLUSTER: &str = "network.coracle/cluster-cidr";
const WIREGUARD: &str = "wireguard";
const NONE: &str = "none";

pub async fn reconcile(
    api: &InProcess,
    encryption: Option<&PodEncryption>,
) -> Result<(), ReconcileError> {
    match encryption {
        Some(encryption) => ensure(api, encrypted(encryption)).await,
        None if is_said(api).await? => ensure(api, plain()).await,
        None => Ok(()),
    }
}

async fn is_said(api: &InProcess) -> Result<bool, ReconcileError> {
    let path = format!("{COLLECTION}/{NAME}");
    let found = read(api, &path).await.map_err(|source| ReconcileError {
        what: format!("Namespace {NAME}"),
        source,
    })?;
    let path = ["metadata", "annotations", ENCRYPTION];
    Ok(found.is_some_and(|found| found.get(&path).is_some()))
}

fn encrypted(encryption: &PodEncryption) -> Wanted {
    let object = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {
            "name": NAME,
            "annotations": {
                ENCRYPTION: WIREGUARD,
                PORT: encryption.port.to_string(),
                CLUSTER: encryption.cluster_cidr,
            },
        },
    });
    following(
        COLLECTION,
        &[
            &["metadata", "annotations", ENCRYPTION],
            &["metadata", "annotations", PORT],
            &["metadata", "annotations", CLUSTER],
        ],
        object,
    )
}

fn plain() -> Wanted {
    let object = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": { "name": NAME, "annotations": { ENCRYPTION: NONE } },
    });
    following(
        COLLECTION,
        &[&["metadata", "annotations", ENCRYPTION]],
        object,
    )
}
