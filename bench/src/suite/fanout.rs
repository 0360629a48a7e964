//! One writer and many watchers: how soon after the answer to a create each of them hears of it.
//!
//! A watcher looks for the name in each line and decodes nothing: all of them share the machine
//! with the server.

use crate::configmaps::{self, name_of};
use crate::idle;
use crate::scratch::Scratch;
use crate::stats::Report;
use crate::wire::{self, Template};
use anyhow::Context;
use coracle_client::Client;
use coracle_client::clock::Clock;
use futures::{StreamExt, TryStreamExt};
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::ListParams;
use kube::client::Body;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval};

const WATCHERS: [usize; 3] = [1, 100, 1_000];
/// Fewer than any API server allows on one connection.
const STREAMS_PER_CONNECTION: usize = 50;
const OPENED_AT_ONCE: usize = 50;
/// So many deliveries in a round, or the fewest creates that tell something.
const DELIVERIES: usize = 50_000;
const CREATES_MIN: usize = 20;
/// A round at a given pace is about so long, if there are enough to create.
const PACED_SECONDS: f64 = 20.0;
/// Creates at a given pace that are not answered yet: it is kept by a server that takes its time
/// for each and takes many.
const CREATES_AT_ONCE: usize = 64;
/// How long a watcher may hear nothing before the rest counts as lost.
const SILENCE_MAX: Duration = Duration::from_secs(30);
const WATCH_SECONDS: usize = 290;
/// Of one line; a ConfigMap has at most 1 MB.
const LINE_BYTES_MAX: usize = 4 << 20;

/// What is done to each number of watchers beside as many creates as are answered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// So many events a second, of all watchers together.
    Events(u32),
    /// So many creates a second, of each of which every watcher hears.
    Creates(u32),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Fanout {
    pub watchers: usize,
    pub creates: usize,
    pub bytes: usize,
    /// From one create to the next; as soon as the one before is answered if nothing is said.
    pub every: Option<Duration>,
}

/// Up to `watchers_max` watchers and `count` creates.
pub fn cases(count: usize, bytes: usize, watchers_max: usize, pace: Pace) -> Vec<Fanout> {
    let numbers = WATCHERS.into_iter().filter(|some| *some <= watchers_max);
    let of_number = |watchers| {
        let unpaced = Fanout {
            watchers,
            creates: (DELIVERIES / watchers).max(CREATES_MIN).min(count),
            bytes,
            every: None,
        };
        let seconds = match pace {
            Pace::Events(events) => watchers as f64 / f64::from(events),
            Pace::Creates(creates) => 1.0 / f64::from(creates),
        };
        let paced = Fanout {
            creates: ((PACED_SECONDS / seconds) as usize).clamp(1, count),
            every: Some(Duration::from_secs_f64(seconds)),
            ..unpaced
        };
        [unpaced, paced]
    };
    numbers.flat_map(of_number).collect()
}

pub fn connections(watchers: usize) -> usize {
    watchers.div_ceil(STREAMS_PER_CONNECTION)
}

impl Fanout {
    pub fn name(&self) -> String {
        let events = format!("events to {} watchers", self.watchers);
        match self.every {
            Some(every) => {
                let rate = self.watchers as f64 / every.as_secs_f64();
                format!("{events} at {rate:.0}/s")
            }
            None => events,
        }
    }

    /// A latency is from the answer to a create until one watcher's event; what was heard before
    /// the answer took no time.
    pub async fn measure(
        &self,
        scratch: &Scratch,
        clients: &[Client],
        round: usize,
    ) -> anyhow::Result<Report> {
        let clock = Clock::system();
        let api: Api<ConfigMap> = Api::namespaced(scratch.client.clone(), &scratch.name);
        let from = api.list(&ListParams::default().limit(1)).await?.metadata;
        let from = from.resource_version.context("a list without a version")?;
        let path = format!(
            "{}?watch=1&resourceVersion={from}&timeoutSeconds={WATCH_SECONDS}",
            configmaps::path_in(&scratch.name)
        );
        let first = round * self.creates;
        let numbers = first..first + self.creates;
        let opened = futures::stream::iter(0..self.watchers)
            .map(|number| open(&clients[number % clients.len()], &path))
            .buffer_unordered(OPENED_AT_ONCE)
            .try_collect::<Vec<_>>();
        let mut watchers = JoinSet::new();
        for stream in opened.await.context("cannot watch")? {
            watchers.spawn(follow(stream.into_body(), numbers.clone()));
        }
        let begun = clock.monotonic();
        let spent = own_processor_time()?;
        let answered = self.create(scratch, numbers).await?;
        let mut latencies = Vec::with_capacity(self.watchers * self.creates);
        let mut last = clock.monotonic();
        while let Some(heard) = watchers.join_next().await {
            for (index, at) in heard.context("a watcher ended early")? {
                latencies.push(at.saturating_duration_since(answered[index]));
                last = last.max(at);
            }
        }
        let spent = own_processor_time()?.saturating_sub(spent);
        let lost = self.watchers * self.creates - latencies.len();
        let report = Report::new(self.name(), latencies, lost, last - begun);
        let note = "ms of the bench's own processor time".to_owned();
        Ok(report.with_notes(vec![(note, spent.as_millis() as u64)]))
    }

