//! What is counted of the scheduler, under upstream's names, labels and buckets.
//!
//! Added to without a lock, but for the times of single plugins, which a tenth of the attempts has:
//! they come together when the cycle is over. How many pods wait where is not counted along: it is
//! looked up in queue and cache when somebody reads.
//! All labels are from fixed lists, or names of profiles and plugins from the configuration.

use crate::cache::Cache;
use crate::framework::Profile;
use crate::laps::{Laps, Stage, Status};
use crate::plugins::dynamic_resources::ClaimsMade;
use crate::queue::Queue;
use coracle_api::exposition::histogram::{Durations, Sizes};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

mod attempt; // One attempt, off its cycle.
mod pod_resources; // What pods ask for.
mod text; // All of it as text.

pub use attempt::Counting;
pub use pod_resources::pod_resources;

/// Of a hundred attempts, so many have the calls of single plugins timed, as upstream's have.
pub const SAMPLED_PERCENT: u32 = 10;
/// Attempts of a pod that are told apart; the last stands for all above it too.
const ATTEMPTS_MAX: usize = 15;

/// Each bound is `factor` times the one before.
const fn exponential<const N: usize>(first: f64, factor: f64) -> [f64; N] {
    let mut bounds = [first; N];
    let mut place = 1;
    while place < N {
        bounds[place] = bounds[place - 1] * factor;
        place += 1;
    }
    bounds
}

static OF_ATTEMPTS: [f64; 15] = exponential(0.001, 2.0);
static OF_POINTS: [f64; 12] = exponential(0.0001, 2.0);
static OF_PLUGINS: [f64; 20] = exponential(0.000_01, 1.5);
static OF_PODS: [f64; 20] = exponential(0.01, 2.0);
static VICTIMS: [f64; 7] = exponential(1.0, 2.0);
static TRIES: [f64; 5] = exponential(1.0, 2.0);

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Scheduled,
    Unschedulable,
    Error,
}

impl Ended {
    const ALL: [Self; 3] = [Self::Scheduled, Self::Unschedulable, Self::Error];

    fn name(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Unschedulable => "unschedulable",
            Self::Error => "error",
        }
    }
}

/// What is counted of the pods of one profile.
#[derive(Debug)]
pub struct OfProfile {
    name: String,
    attempts: [Durations; Ended::ALL.len()],
    points: [[Durations; Status::ALL.len()]; Stage::ALL.len()],
    /// Of each plugin, in the order of the profile: how often it was asked.
    plugins: Vec<Asked>,
}

#[derive(Debug)]
struct Asked {
    name: &'static str,
    /// Of the points at which the plugin takes part.
    times: [Option<AtomicU64>; Stage::COUNTED.len()],
}

impl OfProfile {
    fn new(profile: &Profile) -> Self {
        let plugins = profile.plugins().enumerate();
        let plugins = plugins.map(|(place, plugin)| Asked {
            name: plugin.name(),
            times: Stage::COUNTED.map(|stage| {
                let point = stage.point()?;
                profile.has(point, place).then(AtomicU64::default)
            }),
        });
        Self {
            name: profile.scheduler_name.clone(),
            attempts: Ended::ALL.map(|_| Durations::new(&OF_ATTEMPTS)),
            points: Stage::ALL.map(|_| Status::ALL.map(|_| Durations::new(&OF_POINTS))),
            plugins: plugins.collect(),
        }
    }

    fn point(&self, stage: Stage, status: Status, took: Duration) {
        self.points[stage as usize][status as usize].add(took);
    }
}

