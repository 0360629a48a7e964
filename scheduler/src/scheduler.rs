//! The loop: next pod, newest snapshot, one cycle, then binding on its own.

use crate::binding::{self, Place, Places, chain};
use crate::cache::{Cache, Snapshot};
use crate::configuration::Configuration;
use crate::cycle::{self, Diagnosis, Outcome, Rotation};
use crate::events::World;
use crate::framework::{Filters, Nomination, Profile, StepError, WorldChange};
use crate::laps::Laps;
use crate::metrics::{Counting, Ended, Metrics, OfProfile, SAMPLED_PERCENT};
use crate::plugins::dynamic_resources;
use crate::pod_info::PodInfo;
use crate::preemption::Evictor;
use crate::queue::{Attempt, Queue};
use crate::report::Reporter;
use crate::views::Views;
use crate::watched::watch;
use coracle_client::Client;
use coracle_client::clock::{Clock, Instant};
use coracle_client::events::Recorder;
use futures::FutureExt;
use parking_lot::Mutex;
use rand::RngExt;
use rand::rngs::StdRng;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The condition's reason where plugins refuse the pod.
const UNSCHEDULABLE: &str = "Unschedulable";
/// Where something went wrong.
const SCHEDULER_ERROR: &str = "SchedulerError";
/// How often assumed pods are checked for confirmations that never came.
const EXPIRE_EVERY: Duration = Duration::from_secs(30);

#[derive(Clone, Debug)]
pub struct Config {
    /// Only pods whose `spec.schedulerName` has a profile are taken.
    pub configuration: Configuration,
    pub clock: Clock,
    /// What is counted; goes on where the scheduler begins again.
    pub metrics: Arc<Metrics>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            configuration: Configuration::default(),
            clock: Clock::system(),
            metrics: Arc::default(),
        }
    }
}

/// Runs until `stop`; bindings under way are finished first, but for those that wait for others.
pub async fn run(config: Config, client: Client, stop: CancellationToken) {
    let Configuration {
        profiles, backoff, ..
    } = &config.configuration;
    let seen = Views {
        claims_made: Arc::clone(&config.metrics.claims_made),
        ..Views::default()
    };
    let Some(watched) = watch(profiles, *backoff, seen, &client, &stop).await else {
        return;
    };
    let World {
        views,
        queue,
        profiles,
    } = &watched.world;
    let cache = &views.cache;
    let places = Places::new(stop.clone());
    let metrics = &config.metrics;
    metrics.watch(queue, cache);
    let lane = |profile: &Profile| {
        let counts = metrics.of(profile);
        Lane::new(profile, &client, cache, &places, &config.clock, counts)
    };
    let scheduler = Scheduler {
        lanes: Arc::new(profiles.each().map(lane).collect()),
        cache: Arc::clone(cache),
        queue: Arc::clone(queue),
        places,
        chance: Arc::new(Mutex::new(rand::make_rng())),
        metrics: Arc::clone(metrics),
        clock: config.clock.clone(),
        stop: stop.clone(),
        tasks: TaskTracker::new(),
    };
    scheduler.run(&stop).await;
    scheduler.tasks.close();
    scheduler.tasks.wait().await;
}

/// What the pods of one profile have of their own.
#[derive(Clone, Debug)]
struct Lane {
    profile: Profile,
    reporter: Reporter,
    evictor: Evictor,
    counts: Arc<OfProfile>,
}

impl Lane {
    fn new(
        profile: &Profile,
        client: &Client,
        cache: &Arc<Mutex<Cache>>,
        places: &Places,
        clock: &Clock,
        counts: Arc<OfProfile>,
    ) -> Self {
        let name = &profile.scheduler_name;
        let recorder = Recorder::with_clock(client.clone(), name, "", clock.clone());
        Self {
            profile: profile.clone(),
            counts,
            evictor: Evictor {
                client: client.clone(),
                recorder: recorder.clone(),
                clock: clock.clone(),
                cache: Arc::clone(cache),
                places: places.clone(),
            },
            reporter: Reporter::new(client.clone(), recorder, clock.clone()),
        }
    }
}

impl Lane {
    /// Frees the devices that a plugin wants freed, or the claim itself; what becomes of it wakes the
    /// pod.
    async fn release(&self, diagnosis: &Diagnosis) {
        let Some(release) = &diagnosis.remedy().release else {
            return;
        };
        if let Err(error) = dynamic_resources::release(&self.evictor.client, release).await {
            let claim = coracle_client::key_of(&**release.claim());
            tracing::warn!(%claim, error = chain(&error), "the devices were not freed");
        }
    }
}

