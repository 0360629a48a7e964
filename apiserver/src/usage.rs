//! What nodes and pods use, asked of the agents when somebody asks the server.
//!
//! Nothing is asked of a node unless a reader wants to know of it or its pods, and then at most
//! every [`FRESH`]; readers that come together wait for one answer. What was measured is in memory
//! alone, and goes when nobody has asked for a while. What a node says counts for its own pods
//! only: the reader looks pods up under the node that they are bound to.

mod exposition; // The text that a node answers. Pure.
mod samples; // From counts to rates. Pure.

use crate::tunnel::{Body, TunnelError, Tunnels};
use bytes::Bytes;
use coracle_api::kinds::metrics::Used;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared, join_all};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use parking_lot::Mutex;
use samples::Samples;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// A node is not asked again before. Less than the 15 seconds in which autoscalers come again, so
/// that each of their looks has an interval of its own.
const FRESH: Duration = Duration::from_secs(10);
/// What was measured longer ago says nothing of now: it is compared with nothing, and shown to
/// nobody.
const APART_MAX: Duration = Duration::from_secs(60);
/// Where there is nothing to compare with, a node is asked twice, this far apart.
const FIRST_APART: Duration = Duration::from_secs(1);
/// After so long without a reader, all is forgotten; a node that was not asked for so long, as it
/// is no more or not connected, alone.
const KEPT: Duration = Duration::from_secs(180);
/// A reader gets what there is by then; a node that is slower is there for the next one.
const READER_MAX: Duration = Duration::from_secs(5);
/// A node has so long for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// Nodes asked at a time: with the size of an answer, the bound of what is in memory of them.
const NODES_AT_ONCE: usize = 16;
/// About 2,000 containers.
const ANSWER_BYTES_MAX: usize = 2 << 20;

const PATH: &str = "http://node/metrics/resource";

#[derive(Debug, thiserror::Error)]
enum AskError {
    #[error(transparent)]
    Tunnel(#[from] TunnelError),
    #[error("the node answered {0}")]
    Refused(StatusCode),
    #[error("the answer is larger than {ANSWER_BYTES_MAX} bytes")]
    TooLarge,
    #[error("the answer broke off: {0}")]
    BrokenOff(String),
    #[error("the node did not answer in time")]
    Late,
}

type Running = Shared<BoxFuture<'static, ()>>;

/// What is known of a node.
#[derive(Default)]
struct Node {
    samples: Samples,
    asked: Option<Instant>,
    running: Option<Running>,
}

#[derive(Default)]
struct Kept {
    nodes: BTreeMap<String, Node>,
    read: Option<Instant>,
    /// Whether something waits to forget all.
    is_watched: bool,
}

impl Kept {
    /// What may be shown of a node.
    fn recent(&self, node: &str) -> Option<&Samples> {
        let samples = &self.nodes.get(node)?.samples;
        samples
            .is_near(Instant::now(), APART_MAX)
            .then_some(samples)
    }

    fn drop_unasked(&mut self) {
        let is_asked = |node: &Node| node.asked.is_some_and(|asked| asked.elapsed() < KEPT);
        self.nodes.retain(|_, node| is_asked(node));
    }
}

pub struct Usage {
    tunnels: Tunnels,
    kept: Mutex<Kept>,
    asking: Semaphore,
}

impl std::fmt::Debug for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Usage").finish_non_exhaustive()
    }
}

impl Usage {
    pub fn new(tunnels: Tunnels) -> Self {
        Self {
            tunnels,
            kept: Mutex::default(),
            asking: Semaphore::new(NODES_AT_ONCE),
        }
    }

    /// Has fresh figures of these nodes, or what there is after a while.
    pub async fn refresh(self: &Arc<Self>, nodes: &BTreeSet<String>) {
        let running: Vec<Running> = {
            let mut kept = self.kept.lock();
            kept.read = Some(Instant::now());
            if !std::mem::replace(&mut kept.is_watched, true) {
                tokio::spawn(Arc::clone(self).forget());
            }
            let due = nodes.iter().filter_map(|node| self.due(&mut kept, node));
            due.collect()
        };
        // Whoever is not there in time is there for the next reader.
        drop(tokio::time::timeout(READER_MAX, join_all(running)).await);
    }