    /// When each create was answered.
    async fn create(
        &self,
        scratch: &Scratch,
        numbers: Range<usize>,
    ) -> anyhow::Result<Vec<Instant>> {
        let template = Template::new(configmaps::config_map(scratch, 0, self.bytes))?;
        let path: Arc<str> = configmaps::path_in(&scratch.name).into();
        // What was late is made up for.
        let mut pace = self.every.map(interval);
        let at_once = pace.as_ref().map_or(1, |_| CREATES_AT_ONCE);
        let places = Arc::new(Semaphore::new(at_once));
        let mut creates = JoinSet::new();
        for (index, number) in numbers.enumerate() {
            if let Some(pace) = &mut pace {
                pace.tick().await;
            }
            let place = Arc::clone(&places).acquire_owned().await?;
            let (client, path) = (scratch.client.clone(), Arc::clone(&path));
            let body = template.named(&name_of(number));
            creates.spawn(async move {
                wire::send(&client, Method::POST, &path, wire::JSON, body).await?;
                drop(place);
                Ok::<_, kube::Error>((index, Clock::system().monotonic()))
            });
        }
        let mut answered = vec![None; self.creates];
        while let Some(done) = creates.join_next().await {
            let (index, at) = done.context("a create ended early")??;
            answered[index] = Some(at);
        }
        let answered: Option<Vec<_>> = answered.into_iter().collect();
        answered.context("a create without an answer")
    }
}

fn own_processor_time() -> anyhow::Result<Duration> {
    idle::processor_time(std::process::id())
}

async fn open(client: &Client, path: &str) -> anyhow::Result<Response<Body>> {
    let request = Request::get(path).body(Body::empty())?;
    let answer = client.send(request).await?;
    anyhow::ensure!(answer.status().is_success(), "answered {}", answer.status());
    Ok(answer)
}

/// When each of the numbers was heard, counted from the first; ends with the last of them.
async fn follow<B>(mut body: B, numbers: Range<usize>) -> Vec<(usize, Instant)>
where
    B: BodyExt<Data: AsRef<[u8]>> + Unpin,
{
    let clock = Clock::system();
    let mut begun = Vec::new();
    let mut heard = Vec::with_capacity(numbers.len());
    let mut last = clock.monotonic();
    let mut silence = std::pin::pin!(tokio::time::sleep_until(last + SILENCE_MAX));
    while heard.len() < numbers.len() && begun.len() < LINE_BYTES_MAX {
        let frame = tokio::select! {
            biased;
            frame = body.frame() => frame,
            () = &mut silence => {
                // Set anew only now: a timer for each event would cost as much as the event.
                let end = last + SILENCE_MAX;
                if clock.monotonic() >= end {
                    break;
                }
                silence.as_mut().reset(end);
                continue;
            }
        };
        let Some(Ok(frame)) = frame else { break };
        let Some(data) = frame.data_ref() else {
            continue;
        };
        last = clock.monotonic();
        for part in data.as_ref().split_inclusive(|byte| *byte == b'\n') {
            if !part.ends_with(b"\n") {
                begun.extend_from_slice(part);
                continue;
            }
            let number = if begun.is_empty() {
                named(part)
            } else {
                begun.extend_from_slice(part);
                named(&begun)
            };
            begun.clear();
            let number = number.filter(|number| numbers.contains(number));
            heard.extend(number.map(|number| (number - numbers.start, last)));
        }
    }
    heard
}

/// The number in the name of the object that was added; others add to a namespace too.
fn named(line: &[u8]) -> Option<usize> {
    const BEFORE: &[u8] = b"\"name\":\"";
    let start = name_of(0).len() - 1;
    let at = line.windows(BEFORE.len()).position(|part| part == BEFORE)?;
    let name = &line[at + BEFORE.len()..];
    let end = name.iter().position(|byte| *byte == b'"')?;
    let name = std::str::from_utf8(&name[..end]).ok()?;
    let number: usize = name.get(start..)?.parse().ok()?;
    (name_of(number) == name).then_some(number)
}

#[cfg(test)]
mod tests;
