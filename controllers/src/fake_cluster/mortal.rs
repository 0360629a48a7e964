//! A client of a process that dies: it is cut off for ever at one of its requests.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use coracle_client::Client;
use http::Request;
use kube::client::Body;
use tokio_util::sync::CancellationToken;

use super::FakeCluster;

/// Where a process dies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Death {
    /// After so many requests.
    pub(crate) after: usize,
    /// Whether the next one still gets through. Its answer does not come back.
    pub(crate) last_arrives: bool,
}

impl Death {
    /// Two for each of so many requests.
    pub(crate) fn at_any_of(requests: usize) -> impl Iterator<Item = Self> {
        let death = |after, last_arrives| Self {
            after,
            last_arrives,
        };
        (0..requests).flat_map(move |after| [death(after, false), death(after, true)])
    }
}

impl FakeCluster {
    /// The token is cancelled when it is dead. Watches that it has go on, which tell nobody.
    pub(crate) fn mortal_client(&self, death: Death) -> (Client, CancellationToken) {
        let (inner, sent) = (self.client(), Arc::new(AtomicUsize::new(0)));
        let dead = CancellationToken::new();
        let dies = dead.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let (inner, dies) = (inner.clone(), dies.clone());
            let number = sent.fetch_add(1, Ordering::Relaxed);
            async move {
                let mut answer = None;
                if number < death.after || (number == death.after && death.last_arrives) {
                    answer = Some(inner.send(request).await.expect("the fake answers"));
                }
                match answer.filter(|_| number < death.after) {
                    Some(answer) => Ok::<_, Infallible>(answer),
                    None => {
                        dies.cancel();
                        std::future::pending().await
                    }
                }
            }
        });
        (Client::new(service, "default"), dead)
    }
}
