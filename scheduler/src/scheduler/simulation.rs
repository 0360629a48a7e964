//! Queue, cache and loop in a made-up world: an API in memory whose watches come late, twice, or not
//! at all until the next list, whose answers are slow, refused or lost, and in which pods and nodes
//! come, change and go meanwhile.
//!
//! After every step no pod is forgotten, none is in two places, and queue and cache agree with what
//! was shown; the API itself looks at each binding. At rest all pods that fit somewhere are bound,
//! and nothing is left over. Time is virtual and all chance comes from the seed, so that a seed tells
//! the same story each time. `CORACLE_SCHEDULER_SEEDS=1..2000` runs more of them than each build does.

mod api; // What is true, and how the scheduler is answered.
mod check; // What must hold after every step, and at rest.
mod made; // Pods and nodes.
mod moves; // What happens in the world.
mod watch; // What informers make of what they are shown.

use super::*;
use crate::events::{Nodes, Pods, World};
use crate::framework::Profiles;
use crate::plugins::default_profile;
use crate::queue::Backoff;
use crate::views::Views;
use api::Api;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::jiff::Timestamp;
use rand::SeedableRng;
use std::ops::Range;
use tokio::task::JoinHandle;
use watch::Watch;

/// Few, so that a build stays short.
const SEEDS: Range<u64> = 1..21;
/// How often the world comes to rest, and how much happens before each at most.
const RESTS: usize = 5;
const STEPS: usize = 50;
/// So few that pods wait for a place after their cycle, and are shown on a node meanwhile.
const BINDINGS: usize = 3;
/// Lines of the story that a failure tells.
const STORY_TOLD: usize = 100;

struct Simulation {
    random: StdRng,
    api: Api,
    world: World,
    sink: Pods,
    node_sink: Nodes,
    scheduler: Scheduler,
    pods: Watch<Pod>,
    nodes: Watch<Node>,
    /// Pods made so far.
    made: usize,
    task: JoinHandle<()>,
}

impl Simulation {
    /// Within a runtime whose time is virtual.
    fn new(seed: u64) -> Self {
        let api = Api::new(StdRng::seed_from_u64(seed ^ 0xa91));
        let (client, views) = (api.client(), Views::default());
        let clock = Clock::starting_at(Timestamp::UNIX_EPOCH);
        let profile = default_profile("default-scheduler", &client, &views);
        let profiles = Profiles::new([profile.clone()]);
        let stop = CancellationToken::new();
        let places = Places::of(stop.clone(), BINDINGS);
        let metrics: Arc<Metrics> = Arc::default();
        let counts = metrics.of(&profile);
        let lane = Lane::new(&profile, &client, &views.cache, &places, &clock, counts);
        let world = World {
            queue: Arc::new(Queue::of(profiles.clone(), Backoff::default())),
            views,
            profiles,
        };
        let scheduler = Scheduler {
            metrics,
            clock: clock.clone(),
            lanes: Arc::new(vec![lane]),
            cache: Arc::clone(&world.views.cache),
            queue: Arc::clone(&world.queue),
            places,
            chance: Arc::new(Mutex::new(StdRng::seed_from_u64(seed ^ 0x5c4))),
            stop: stop.clone(),
            tasks: TaskTracker::new(),
        };
        let running = scheduler.clone();
        Self {
            random: StdRng::seed_from_u64(seed),
            api,
            sink: Pods::new(world.clone(), tokio::sync::watch::channel(false).0),
            node_sink: Nodes::new(world.clone(), tokio::sync::watch::channel(false).0),
            world,
            scheduler,
            pods: Watch::default(),
            nodes: Watch::default(),
            made: 0,
            task: tokio::spawn(async move { running.run(&stop).await }),
        }
    }

    /// What went wrong, if anything did.
    async fn run(&mut self) -> Result<(), String> {
        self.begin();
        for _ in 0..RESTS {
            for _ in 0..self.random.random_range(5..STEPS) {
                self.step().await;
                self.check()?;
            }
            self.come_to_rest().await?;
            self.check_at_rest()?;
            self.api.truth().is_calm = false;
        }
        Ok(())
    }
}

/// The story of a seed, and what went wrong in it.
fn told(seed: u64) -> (Vec<String>, Result<(), String>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut simulation = Simulation::new(seed);
        let mut ended = simulation.run().await;
        if simulation.task.is_finished() {
            ended = Err("the scheduler ended".to_owned());
        }
        simulation.task.abort();
        let story = std::mem::take(&mut simulation.api.truth().story);
        (story, ended)
    })
}

#[allow(clippy::disallowed_methods)] // Only tests read it.
fn seeds() -> Range<u64> {
    let Ok(text) = std::env::var("CORACLE_SCHEDULER_SEEDS") else {
        return SEEDS;
    };
    let (from, to) = text.split_once("..").expect("FROM..TO");
    from.parse().expect("a number")..to.parse().expect("a number")
}

#[test]
fn no_pod_is_forgotten_none_bound_twice_and_no_node_over_committed() {
    let mut failed = Vec::new();
    let mut last = String::new();
    let mut counts = std::collections::BTreeMap::<String, usize>::new();
    for seed in seeds() {
        let (story, ended) = told(seed);
        for line in &story {
            let what = line.split_whitespace().nth(1).unwrap_or_default();
            *counts.entry(what.to_owned()).or_default() += 1;
        }
        if let Err(wrong) = ended {
            let from = story.len().saturating_sub(STORY_TOLD);
            last = format!("seed {seed}: {wrong}\n{}", story[from..].join("\n"));
            failed.push(format!("{seed}: {wrong}"));
        }
    }
    assert!(failed.is_empty(), "{last}\n\n{}", failed.join("\n"));
    // A world in which nothing goes wrong says nothing.
    for what in [
        "bound", "lost", "refused", "conflict", "asked", "relist", "again", "expired",
    ] {
        let count = counts.get(what).copied().unwrap_or(0);
        assert!(count > 0, "nothing was {what}: {counts:?}");
    }
}

#[test]
fn a_seed_tells_the_same_story_each_time() {
    assert_eq!(told(7), told(7));
}
