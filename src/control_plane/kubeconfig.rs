//! The file that an administrator points kubectl at: written at the start, and again before the
//! certificate in it ends.

use anyhow::Context;
use coracle_apiserver::pki::{PkiError, kubeconfig::Kubeconfig};
use coracle_apiserver::private_file;
use coracle_client::clock::Clock;
use k8s_openapi::jiff::Timestamp;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The clock of a machine without a battery jumps by years when it learns the time.
const CHECK_EVERY: Duration = Duration::from_secs(60);

/// Writes the kubeconfig anew long before it ends, for a server that runs for years.
pub async fn keep(
    issue: impl Fn() -> Result<Kubeconfig, PkiError>,
    path: PathBuf,
    mut renew_at: Timestamp,
    clock: Clock,
) {
    let mut ticks = tokio::time::interval(CHECK_EVERY);
    loop {
        ticks.tick().await;
        if clock.now() < renew_at {
            continue;
        }
        let renewed = issue().map_err(anyhow::Error::from);
        let written = renewed.and_then(|made| {
            write(&path, &made.text)?;
            Ok(made.renew_at)
        });
        match written {
            Ok(next) => {
                tracing::info!(path = %path.display(), "renewed the admin's kubeconfig");
                renew_at = next;
            }
            Err(error) => tracing::error!("the admin's kubeconfig was not renewed: {error:#}"),
        }
    }
}

/// The file holds a private key.
pub fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let write = || -> std::io::Result<()> {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        private_file::write(path, text)
    };
    write().with_context(|| format!("cannot write the kubeconfig {}", path.display()))
}

#[cfg(test)]
mod tests;
