//! Runs a reconcile function over a work queue: several workers, panics caught, failures retried.
//!
//! A reconcile function gets the controller that all passes share and a key, and looks for itself
//! what there is to do. It returns when to look again, or an error, which is logged here once and
//! retried with the queue's backoff.

use std::error::Error;
use std::fmt::{Debug, Display};
use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::ObjectReference;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::ObjectKey;
use crate::events::{self, EventType, Recorder};
use crate::informer::{Informer, Kind};
use crate::patch::PatchError;
use crate::queue::WorkQueue;

mod metrics;

/// Why there is an event of an object whose passes fail again and again.
const FAILING: &str = "FailedReconcile";
/// So many failures in a row: what heals by itself has by then.
const TOLD_AFTER: u32 = 10;
/// Of all objects behind one key.
const TOLD_MAX: usize = 10;

pub use metrics::{Family, LoopStats, families, stats};

/// When to look at a key again if nothing about it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requeue {
    Never,
    After(Duration),
}

impl Requeue {
    /// After the delay at the latest.
    #[must_use]
    pub fn within(self, delay: Duration) -> Self {
        match self {
            Self::After(own) if own < delay => self,
            Self::After(_) | Self::Never => Self::After(delay),
        }
    }
}

/// Looks at one key, with what all passes share.
pub type Pass<C, T, E> = for<'a> fn(&'a C, &'a T) -> BoxFuture<'a, Result<Requeue, E>>;

/// Tells people of a key that fails again and again.
type Tell<T> = Box<dyn Fn(&T, &str) + Send + Sync>;

/// The reconcile function of a loop.
pub struct Reconcile<C, T, E> {
    shared: Arc<C>,
    pass: Pass<C, T, E>,
    tell: Tell<T>,
}

impl<C, T, E> Debug for Reconcile<C, T, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reconcile").finish_non_exhaustive()
    }
}

/// One of which it is still to be said who hears of a key that fails again and again.
pub struct Untold<C, T, E> {
    shared: Arc<C>,
    pass: Pass<C, T, E>,
}

impl<C, T, E> Debug for Untold<C, T, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Untold").finish_non_exhaustive()
    }
}

pub fn with<C, T, E>(shared: Arc<C>, pass: Pass<C, T, E>) -> Untold<C, T, E> {
    Untold { shared, pass }
}

impl<C, T, E> Untold<C, T, E> {
    /// The objects behind such a key get an event that says why.
    pub fn telling_of<O>(
        self,
        recorder: Recorder,
        behind: impl Fn(&T) -> O + Send + Sync + 'static,
    ) -> Reconcile<C, T, E>
    where
        O: IntoIterator<Item = ObjectReference>,
    {
        self.with_tell(Box::new(move |key, error| {
            for about in behind(key).into_iter().take(TOLD_MAX) {
                recorder.event(&about, EventType::Warning, FAILING, error);
            }
        }))
    }

    /// For a pass over many objects, which tells of each by itself.
    pub fn telling_by_itself(self) -> Reconcile<C, T, E> {
        self.with_tell(Box::new(|_, _| {}))
    }

    fn with_tell(self, tell: Tell<T>) -> Reconcile<C, T, E> {
        let Self { shared, pass } = self;
        Reconcile { shared, pass, tell }
    }
}

impl<C, E> Untold<C, ObjectKey, E> {
    /// The object of such a key gets an event that says why.
    pub fn telling<K>(self, objects: Informer<K>, recorder: Recorder) -> Reconcile<C, ObjectKey, E>
    where
        K: Kind,
    {
        self.telling_of(recorder, move |key| {
            objects.get(key).map(|object| events::reference(&*object))
        })
    }
}

