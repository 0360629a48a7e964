//! The loop: next pod, newest snapshot, one cycle, then binding on its own.

use crate::binding::{self, Place, Places};
use crate::cache::{Cache, Snapshot};
use crate::cycle::{self, Diagnosis, Outcome, Rotation};
use crate::framework::{Nomination, Profile, WorldChange};
use crate::pod_info::{DEFAULT_SCHEDULER, PodInfo};
use crate::preemption::Evictor;
use crate::queue::{Attempt, Queue};
use crate::report::Reporter;
use crate::watched::{Watched, watch};
use coracle_client::Client;
use coracle_client::clock::{Clock, Instant};
use coracle_client::events::Recorder;
use futures::FutureExt;
use parking_lot::Mutex;
use rand::RngExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How often assumed pods are checked for confirmations that never came.
const EXPIRE_EVERY: Duration = Duration::from_secs(30);

#[derive(Clone, Debug)]
pub struct Config {
    /// Only pods of this `spec.schedulerName` are taken.
    pub scheduler_name: String,
    pub clock: Clock,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            scheduler_name: DEFAULT_SCHEDULER.to_owned(),
            clock: Clock::system(),
        }
    }
}

/// Runs until `stop`; bindings under way are finished first, but for those that wait for others.
pub async fn run(config: Config, client: Client, stop: CancellationToken) {
    let name = &config.scheduler_name;
    let Some(watched) = watch(name, &client, &stop).await else {
        return;
    };
    let Watched { profile, world, .. } = &watched;
    let recorder = Recorder::with_clock(
        client.clone(),
        &config.scheduler_name,
        "",
        config.clock.clone(),
    );
    let places = Places::new(stop.clone());
    let evictor = Evictor {
        client: client.clone(),
        recorder: recorder.clone(),
        clock: config.clock.clone(),
        cache: Arc::clone(&world.views.cache),
        places: places.clone(),
    };
    let scheduler = Scheduler {
        profile: profile.clone(),
        evictor,
        cache: Arc::clone(&world.views.cache),
        queue: Arc::clone(&world.queue),
        reporter: Reporter::new(client, recorder, config.clock),
        places,
        stop: stop.clone(),
        tasks: TaskTracker::new(),
    };
    scheduler.run(&stop).await;
    scheduler.tasks.close();
    scheduler.tasks.wait().await;
}

