//! How long the kernel keeps a connection in mind that says nothing: as kube-proxy has it, where the
//! machine has what the kernel begins with. Who has set something else is left with it.

use crate::network::table::Table;
use std::path::Path;
use tokio_util::sync::CancellationToken;

const DIRECTORY: &str = "/proc/sys/net/netfilter";

struct Timeout {
    name: &'static str,
    /// In seconds: the kernel's, and ours.
    default: u32,
    wanted: u32,
}

const TIMEOUTS: [Timeout; 2] = [
    // One end has said all that it has to say, and the other may take long.
    Timeout {
        name: "nf_conntrack_tcp_timeout_close_wait",
        default: 60,
        wanted: 60 * 60,
    },
    // Five days of what nobody ended fill the table.
    Timeout {
        name: "nf_conntrack_tcp_timeout_established",
        default: 5 * 24 * 60 * 60,
        wanted: 24 * 60 * 60,
    },
];

/// Once the table is there, and with it the kernel's part that keeps connections.
pub async fn keep(table: Table, stop: CancellationToken) {
    let mut epochs = table.epochs();
    let made = async { epochs.wait_for(|epoch| *epoch > 0).await.is_ok() };
    tokio::select! {
        () = stop.cancelled() => {}
        true = made => set(Path::new(DIRECTORY)),
    }
}

fn set(directory: &Path) {
    for timeout in &TIMEOUTS {
        let path = directory.join(timeout.name);
        let is_default = match std::fs::read_to_string(&path) {
            Ok(text) => text.trim() == timeout.default.to_string(),
            Err(error) => {
                let path = path.display();
                tracing::debug!(%path, %error, "how long connections are kept is not known");
                false
            }
        };
        if !is_default {
            continue;
        }
        if let Err(error) = std::fs::write(&path, timeout.wanted.to_string()) {
            let path = path.display();
            tracing::warn!(%path, %error, "connections are kept as long as the kernel keeps them");
        }
    }
}

#[cfg(test)]
mod tests;
