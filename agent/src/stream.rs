//! placeholder while linking
use crate::pods::{Context, Pods};
use coracle_client::connect::Endpoint;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
#[derive(Debug)]
pub struct Tunnel {
    pub endpoint: Endpoint,
    pub node_name: String,
    pub context: Arc<Context>,
    pub pods: Pods,
}
impl Tunnel {
    pub async fn run(self, stop: CancellationToken) {
        stop.cancelled().await
    }
}