#[derive(Clone, Debug)]
struct Scheduler {
    profile: Profile,
    cache: Arc<Mutex<Cache>>,
    queue: Arc<Queue>,
    reporter: Reporter,
    evictor: Evictor,
    places: Places,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Scheduler {
    async fn run(&self, stop: &CancellationToken) {
        let mut snapshot = Snapshot::default();
        let mut rotation = Rotation::default();
        let mut expire = tokio::time::interval(EXPIRE_EVERY);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                _ = expire.tick() => self.expire(),
                attempt = self.queue.next() => {
                    self.attempt(attempt, &mut snapshot, &mut rotation).await;
                }
            }
        }
    }

    /// A pod whose binding was answered but never shown is looked at afresh.
    fn expire(&self) {
        let now = Instant::now();
        for pod in self.cache.lock().expire(now) {
            tracing::warn!(pod = %pod.key, "the binding was never confirmed: trying again");
            self.queue.set(pod, now);
        }
    }

    async fn attempt(&self, attempt: Attempt, snapshot: &mut Snapshot, rotation: &mut Rotation) {
        self.cache.lock().update(snapshot);
        let decide = AssertUnwindSafe(|| {
            let pick = |count: usize| rand::rng().random_range(0..count);
            cycle::run(&self.profile, snapshot, &attempt.pod, rotation, pick)
        });
        let Ok(outcome) = std::panic::catch_unwind(decide) else {
            tracing::error!(pod = %attempt.pod.key, "a plugin panicked: trying again later");
            return self.queue.retry(&attempt, Instant::now());
        };
        let mut place = self.places.take().await;
        let this = self.clone();
        match outcome {
            Outcome::Node(node) => {
                place.begin(&attempt.pod);
                self.cache.lock().assume(Arc::clone(&attempt.pod), &node);
                self.tasks.spawn(async move {
                    this.bind(attempt, &node, &mut place).await;
                });
            }
            Outcome::NoFit(diagnosis) => {
                let nominated = self.nominate(&attempt.pod, &diagnosis.remedy().nomination);
                let message = diagnosis.message(&attempt.pod);
                tracing::debug!(pod = %attempt.pod.key, message, "no node fits");
                if diagnosis.remedy().preemption.is_none() {
                    let plugins = diagnosis.plugins();
                    self.queue.unschedulable(&attempt, plugins, Instant::now());
                }
                self.tasks.spawn(async move {
                    let pod = &attempt.pod;
                    let nominated = nominated.as_deref();
                    this.reporter
                        .failed(pod, "Unschedulable", message, nominated)
                        .await;
                    this.preempt(&attempt, &diagnosis).await;
                    drop(place);
                });
            }
        }
    }

    /// The pod is in flight until all that is to make room for it were asked to go: no attempt
    /// finds the same victims once more, and no change meanwhile is lost.
    async fn preempt(&self, attempt: &Attempt, diagnosis: &Diagnosis) {
        let Some(preemption) = &diagnosis.remedy().preemption else {
            return;
        };
        match self.evictor.evict(&attempt.pod, preemption).await {
            Ok(()) => {
                let plugins = diagnosis.plugins();
                self.queue.unschedulable(attempt, plugins, Instant::now());
            }
            Err(error) => {
                let pod = &attempt.pod.key;
                tracing::warn!(%pod, error = chain(&error), "preemption failed");
                self.queue.retry(attempt, Instant::now());
            }
        }
    }

    /// Counts the pod on the node that it was promised, ahead of the API. Gives back what the API
    /// must be told, if anything.
    fn nominate(&self, pod: &Arc<PodInfo>, nomination: &Nomination) -> Option<Arc<str>> {
        let node = match nomination {
            Nomination::Keep => return None,
            Nomination::Clear => None,
            Nomination::Node(node) => Some(&**node),
        };
        let is_news = self.cache.lock().nominate(pod, node);
        // Deleted meanwhile: nobody else would forget it.
        if !self.queue.is_known(&pod.uid) {
            self.cache.lock().forget_nominated(&pod.uid);
            return None;
        }
        is_news.then(|| node.unwrap_or_default().into())
    }

    async fn bind(&self, attempt: Attempt, node: &str, place: &mut Place) {
        let pod: &PodInfo = &attempt.pod;
        let steps = AssertUnwindSafe(binding::bind(&self.profile, pod, node, place)).catch_unwind();
        let failure = match steps.await {
            Ok(Ok(())) => {
                self.cache.lock().finish_binding(&pod.uid, Instant::now());
                self.queue.done(&pod.uid);
                self.reporter.scheduled(pod, node);
                return;
            }
            Ok(Err(error)) => chain(&error),
            Err(_) => "a plugin panicked".to_owned(),
        };
        self.cache.lock().forget(&pod.uid);
        let nominated = self.nominate(&attempt.pod, &Nomination::Clear);
        let now = Instant::now();
        self.queue.retry(&attempt, now);
        // Others may have its room meanwhile.
        let gone = WorldChange::PodGone(Arc::clone(&attempt.pod));
        self.queue.world_changed(gone, now);
        if self.stop.is_cancelled() {
            tracing::info!(pod = %pod.key, node, failure, "not bound: left to the next start");
            return;
        }
        tracing::warn!(pod = %pod.key, node, failure, "not bound");
        self.reporter
            .failed(pod, "SchedulerError", failure, nominated.as_deref())
            .await;
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text.push_str(&format!(": {source}"));
        next = source.source();
    }
    text
}

#[cfg(test)]
mod tests;
