//! A node whose Services others route, or nobody: what an earlier run of the agent left in the
//! kernel is taken out of it, or it would go on translating to endpoints that may be gone.

use super::kernel;
use crate::network::pace::SWEEP_AFTER;
use crate::network::table::{Table, TableError};
use std::time::Duration;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

const RETRY: Duration = Duration::from_secs(5);

/// Ends when nothing is left. Needs the table's keeper.
pub async fn clear(table: Table, stop: CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = cleared(&table) => {}
    }
}

async fn cleared(table: &Table) {
    let mut is_told = false;
    let mut epochs = table.epochs();
    // Only with the whole agent does the sender go.
    while epochs.wait_for(|epoch| *epoch > 0).await.is_ok() {
        let Err(error) = try_clear(table).await else {
            return;
        };
        if !std::mem::replace(&mut is_told, true) {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, "Services are still routed as they were");
        }
        sleep(RETRY).await;
    }
}

async fn try_clear(table: &Table) -> Result<(), TableError> {
    let nft = &table.nft;
    let (chains, sets) = (nft.chains().await?, nft.sets().await?);
    nft.commit(&kernel::without_rules(&chains, &sets)).await?;
    // Until then they may count as in use.
    sleep(SWEEP_AFTER).await;
    Ok(nft.commit(&kernel::without_chains(&chains)).await?)
}
