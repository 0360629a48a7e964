//! One writer and many watchers: how soon after the answer to a create each of them hears of it.
//!
//! A watcher looks for the name in each line and decodes nothing: all of them share the machine
//! with the server.

use crate::scratch::Scratch;
use crate::stats::Report;
use crate::{configmaps, configmaps::name_of};
use anyhow::Context;
use coracle_client::Client;
use coracle_client::clock::Clock;
use futures::{StreamExt, TryStreamExt};
use http::{Request, Response};
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ListParams, PostParams};
use kube::client::Body;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval};

const WATCHERS: [usize; 3] = [1, 100, 1_000];
/// Fewer than any API server allows on one connection.
const STREAMS_PER_CONNECTION: usize = 50;
const OPENED_AT_ONCE: usize = 50;
/// So many deliveries in a round, or the fewest creates that tell something.
const DELIVERIES: usize = 50_000;
const CREATES_MIN: usize = 20;
/// A round at a given rate is no longer than this.
const PACED_SECONDS_MAX: usize = 20;
/// How long a watcher may hear nothing before the rest counts as lost.
const SILENCE_MAX: Duration = Duration::from_secs(30);
const WATCH_SECONDS: usize = 290;
/// Of one line; a ConfigMap has at most 1 MB.
const LINE_BYTES_MAX: usize = 4 << 20;

#[derive(Clone, Debug, PartialEq)]
pub struct Fanout {
    pub watchers: usize,
    pub creates: usize,
    pub bytes: usize,
    /// Creates a second; as fast as they are answered if nothing is said.
    pub rate: Option<u32>,
}

/// Up to `watchers_max` watchers and `count` creates.
pub fn cases(count: usize, bytes: usize, watchers_max: usize, rate: Option<u32>) -> Vec<Fanout> {
    let paced = rate.map_or(usize::MAX, |rate| rate as usize * PACED_SECONDS_MAX);
    let numbers = WATCHERS.into_iter().filter(|some| *some <= watchers_max);
    let of_number = |watchers| Fanout {
        watchers,
        creates: (DELIVERIES / watchers)
            .max(CREATES_MIN)
            .min(count)
            .min(paced),
        bytes,
        rate,
    };
    numbers.map(of_number).collect()
}

pub fn connections(watchers: usize) -> usize {
    watchers.div_ceil(STREAMS_PER_CONNECTION)
}

impl Fanout {
    pub fn name(&self) -> String {
        let events = format!("events to {} watchers", self.watchers);
        match self.rate {
            Some(rate) => format!("{events}, {rate} creates/s"),
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
            "/api/v1/namespaces/{}/configmaps?watch=1&resourceVersion={from}\
             &timeoutSeconds={WATCH_SECONDS}",
            scratch.name
        );
        let first = round * self.creates;
        let numbers = first..first + self.creates;
        let opened = futures::stream::iter(0..self.watchers)
            .map(|number| open(&clients[number % clients.len()], &path))
            .buffer_unordered(OPENED_AT_ONCE)
            .try_collect::<Vec<_>>();
        let mut watchers = JoinSet::new();
        for stream in opened.await.context("cannot watch")? {
            watchers.spawn(follow(stream, numbers.clone()));
        }
        let begun = clock.monotonic();
        let mut answered = Vec::with_capacity(self.creates);
        // What was late is made up for.
        let mut pace = self
            .rate
            .map(|rate| interval(Duration::from_secs(1) / rate));
        for number in numbers {
            if let Some(pace) = &mut pace {
                pace.tick().await;
            }
            let object = configmaps::config_map(scratch, number, self.bytes);
            api.create(&PostParams::default(), &object).await?;
            answered.push(clock.monotonic());
        }
        let mut latencies = Vec::with_capacity(self.watchers * self.creates);
        let mut last = clock.monotonic();
        while let Some(heard) = watchers.join_next().await {
            for (index, at) in heard.context("a watcher ended early")? {
                latencies.push(at.saturating_duration_since(answered[index]));
                last = last.max(at);
            }
        }
        let lost = self.watchers * self.creates - latencies.len();
        Ok(Report::new(self.name(), latencies, lost, last - begun))
    }
}

async fn open(client: &Client, path: &str) -> anyhow::Result<Response<Body>> {
    let request = Request::get(path).body(Body::empty())?;
    let answer = client.send(request).await?;
    anyhow::ensure!(answer.status().is_success(), "answered {}", answer.status());
    Ok(answer)
}

/// When each of the numbers was heard, counted from the first; ends with the last of them.
async fn follow(answer: Response<Body>, numbers: std::ops::Range<usize>) -> Vec<(usize, Instant)> {
    let clock = Clock::system();
    let mut body = answer.into_body();
    let mut line = Vec::new();
    let mut heard = Vec::with_capacity(numbers.len());
    while heard.len() < numbers.len() {
        let frame = tokio::time::timeout(SILENCE_MAX, body.frame()).await;
        let Ok(Some(Ok(frame))) = frame else { break };
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let at = clock.monotonic();
        for part in data.split_inclusive(|byte| *byte == b'\n') {
            line.extend_from_slice(part);
            if !part.ends_with(b"\n") {
                continue;
            }
            let number = named(&line).filter(|number| numbers.contains(number));
            heard.extend(number.map(|number| (number - numbers.start, at)));
            line.clear();
        }
        if line.len() > LINE_BYTES_MAX {
            break;
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
