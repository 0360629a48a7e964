//! Whether the pods' network is encrypted: what the server says of it, on the Namespace
//! `kube-system`, kept on the node's disk before anything is done by it.

use crate::atomic_file;
use crate::network::subnet::Subnet;
use crate::network::view::View;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Where the server says it: only an admin may change it there.
pub const NAMESPACE: &str = "kube-system";
const ENCRYPTION: &str = "network.coracle/encryption";
const PORT: &str = "network.coracle/wireguard-port";
const CLUSTER: &str = "network.coracle/cluster-cidr";
const NONE: &str = "none";
/// WireGuard's.
const PORT_DEFAULT: u16 = 51820;

#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub enum Told {
    /// Neither way may be taken.
    #[default]
    Nothing,
    Plain,
    Encrypted(Setting),
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Setting {
    /// UDP, of all nodes.
    pub port: u16,
    /// Where pods of the cluster may be.
    pub cluster: Box<[Subnet]>,
}

impl Told {
    /// A way of encryption that is not known here is no reason to send in plain text.
    pub fn of(annotations: Option<&BTreeMap<String, String>>) -> Self {
        let value = |key: &str| annotations?.get(key).map(String::as_str);
        match value(ENCRYPTION) {
            None | Some(NONE) => Self::Plain,
            Some(_) => Self::Encrypted(Setting {
                port: value(PORT)
                    .and_then(|text| text.parse().ok())
                    .filter(|port| *port > 0)
                    .unwrap_or(PORT_DEFAULT),
                cluster: value(CLUSTER)
                    .into_iter()
                    .flat_map(|text| text.split(','))
                    .filter_map(|text| Subnet::parse(text.trim()))
                    .collect(),
            }),
        }
    }
}

/// What was told last, in this run or before it.
#[derive(Debug)]
pub struct Following {
    view: View,
    file: PathBuf,
    told: watch::Sender<Told>,
}

impl Following {
    pub fn open(view: View, file: PathBuf) -> Self {
        let told = watch::Sender::new(read(&file));
        Self { view, file, told }
    }

    pub fn subscribe(&self) -> watch::Receiver<Told> {
        self.told.subscribe()
    }

    /// Runs until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let mut heard = self.view.encryption();
        loop {
            let told = heard.borrow_and_update().clone();
            if told != Told::Nothing && told != *self.told.borrow() {
                self.keep(&told);
                self.told.send_replace(told);
            }
            tokio::select! {
                () = stop.cancelled() => return,
                changed = heard.changed() => if changed.is_err() { return },
            }
        }
    }

    fn keep(&self, told: &Told) {
        let written = serde_json::to_vec(told).map_err(std::io::Error::other);
        let written = written.and_then(|bytes| atomic_file::write(&self.file, &bytes, 0o644));
        if let Err(error) = written {
            tracing::warn!(
                %error,
                "whether pods' traffic is encrypted is not kept for a start without the server"
            );
        }
    }
}

/// A damaged file is as none: the server tells again.
fn read(file: &Path) -> Told {
    let Ok(bytes) = std::fs::read(file) else {
        return Told::Nothing;
    };
    serde_json::from_slice(&bytes).unwrap_or_else(|error| {
        tracing::warn!(%error, "whether pods' traffic is encrypted is asked of the server");
        Told::Nothing
    })
}

#[cfg(test)]
mod tests;