    /// What a node uses.
    pub fn node(&self, node: &str) -> Option<Used> {
        self.kept.lock().recent(node)?.node()
    }

    /// What the containers of a pod on a node use, by name. `None` when it is not known of one.
    pub fn pod(&self, node: &str, namespace: &str, name: &str) -> Option<Vec<(String, Used)>> {
        let kept = self.kept.lock();
        kept.recent(node)?.pod(namespace, name)
    }

    /// The question that is under way or due.
    fn due(self: &Arc<Self>, kept: &mut Kept, name: &str) -> Option<Running> {
        let known = kept.nodes.get(name);
        let running = known.and_then(|node| node.running.as_ref());
        // Asked itself: the last one that waited may have gone before it ended.
        let is_open = |running: &&Running| Running::clone(running).now_or_never().is_none();
        if let Some(running) = running.filter(is_open) {
            return Some(running.clone());
        }
        let asked = known.and_then(|node| node.asked);
        if asked.is_some_and(|asked| asked.elapsed() < FRESH) || !self.tunnels.is_connected(name) {
            return None;
        }
        let asking = tokio::spawn(Arc::clone(self).measure(name.to_owned()));
        let running = asking.map(drop).boxed().shared();
        let node = kept.nodes.entry(name.to_owned()).or_default();
        node.asked = Some(Instant::now());
        node.running = Some(running.clone());
        Some(running)
    }

    async fn measure(self: Arc<Self>, node: String) {
        if let Err(error) = self.measured(&node).await {
            tracing::debug!(node, %error, "a node did not tell what it uses");
        }
    }

    async fn measured(&self, node: &str) -> Result<(), AskError> {
        if !self.sample(node).await? {
            tokio::time::sleep(FIRST_APART).await;
            self.sample(node).await?;
        }
        Ok(())
    }

    /// Asks once; whether there was something to compare the answer with.
    async fn sample(&self, node: &str) -> Result<bool, AskError> {
        let text = {
            let _place = self.asking.acquire().await.expect("it is never closed");
            let asked = tokio::time::timeout(ANSWER_MAX, self.ask(node)).await;
            asked.map_err(|_| AskError::Late)??
        };
        let batch = exposition::read(&String::from_utf8_lossy(&text));
        let mut kept = self.kept.lock();
        // Forgotten meanwhile: it is asked for again when somebody reads.
        let Some(known) = kept.nodes.get_mut(node) else {
            return Ok(true);
        };
        Ok(known.samples.add(batch, Instant::now(), APART_MAX))
    }

    async fn ask(&self, node: &str) -> Result<Bytes, AskError> {
        let nothing = Full::new(Bytes::new()).map_err(|never| match never {});
        let mut request = Request::new(Body::new(nothing));
        *request.uri_mut() = http::Uri::from_static(PATH);
        let response = self.tunnels.request(node, request).await?;
        if response.status() != StatusCode::OK {
            return Err(AskError::Refused(response.status()));
        }
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX);
        let whole = body.collect().await.map_err(|error| {
            if error.is::<LengthLimitError>() {
                AskError::TooLarge
            } else {
                AskError::BrokenOff(error.to_string())
            }
        })?;
        Ok(whole.to_bytes())
    }

    /// Ends with the last reader's interest. While there are readers, it looks every [`KEPT`] or
    /// less often for nodes that nobody can ask any more.
    async fn forget(self: Arc<Self>) {
        loop {
            let read = self.kept.lock().read.unwrap_or_else(Instant::now);
            tokio::time::sleep_until(read + KEPT).await;
            let mut kept = self.kept.lock();
            if kept.read.is_none_or(|read| read.elapsed() >= KEPT) {
                *kept = Kept::default();
                return;
            }
            kept.drop_unasked();
        }
    }
}

#[cfg(test)]
mod tests;
