//! Keeps one connection to the server and serves HTTP/2 on it.

use super::serve::{Server, Way};
use crate::stats::Stats;
use coracle_client::connect::Endpoint;
use coracle_client::upgrade::{self, UpgradeError};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rand::RngExt;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const PROTOCOL: &str = "coracle-tunnel";
/// Finds out within a minute that the server is gone without a word.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(20);
const RETRY_FIRST: Duration = Duration::from_millis(200);
const RETRY_LONGEST: Duration = Duration::from_secs(10);
/// Requests at one time; a stream each, such as a followed log.
const STREAMS_MAX: u32 = 1000;
/// What may wait for a stream's reader; a stream that is not read must not stop the others, so
/// the connection takes what many of them hold.
const STREAM_WINDOW_BYTES: u32 = 256 << 10;
const CONNECTION_WINDOW_BYTES: u32 = 64 << 20;

#[derive(Debug)]
pub struct Tunnel {
    pub endpoint: Endpoint,
    pub stats: Arc<Stats>,
}

impl Tunnel {
    pub async fn run(self, stop: CancellationToken) {
        let server = Server {
            stats: self.stats.clone(),
        };
        let path = format!("/coracle/v1/nodes/{}/tunnel", self.stats.node_name);
        let mut pause = RETRY_FIRST;
        let mut is_down = false;
        loop {
            let begun = self.stats.context.clock.monotonic();
            let ended = tokio::select! {
                () = stop.cancelled() => return,
                ended = self.connect(&path, &server) => ended,
            };
            if begun.elapsed() > RETRY_LONGEST {
                pause = RETRY_FIRST;
                is_down = false;
            }
            match ended {
                Ok(()) => tracing::debug!("the server closed the node's tunnel"),
                Err(error) if is_down => tracing::debug!(%error, "no tunnel to the server"),
                Err(error) => tracing::warn!(%error, "no tunnel to the server"),
            }
            is_down = true;
            let jitter = rand::rng().random_range(0.5..1.5);
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause.mul_f64(jitter)) => {}
            }
            pause = (pause * 2).min(RETRY_LONGEST);
        }
    }

    /// Serves until the connection ends.
    async fn connect(&self, path: &str, server: &Server) -> Result<(), TunnelError> {
        let tunnel = upgrade::open(&self.endpoint, path, PROTOCOL).await?;
        tracing::debug!("the node's tunnel is open");
        let service = service_fn(|request| {
            let server = server.clone();
            async move { Ok::<_, std::convert::Infallible>(server.answer(request, Way::Tunnel).await) }
        });
        let served = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT)
            .max_concurrent_streams(STREAMS_MAX)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .serve_connection(tunnel.into_inner(), service)
            .await;
        Ok(served?)
    }
}

#[derive(Debug, thiserror::Error)]
enum TunnelError {
    #[error(transparent)]
    Open(#[from] UpgradeError),
    #[error(transparent)]
    Serve(#[from] hyper::Error),
}