#[derive(Clone, Debug)]
struct Scheduler {
    /// One for each profile.
    lanes: Arc<Vec<Lane>>,
    cache: Arc<Mutex<Cache>>,
    queue: Arc<Queue>,
    places: Places,
    /// Chooses among nodes that are as good.
    chance: Arc<Mutex<StdRng>>,
    metrics: Arc<Metrics>,
    clock: Clock,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Scheduler {
    async fn run(&self, stop: &CancellationToken) {
        let mut snapshot = Snapshot::default();
        let mut rotation = Rotation::default();
        let mut laps = Laps::new(self.clock.clone());
        let mut expire = tokio::time::interval(EXPIRE_EVERY);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                _ = expire.tick() => self.expire(),
                attempt = self.queue.next() => {
                    self.attempt(attempt, &mut snapshot, &mut rotation, &mut laps).await;
                }
            }
        }
    }

    /// A pod whose binding was answered but never shown is looked at afresh.
    fn expire(&self) {
        let now = Instant::now();
        for pod in self.cache.lock().expire(now) {
            tracing::warn!(pod = %pod.key, "the binding was never confirmed: trying again");
            if !pod.is_deleting {
                self.queue.set(Arc::clone(&pod), now);
            }
            self.gave_up_its_node(&pod, now);
        }
    }

    /// Others may have the room that was kept for the pod.
    fn gave_up_its_node(&self, pod: &Arc<PodInfo>, now: Instant) {
        let gone = WorldChange::PodGone(Arc::clone(pod));
        self.queue.world_changed(gone, now);
    }

    async fn attempt(
        &self,
        attempt: Attempt,
        snapshot: &mut Snapshot,
        rotation: &mut Rotation,
        laps: &mut Laps,
    ) {
        let Some(lane) = self.lane(&attempt.pod) else {
            // Of another scheduler by now.
            return self.queue.done(&attempt.pod.uid);
        };
        // It may have been shown on a node since it was queued.
        if self.cache.lock().contains(&attempt.pod.uid) {
            return self.queue.done(&attempt.pod.uid);
        }
        self.cache.lock().update(snapshot);
        let (counting, outcome) = self.decide(lane, &attempt.pod, (snapshot, rotation, laps));
        let Some(outcome) = outcome else {
            counting.ended(Ended::Error, Instant::now());
            tracing::error!(pod = %attempt.pod.key, "a plugin panicked: trying again later");
            return self.queue.retry(&attempt, Instant::now());
        };
        let mut place = self.places.take().await;
        let this = self.clone();
        match outcome {
            Outcome::Node(node) => {
                place.begin(&attempt.pod);
                place.count_in(counting);
                let pod = &attempt.pod;
                let assumed = self.cache.lock().assume(Arc::clone(pod), &node);
                let Some(settled) = assumed else {
                    return self.queue.done(&pod.uid);
                };
                if settled.gave_up {
                    self.gave_up_its_node(pod, Instant::now());
                }
                let reserved = binding::reserve(&lane.profile, pod, &node, &place);
                self.tasks.spawn(async move {
                    this.bind(attempt, &node, &mut place, reserved).await;
                });
            }
            Outcome::Failed(why) => {
                counting.ended(Ended::Error, Instant::now());
                self.undecided(attempt, why, place);
            }
            Outcome::NoFit(diagnosis) => {
                counting.ended(Ended::Unschedulable, Instant::now());
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
                    if let Some(lane) = this.lane(pod) {
                        let reporter = &lane.reporter;
                        reporter
                            .failed(pod, UNSCHEDULABLE, message, nominated)
                            .await;
                        lane.release(&diagnosis).await;
                        this.preempt(&lane.evictor, &attempt, &diagnosis).await;
                    }
                    drop(place);
                });
            }
        }
    }

    /// No plugin knows which change could help: the pod is tried again after its delay.
    fn undecided(&self, attempt: Attempt, why: String, place: Place) {
        tracing::warn!(pod = %attempt.pod.key, why, "no node was chosen");
        let nominated = self.nominate(&attempt.pod, &Nomination::Clear);
        self.queue.retry(&attempt, Instant::now());
        let this = self.clone();
        self.tasks.spawn(async move {
            let pod = &attempt.pod;
            if let Some(lane) = this.lane(pod) {
                let nominated = nominated.as_deref();
                lane.reporter
                    .failed(pod, SCHEDULER_ERROR, why, nominated)
                    .await;
            }
            drop(place);
        });
    }

    /// One cycle, and where its attempt is counted; no outcome where a plugin panicked.
    fn decide(
        &self,
        lane: &Lane,
        pod: &PodInfo,
        (snapshot, rotation, laps): (&Snapshot, &mut Rotation, &mut Laps),
    ) -> (Counting, Option<Outcome>) {
        // Some attempts have single plugins timed; what is decided does not hang on that chance.
        let is_sampled = rand::rng().random_range(0..100) < SAMPLED_PERCENT;
        laps.begin(lane.profile.plugins().count(), is_sampled);
        let counting = Counting::new(&self.metrics, &lane.counts, Instant::now(), is_sampled);
        let cycle = AssertUnwindSafe(|| {
            let pick = |count: usize| self.chance.lock().random_range(0..count);
            let filters = Filters {
                timing: laps.timing(),
                ..Filters::new(&lane.profile, snapshot, pod)
            };
            cycle::decide(filters, rotation, pick)
        });
        let outcome = std::panic::catch_unwind(cycle).ok();
        counting.decided(laps, Instant::now());
        (counting, outcome)
    }

    /// The pod is in flight until all that is to make room for it were asked to go: no attempt
    /// finds the same victims once more, and no change meanwhile is lost.
    async fn preempt(&self, evictor: &Evictor, attempt: &Attempt, diagnosis: &Diagnosis) {
        let Some(preemption) = &diagnosis.remedy().preemption else {
            return;
        };
        let (since, victims) = (Instant::now(), preemption.victims.len());
        let evicted = evictor.evict(&attempt.pod, preemption).await;
        self.metrics
            .evicted(victims, evicted.is_ok(), since.elapsed());
        match evicted {
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
        let settled = self.cache.lock().nominate(pod, node);
        if settled.gave_up {
            self.gave_up_its_node(pod, Instant::now());
        }
        // Deleted meanwhile: nobody else would forget it.
        if !self.queue.is_known(&pod.uid) {
            if self.cache.lock().forget_nominated(&pod.uid) {
                self.gave_up_its_node(pod, Instant::now());
            }
            return None;
        }
        settled.is_news.then(|| node.unwrap_or_default().into())
    }

    fn lane(&self, pod: &PodInfo) -> Option<&Lane> {
        let name = pod.scheduler_name();
        let mut lanes = self.lanes.iter();
        lanes.find(|lane| lane.profile.scheduler_name == name)
    }

    async fn bind(
        &self,
        attempt: Attempt,
        node: &str,
        place: &mut Place,
        reserved: Result<(), StepError>,
    ) {
        let pod: &PodInfo = &attempt.pod;
        let Some(lane) = self.lane(pod) else {
            return;
        };
        let _binding = self.metrics.binding();
        let steps = AssertUnwindSafe(binding::bind(&lane.profile, pod, node, place, reserved))
            .catch_unwind();
        let (failure, is_refusal) = match steps.await {
            Ok(Ok(())) => {
                self.cache.lock().finish_binding(&pod.uid, Instant::now());
                self.queue.done(&pod.uid);
                place.counted(|counting| counting.scheduled(&attempt, Instant::now()));
                lane.reporter.scheduled(pod, node);
                return;
            }
            Ok(Err(error)) => (error.told(), error.is_refusal()),
            Err(_) => ("a plugin panicked".to_owned(), false),
        };
        let (ended, reason) = match is_refusal {
            true => (Ended::Unschedulable, UNSCHEDULABLE),
            false => (Ended::Error, SCHEDULER_ERROR),
        };
        place.counted(|counting| counting.ended(ended, Instant::now()));
        self.cache.lock().forget(&pod.uid);
        let nominated = self.nominate(&attempt.pod, &Nomination::Clear);
        let now = Instant::now();
        self.queue.retry(&attempt, now);
        self.gave_up_its_node(&attempt.pod, now);
        if self.stop.is_cancelled() {
            tracing::info!(pod = %pod.key, node, failure, "not bound: left to the next start");
            return;
        }
        tracing::warn!(pod = %pod.key, node, failure, "not bound");
        lane.reporter
            .failed(pod, reason, failure, nominated.as_deref())
            .await;
    }
}

#[cfg(test)]
mod simulation; // Queue, cache and loop in a made-up world where much goes wrong.
#[cfg(test)]
mod tests;