/// Runs until `shutdown`; keys being worked on are finished first.
pub async fn run<C, T, E>(
    name: &'static str,
    queue: WorkQueue<T>,
    workers: usize,
    reconcile: Reconcile<C, T, E>,
    shutdown: CancellationToken,
) where
    C: Send + Sync + 'static,
    T: Eq + Hash + Clone + Display + Send + Sync + 'static,
    E: Error + Send + 'static,
{
    let reconcile = Arc::new(reconcile);
    let metrics = metrics::register(name, &queue);
    let mut tasks = JoinSet::new();
    for _ in 0..workers.max(1) {
        let worker = Worker {
            name,
            queue: queue.clone(),
            reconcile: reconcile.clone(),
            metrics: metrics.clone(),
        };
        tasks.spawn(worker.run(shutdown.clone()));
    }
    while tasks.join_next().await.is_some() {}
}

struct Worker<C, T, E> {
    name: &'static str,
    queue: WorkQueue<T>,
    reconcile: Arc<Reconcile<C, T, E>>,
    metrics: Arc<metrics::Totals>,
}

impl<C, T, E> Worker<C, T, E>
where
    C: Send + Sync + 'static,
    T: Eq + Hash + Clone + Display + Send + Sync + 'static,
    E: Error + Send + 'static,
{
    async fn run(self, shutdown: CancellationToken) {
        loop {
            let item = tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                item = self.queue.next() => item,
            };
            // The call itself is inside, so that a panic before the first await is caught too.
            let Reconcile { shared, pass, .. } = &*self.reconcile;
            let call = async { pass(shared, &item).await };
            let outcome = AssertUnwindSafe(call).catch_unwind().await;
            self.settle(&item, outcome);
            self.queue.done(&item);
        }
    }

    fn settle(&self, item: &T, outcome: std::thread::Result<Result<Requeue, E>>) {
        self.metrics.count_run();
        match outcome {
            Ok(Ok(requeue)) => {
                self.queue.forget(item);
                if let Requeue::After(delay) = requeue {
                    self.queue.add_after(item.clone(), delay);
                }
            }
            Ok(Err(error)) => {
                self.metrics.count_error();
                let chain = Chain(&error);
                if is_expected(&error) {
                    tracing::debug!(control_loop = self.name, key = %item, error = %chain, "again");
                } else {
                    tracing::warn!(control_loop = self.name, key = %item, error = %chain, "failed");
                }
                self.tell(item, || chain.to_string());
                self.queue.add_backoff(item.clone());
            }
            Err(panic) => {
                self.metrics.count_panic();
                let text = panic_text(panic.as_ref());
                tracing::error!(control_loop = self.name, key = %item, panic = text, "panicked");
                self.tell(item, || format!("panicked: {text}"));
                self.queue.add_backoff(item.clone());
            }
        }
    }

    /// The tries of a key that fails are seconds apart by then, and soon minutes.
    fn tell(&self, item: &T, error: impl FnOnce() -> String) {
        if self.queue.failures(item) >= TOLD_AFTER {
            (self.reconcile.tell)(item, &error());
        }
    }
}

/// Conflicts are the ordinary sign of a cache that lags: another pass settles them.
fn is_expected(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(status) = status_of(error) {
            return status.is_conflict() || status.is_not_found();
        }
        next = error.source();
    }
    false
}

/// Prints an error with its sources, each said once.
struct Chain<'a>(&'a (dyn Error + 'static));

impl Display for Chain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut said = text_of(self.0);
        f.write_str(&said)?;
        let mut next = self.0.source();
        while let Some(error) = next {
            let text = text_of(error);
            if !text.is_empty() && !said.contains(&text) {
                write!(f, ": {text}")?;
                said = text;
            }
            // What lies below a refusal is the same refusal in other words.
            next = error.source().filter(|_| status_of(error).is_none());
        }
        Ok(())
    }
}

/// A refusal in the server's own words; kube prints the whole status twice.
fn text_of(error: &(dyn Error + 'static)) -> String {
    match status_of(error) {
        Some(status) => status.message.clone(),
        None => error.to_string(),
    }
}

/// What the server said, if it is what the error is about.
fn status_of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a kube::core::Status> {
    if let Some(kube::Error::Api(status)) = error.downcast_ref::<kube::Error>() {
        return Some(status);
    }
    error.downcast_ref::<PatchError>()?.status()
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

#[cfg(test)]
mod tests;
