//! Connections to one webhook that are kept for the next call: a few, and for a time.

use crate::proxy::Duplex;
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A webhook that many requests wait for has this many connections at rest.
const IDLE_MAX: usize = 8;
/// Shorter than what servers keep an idle connection for as a rule.
const IDLE_TIME_MAX: Duration = Duration::from_secs(30);

type Sender = SendRequest<Full<Bytes>>;

#[derive(Default)]
pub struct Pool(Mutex<Idle>);

#[derive(Default)]
struct Idle {
    /// The newest last.
    kept: VecDeque<(Instant, Sender)>,
    /// A task waits until the oldest is too old.
    is_watched: bool,
}

impl Pool {
    /// One that was not closed, the newest first.
    pub fn take(&self) -> Option<Sender> {
        let mut idle = self.0.lock();
        while let Some((since, sender)) = idle.kept.pop_back() {
            if since.elapsed() < IDLE_TIME_MAX && !sender.is_closed() {
                return Some(sender);
            }
        }
        None
    }

    /// Keeps a connection whose answer has been read. It is closed when it gets too old.
    pub fn put(pool: &Arc<Self>, sender: Sender) {
        if sender.is_closed() {
            return;
        }
        let mut idle = pool.0.lock();
        if idle.kept.len() >= IDLE_MAX {
            idle.kept.pop_front();
        }
        idle.kept.push_back((Instant::now(), sender));
        if !std::mem::replace(&mut idle.is_watched, true) {
            tokio::spawn(Arc::clone(pool).watch());
        }
    }

    /// Ends with the last connection.
    async fn watch(self: Arc<Self>) {
        loop {
            tokio::time::sleep(IDLE_TIME_MAX).await;
            let mut idle = self.0.lock();
            idle.kept
                .retain(|(since, sender)| since.elapsed() < IDLE_TIME_MAX && !sender.is_closed());
            if idle.kept.is_empty() {
                idle.is_watched = false;
                return;
            }
        }
    }

    /// Speaks HTTP/1.1 on a new connection; it ends with its sender.
    pub async fn begin(&self, stream: Box<dyn Duplex>) -> Result<Sender, String> {
        let shaken = http1::handshake(TokioIo::new(stream)).await;
        let (sender, connection) = shaken.map_err(|error| error.to_string())?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to a webhook broke off");
            }
        });
        Ok(sender)
    }
}
