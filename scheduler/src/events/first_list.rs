//! The start waits until every kind was listed, however long that takes: with less than all of the
//! world, pods would go where they must not. A server that does not serve a kind is waited for as
//! well; what is missing is told.

use coracle_client::informer::{Informer, Kind};
use std::pin::pin;
use std::time::Duration;

/// No server is that slow, and nobody reads the same line more often.
const TOLD_EVERY: Duration = Duration::from_secs(30);

/// Waits for the first list of a kind; false when the informers were shut down before.
pub async fn synced<K: Kind>(informer: &Informer<K>) -> bool {
    let mut synced = pin!(informer.synced());
    loop {
        match tokio::time::timeout(TOLD_EVERY, &mut synced).await {
            Ok(is_synced) => return is_synced,
            Err(_) => {
                let (kind, version) = (K::kind(&()), K::api_version(&()));
                tracing::warn!(%kind, %version, "nothing is scheduled until the kind can be listed");
            }
        }
    }
}

#[cfg(test)]
mod tests;
