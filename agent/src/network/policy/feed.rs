//! What the server tells, into the state. Goes on for ever; what was told last stays when the
//! server is away, and of a policy whose newer specification is none that is known here.

use super::decode;
use super::labels::Labels;
use super::record::Key;
use super::shared::Shared;
use super::state::State;
use super::voice::Voice;
use crate::network::view::key;
use coracle_api::policy_feed::{PATH, Told};
use coracle_client::Client;
use futures::AsyncBufReadExt;
use rand::RngExt;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const RETRY_FIRST: Duration = Duration::from_millis(200);
const RETRY_LONGEST: Duration = Duration::from_secs(10);
/// For the next line of a list.
const LINE_MAX: Duration = Duration::from_secs(30);
/// A server that does not know of this, or does not let this node: it may be another one later.
const REFUSED_PAUSE: Duration = Duration::from_secs(60);

#[derive(Debug, thiserror::Error)]
enum FeedError {
    #[error(transparent)]
    Ask(#[from] kube::Error),
    #[error("cannot make the request")]
    Request(#[from] http::Error),
    #[error("cannot read what the server tells")]
    Read(#[from] std::io::Error),
    #[error("the server said what is not understood")]
    Line(#[from] serde_json::Error),
    #[error("the server ended it")]
    Ended,
    #[error("the server stopped in the middle of a list")]
    Stalled,
}

impl FeedError {
    fn is_refusal(&self) -> bool {
        matches!(self, Self::Ask(kube::Error::Api(status)) if [403, 404, 405].contains(&status.code))
    }
}

/// Until `stop`.
pub async fn follow(shared: Arc<Shared>, client: Client, voice: Voice, stop: CancellationToken) {
    let mut pause = RETRY_FIRST;
    let mut is_told = false;
    loop {
        let mut hearing = Hearing::default();
        let ended = tokio::select! {
            () = stop.cancelled() => return,
            ended = listen(&shared, &client, &mut hearing) => ended,
        };
        shared.set_listing(false);
        if hearing.was_listed {
            (pause, is_told) = (RETRY_FIRST, false);
        }
        let Err(error) = ended;
        let is_refusal = error.is_refusal();
        if is_refusal {
            shared.answered();
        }
        // Of a server that refuses once, whatever came before.
        tell(&error, &voice, is_told);
        is_told |= is_refusal;
        let wait = if is_refusal { REFUSED_PAUSE } else { pause };
        let jitter = rand::rng().random_range(0.5..1.5);
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(wait.mul_f64(jitter)) => {}
        }
        pause = (pause * 2).min(RETRY_LONGEST);
    }
}

fn tell(error: &FeedError, voice: &Voice, is_told: bool) {
    if is_told || !error.is_refusal() {
        let error: &dyn std::error::Error = error;
        tracing::debug!(error, "NetworkPolicies are those known last");
    } else {
        let error = crate::error::chain(error);
        voice.say(&format!(
            "The server tells this node nothing of NetworkPolicies: {error}"
        ));
    }
}

async fn listen(
    shared: &Shared,
    client: &Client,
    hearing: &mut Hearing,
) -> Result<std::convert::Infallible, FeedError> {
    let request = http::Request::get(PATH).body(Vec::new())?;
    let mut lines = std::pin::pin!(client.request_stream(request).await?);
    let mut line = Vec::new();
    loop {
        line.clear();
        let reading = lines.read_until(b'\n', &mut line);
        // Nothing may come for long between changes, but not in the middle of a list.
        let read = match hearing.is_listing() {
            true => tokio::time::timeout(LINE_MAX, reading).await,
            false => Ok(reading.await),
        };
        if read.map_err(|_| FeedError::Stalled)?? == 0 {
            return Err(FeedError::Ended);
        }
        let told: Told = serde_json::from_slice(&line)?;
        shared.hear(|state| hearing.hear(state, told));
    }
}

/// One connection's.
#[derive(Debug, Default)]
pub struct Hearing {
    /// While a list is told: what it has.
    seen: Option<Seen>,
    was_listed: bool,
}

#[derive(Debug, Default)]
struct Seen {
    policies: BTreeSet<Key>,
    namespaces: BTreeSet<Box<str>>,
    pods: BTreeSet<Key>,
}

/// What to make of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Heard {
    /// A list begins: what comes is not whole.
    Begun,
    Listed,
    /// Of a policy.
    Rules {
        is_news: bool,
    },
    /// Of whom policies mean: a pod, or the labels of a namespace.
    Peers {
        is_news: bool,
    },
}

impl Hearing {
    fn is_listing(&self) -> bool {
        self.seen.is_some()
    }

    pub fn hear(&mut self, state: &mut State, told: Told) -> Heard {
        match told {
            Told::Begin => {
                self.seen = Some(Seen::default());
                Heard::Begun
            }
            Told::Listed => {
                if let Some(seen) = self.seen.take() {
                    state.retain(&seen.policies, &seen.namespaces, &seen.pods);
                }
                self.was_listed = true;
                Heard::Listed
            }
            Told::Policy {
                namespace,
                name,
                spec,
            } => {
                let key = key(&namespace, &name);
                if let (Some(seen), true) = (&mut self.seen, spec.is_some()) {
                    seen.policies.insert(key.clone());
                }
                let policy = spec.map(|spec| decode::policy(&namespace, spec));
                let is_news = match policy {
                    Some(Some(policy)) => state.set_policy(&key, Some(policy)),
                    Some(None) => {
                        // What it said before goes on.
                        tracing::warn!(%key, "a NetworkPolicy is not understood");
                        false
                    }
                    None => state.set_policy(&key, None),
                };
                Heard::Rules { is_news }
            }
            Told::Namespace { name, labels } => {
                if let (Some(seen), true) = (&mut self.seen, labels.is_some()) {
                    seen.namespaces.insert(name.as_str().into());
                }
                let labels = labels.as_ref().map(Labels::from);
                let is_news = state.set_namespace(&name, labels);
                Heard::Peers { is_news }
            }
            Told::Pod {
                namespace,
                name,
                pod,
            } => {
                let key = key(&namespace, &name);
                if let (Some(seen), true) = (&mut self.seen, pod.is_some()) {
                    seen.pods.insert(key.clone());
                }
                let pod = pod.as_ref().map(decode::pod);
                let is_news = state.set_pod(&key, pod);
                Heard::Peers { is_news }
            }
        }
    }
}

#[cfg(test)]
mod tests;