type OfPlugins = BTreeMap<(&'static str, Stage, Status), Durations>;

/// Of a process.
pub struct Metrics {
    profiles: Mutex<BTreeMap<String, Arc<OfProfile>>>,
    /// A label of each is a plugin that there is, at a point, with how it ended.
    plugins: Mutex<OfPlugins>,
    algorithm: Durations,
    preemptions: AtomicU64,
    victims: Sizes,
    /// What ends victims, by whether it could.
    evictions: [Durations; 2],
    permit_waits: [Durations; Status::ALL.len()],
    tries: Sizes,
    since_first: [Durations; ATTEMPTS_MAX],
    after_flush: AtomicU64,
    bindings: AtomicU64,
    pub claims_made: Arc<ClaimsMade>,
    world: Mutex<Option<World>>,
}

/// Where to look how many pods there are, for as long as the scheduler runs.
struct World {
    queue: Weak<Queue>,
    cache: Weak<Mutex<Cache>>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            profiles: Mutex::default(),
            plugins: Mutex::default(),
            algorithm: Durations::new(&OF_ATTEMPTS),
            preemptions: AtomicU64::new(0),
            victims: Sizes::new(&VICTIMS),
            evictions: [(), ()].map(|()| Durations::new(&OF_PODS)),
            permit_waits: Status::ALL.map(|_| Durations::new(&OF_ATTEMPTS)),
            tries: Sizes::new(&TRIES),
            since_first: [(); ATTEMPTS_MAX].map(|()| Durations::new(&OF_PODS)),
            after_flush: AtomicU64::new(0),
            bindings: AtomicU64::new(0),
            claims_made: Arc::default(),
            world: Mutex::default(),
        }
    }
}

impl Metrics {
    /// From now on these are looked into.
    pub fn watch(&self, queue: &Arc<Queue>, cache: &Arc<Mutex<Cache>>) {
        *self.world.lock() = Some(World {
            queue: Arc::downgrade(queue),
            cache: Arc::downgrade(cache),
        });
    }

    /// Whether a scheduler runs that has read everything.
    pub fn is_watching(&self) -> bool {
        let world = self.world.lock();
        let queue = world.as_ref().map(|world| world.queue.strong_count());
        queue.is_some_and(|owners| owners > 0)
    }

    /// Where the pods of a profile are counted. A scheduler that begins again goes on counting.
    pub fn of(&self, profile: &Profile) -> Arc<OfProfile> {
        let mut profiles = self.profiles.lock();
        let name = profile.scheduler_name.clone();
        let known = profiles.entry(name);
        Arc::clone(known.or_insert_with(|| Arc::new(OfProfile::new(profile))))
    }

    /// Takes over what a cycle kept.
    fn take(&self, profile: &OfProfile, laps: &mut Laps) {
        for (plugin, asked) in profile.plugins.iter().zip(laps.asked()) {
            for (times, more) in plugin.times.iter().zip(asked) {
                if let Some(times) = times
                    && more > 0
                {
                    times.fetch_add(u64::from(more), Ordering::Relaxed);
                }
            }
        }
        for lap in laps.points() {
            profile.point(lap.stage, lap.status, lap.took);
            let is_preemption = lap.stage == Stage::PostFilter;
            self.preemptions
                .fetch_add(u64::from(is_preemption), Ordering::Relaxed);
        }
        if laps.calls().is_empty() {
            return;
        }
        let mut plugins = self.plugins.lock();
        for call in laps.calls() {
            if let Some(plugin) = profile.plugins.get(call.place) {
                let key = (plugin.name, call.lap.stage, call.lap.status);
                add(&mut plugins, key, call.lap.took);
            }
        }
    }

    /// Victims were asked to go, or could not be.
    pub fn evicted(&self, victims: usize, is_done: bool, took: Duration) {
        self.victims.add(victims as u64);
        self.evictions[usize::from(!is_done)].add(took);
    }

    /// One more binding is under way until what is given back is dropped.
    pub fn binding(self: &Arc<Self>) -> Binding {
        self.bindings.fetch_add(1, Ordering::Relaxed);
        Binding(Arc::clone(self))
    }
}

fn add(plugins: &mut OfPlugins, key: (&'static str, Stage, Status), took: Duration) {
    let times = plugins.entry(key);
    times
        .or_insert_with(|| Durations::new(&OF_PLUGINS))
        .add(took);
}

/// A binding under way.
#[derive(Debug)]
pub struct Binding(Arc<Metrics>);

impl Drop for Binding {
    fn drop(&mut self) {
        self.0.bindings.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
