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
    listed::<K>(informer.synced()).await
}

/// The same for a kind that somebody else keeps: `list` says whether its first list was whole.
pub async fn listed<K: Kind>(list: impl Future<Output = bool>) -> bool {
    let mut list = pin!(list);
    loop {
        match tokio::time::timeout(TOLD_EVERY, &mut list).await {
            Ok(is_whole) => return is_whole,
            Err(_) => {
                let (kind, version) = (K::kind(&()), K::api_version(&()));
                tracing::warn!(%kind, %version, "nothing is scheduled until the kind can be listed");
            }
        }
    }
}

#[cfg(test)]
mod tests;
