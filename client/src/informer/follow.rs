//! Lists and watches a kind for ever, and hands over what comes.
//!
//! An informer stands on it; who keeps less than whole objects uses it directly. Guarantees: a
//! list is told as `Init`, its objects, `InitDone`, and is whole then; what was known before and
//! is not in it is gone. After a failure it goes on from the last revision known, or lists again
//! when that is gone.

use std::pin::pin;
use std::time::Duration;

use futures::StreamExt;
use kube::Api;
use kube::runtime::watcher;
pub use kube::runtime::watcher::Event;
use rand::RngExt;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::lean::Lean;
use super::{Filter, Kind, ListScope, pace};
use crate::Client;

/// The first wait after a failure: short, so that a restarted server is found at once.
const BACKOFF_MIN: Duration = Duration::from_millis(250);
/// The longest wait, as upstream's reflector has it.
const BACKOFF_MAX: Duration = Duration::from_secs(30);
/// Objects of one page of a list: bounds the memory of a list of any size. Small, as an
/// EndpointSlice alone may be tens of kilobytes, and who follows is short of memory.
const PAGE_SIZE: u32 = 100;

/// What is told of events. Must be quick and must not block.
pub trait Sink<K> {
    fn apply(&mut self, event: Event<K>);

    /// The periodic second chance, for who asked for it.
    fn resync(&mut self) {}
}

impl<K, F: FnMut(Event<K>)> Sink<K> for F {
    fn apply(&mut self, event: Event<K>) {
        self(event);
    }
}

/// Runs until `shutdown`.
pub async fn follow<K: Kind>(
    client: Client,
    filter: Filter,
    mut sink: impl Sink<K>,
    shutdown: CancellationToken,
) where
    K::Scope: ListScope<K>,
{
    let api = <K::Scope as ListScope<K>>::api(pace::paced(client), filter.namespace.as_deref());
    let paging = Paging {
        page_size: PAGE_SIZE,
        resync_period: None,
    };
    follow_api(api, filter, paging, &mut sink, shutdown).await;
}

pub(super) struct Paging {
    pub page_size: u32,
    pub resync_period: Option<Duration>,
}

pub(super) async fn follow_api<K: Kind>(
    api: Api<Lean<K>>,
    filter: Filter,
    paging: Paging,
    sink: &mut impl Sink<K>,
    shutdown: CancellationToken,
) {
    let resync_period = paging.resync_period;
    let mut config = watcher::Config::default().page_size(paging.page_size);
    config.field_selector = filter.fields;
    config.label_selector = filter.labels;
    let work = async {
        let mut failures = 0;
        loop {
            // Left only when the watch cannot be resumed: the next round lists from scratch.
            watch(sink, &api, &config, resync_period, &mut failures).await;
        }
    };
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = work => {}
    }
}

async fn watch<K: Kind>(
    sink: &mut impl Sink<K>,
    api: &Api<Lean<K>>,
    config: &watcher::Config,
    resync_period: Option<Duration>,
    failures: &mut u32,
) {
    let mut events = pin!(watcher::watcher(api.clone(), config.clone()));
    let next_resync = || resync_period.map(|period| Instant::now() + jittered(period));
    let mut resync_at = next_resync();
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            () = reached(resync_at) => {
                sink.resync();
                resync_at = next_resync();
                continue;
            }
        };
        match event {
            Some(Ok(event)) => {
                // A list that begins proves nothing yet; what arrives does.
                if !matches!(event, Event::Init) {
                    *failures = 0;
                }
                sink.apply(whole(event));
            }
            Some(Err(error)) => {
                let delay = backoff(*failures);
                log_failure::<K>(&error, *failures, delay);
                *failures = failures.saturating_add(1);
                tokio::time::sleep(delay).await;
                if is_expired(&error) {
                    return;
                }
            }
            None => return,
        }
    }
}

fn whole<K>(event: Event<Lean<K>>) -> Event<K> {
    match event {
        Event::Apply(Lean(object)) => Event::Apply(object),
        Event::Delete(Lean(object)) => Event::Delete(object),
        Event::Init => Event::Init,
        Event::InitApply(Lean(object)) => Event::InitApply(object),
        Event::InitDone => Event::InitDone,
    }
}

async fn reached(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// An outage is told once, then at a level for those who look for it.
fn log_failure<K: Kind>(error: &watcher::Error, failures: u32, delay: Duration) {
    let kind = K::kind(&());
    let retry_ms = delay.as_millis() as u64;
    if failures == 2 && !is_expired(error) {
        tracing::warn!(%kind, error = %error, retry_ms, "cannot list or watch");
    } else {
        tracing::debug!(%kind, error = %error, retry_ms, "list or watch interrupted");
    }
}

/// The revision to resume from is gone, and asking again for it would fail forever.
fn is_expired(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => status.code == 410,
        _ => false,
    }
}

fn backoff(failures: u32) -> Duration {
    let factor = 1_u32.checked_shl(failures).unwrap_or(u32::MAX);
    jittered(BACKOFF_MIN.saturating_mul(factor).min(BACKOFF_MAX))
}

/// Between the duration and twice it, so that clients of a restarted server do not march in step.
fn jittered(duration: Duration) -> Duration {
    duration.mul_f64(rand::rng().random_range(1.0..2.0))
}
