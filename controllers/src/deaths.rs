//! For tests: loops that die. A story is told once without any fault, and then again and again: a
//! loop dies before and after each of its writes in turn, or again and again after one to three of them, or lives on
//! while writes are refused and answers are wrong. Meanwhile what it watches comes late and twice,
//! and in half of the steps its watches break and what they missed is forgotten.
//!
//! After each step everything on the server must be what it was without faults, and at the end
//! the same objects must have been made and deleted, each as often. Loops of workloads, claims,
//! volumes and networks have such tests with their own (`ELSEWHERE`).
//!
//! `CORACLE_DEATHS_SEEDS=1..20` tells each story with that many seeds.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::fake_api::{FakeApi, eventually};
use crate::fake_cluster::{Death, FakeCluster, Lives, failure, spawn_lives};
use crate::{Config, LOOPS, Loop};

mod certificates;
mod content;
mod endpoints;
mod identities;
mod nodes;
mod storage;
mod told; // What is compared.

use told::{Told, everything};

/// One, so that a build stays short.
const SEEDS: Range<u64> = 1..2;
/// Far more than any story needs.
const WRITES_MAX: usize = 100;
/// After each step: what is too much, too, has come by then.
const SETTLED: Duration = Duration::from_secs(30);
const BEAT: Duration = Duration::from_secs(10);

struct Story {
    /// As in `LOOPS`; they live and die together.
    loops: &'static [&'static str],
    config: fn() -> Config,
    steps: &'static [Step],
    /// A story with fewer deaths would show little.
    deaths_min: usize,
    /// What others do every ten seconds.
    beat: fn(&FakeCluster),
}

/// The loops begin after what happens in the first.
struct Step {
    what: &'static str,
    happens: fn(&FakeCluster),
    /// Before it can be done.
    takes: Duration,
    done: fn(&FakeCluster) -> bool,
}

const AT_ONCE: Duration = Duration::ZERO;

fn nothing(_: &FakeCluster) {}

macro_rules! stories {
    ($($name:ident = $story:path;)*) => {
        static STORIES: &[&Story] = &[$(&$story),*];
        $(
            #[tokio::test(start_paused = true)]
            async fn $name() {
                tell(&$story).await;
            }
        )*
    };
}

stories! {
    accounts_are_made_once = identities::ACCOUNTS;
    the_authority_is_published_once = identities::AUTHORITY;
    tokens_are_written_and_go_with_their_accounts = identities::TOKENS;
    roles_are_gathered = identities::ROLES;
    policies_are_looked_at = identities::POLICIES;
    tokens_that_are_over_go = identities::CLEANER;
    tokens_sign = identities::SIGNER;
    namespaces_are_emptied_and_go = content::NAMESPACES;
    dependents_go_and_nothing_else = content::GARBAGE;
    quotas_count_what_is_there = content::QUOTAS;
    jobs_go_when_their_time_is_over = content::TTL;
    pods_that_nobody_deletes_go = content::PODS;
    endpoints_follow_pods = endpoints::ENDPOINTS;
    slices_follow_pods = endpoints::SLICES;
    slices_mirror_endpoints = endpoints::MIRRORED;
    services_have_addresses_of_nodes = endpoints::BALANCED;
    what_is_in_use_stays = storage::PROTECTED;
    volumes_are_made_once_and_go = storage::LOCAL;
    nodes_have_networks_of_their_own = nodes::NETWORKS;
    lost_nodes_lose_pods = nodes::LOST;
    requests_of_nodes_are_approved = certificates::APPROVED;
    approved_requests_are_signed = certificates::SIGNED;
    old_requests_go = certificates::CLEANED;
}

/// Loops whose own tests kill them.
const ELSEWHERE: &[&str] = &[
    // Over a whole server, in `tests/loops`.
    "deployment",
    "replicaset",
    "replicationcontroller",
    "daemonset",
    "statefulset",
    // In the tests of their modules.
    "job",
    "cronjob",
    "disruption",
    "horizontalpodautoscaler",
    "persistentvolume-binder",
    "ephemeral-volume",
    "persistentvolume-attach-detach",
    "service-cidr-controller",
    "resourceclaim-controller",
];

#[test]
fn every_loop_is_told_of_once() {
    let here = STORIES.iter().flat_map(|story| story.loops).copied();
    let mut dying: Vec<&str> = here.chain(ELSEWHERE.iter().copied()).collect();
    let mut all: Vec<&str> = LOOPS.iter().map(|one| one.name).collect();
    dying.sort_unstable();
    all.sort_unstable();
    assert_eq!(dying, all);
}

async fn tell(story: &Story) {
    let said = format!("{:?}", story.loops);
    let (told, _) = live(story, Lives::Two(None), None, &said).await;
    for seed in seeds() {
        let like_it = async |lives: Lives| {
            let said = format!("{said}, seed {seed}, {lives:?}");
            let (again, deaths) = live(story, lives, Some(seed), &said).await;
            let differs = told.differences(again);
            assert!(differs.is_empty(), "{said}: {}", differs.join("\n"));
            deaths
        };
        like_it(Lives::Two(None)).await;
        like_it(Lives::Refused).await;
        let deaths = like_it(Lives::Short).await;
        assert!(deaths > 0, "{said}");
        for last_arrives in [false, true] {
            let mut after = 0;
            let death = |after| Death {
                after,
                last_arrives,
            };
            while like_it(Lives::Two(Some(death(after)))).await > 0 {
                after += 1;
                assert!(after < WRITES_MAX, "{said}: it writes without end");
            }
            assert!(after >= story.deaths_min, "{said}: {after}");
        }
    }
}

/// What was told, and the number of deaths. Without a seed no watch breaks.
async fn live(story: &Story, lives: Lives, seed: Option<u64>, said: &str) -> (Told, usize) {
    let cluster = FakeCluster::new();
    let api = cluster.api.clone();
    cluster.on_request(move |method, path| answer(&api, method, path));
    let find = |name: &&str| -> &Loop { LOOPS.iter().find(|one| one.name == *name).unwrap() };
    let runs: Vec<_> = story.loops.iter().map(|name| find(name).run).collect();
    let mut told = Told::default();
    let mut living = None;
    let beating = {
        let (cluster, beat) = (cluster.clone(), story.beat);
        async move {
            loop {
                beat(&cluster);
                tokio::time::sleep(BEAT).await;
            }
        }
    };
    let beating = tokio_util::task::AbortOnDropHandle::new(tokio::spawn(beating));
    for (number, step) in (0..).zip(story.steps) {
        let breaks = seed.is_some_and(|seed| (seed + number + writes(&lives)) % 2 == 1);
        if breaks {
            cluster.api.break_watches();
        }
        (step.happens)(&cluster);
        if breaks {
            cluster.api.compact();
        }
        living.get_or_insert_with(|| {
            let config = (story.config)();
            spawn_lives(&cluster, config, runs.clone(), lives, seed.unwrap_or(0))
        });
        tokio::time::sleep(step.takes).await;
        let what = format!("{said}: {}", step.what);
        let done = || (step.done)(&cluster);
        let waited = eventually(&what, done);
        let waited = std::panic::AssertUnwindSafe(waited);
        let waited = futures::FutureExt::catch_unwind(waited).await;
        assert!(waited.is_ok(), "{what}: {:#?}", everything(&cluster));
        tokio::time::sleep(SETTLED).await;
        assert!(done(), "{what}, and no more: {:#?}", everything(&cluster));
        told.after.push(everything(&cluster));
    }
    drop(beating);
    if let Some(living) = &living {
        told.unanswered = living.unanswered.load(Ordering::Relaxed);
    }
    told.add_history(&cluster);
    let deaths = living.map_or(0, |one| one.deaths.load(Ordering::Relaxed));
    (told, deaths)
}

/// What the server in memory does not do by itself.
fn answer(api: &FakeApi, method: &Method, path: &str) -> Option<(u16, Value)> {
    if path.ends_with("/subjectaccessreviews") {
        return Some((201, json!({"status": {"allowed": true}})));
    }
    if path.contains("/proxy/localvolumes/") {
        return Some((200, json!({})));
    }
    // Nothing comes into a namespace that goes or is gone.
    let (_, of) = path.split_once("/namespaces/")?;
    let (namespace, _) = of.split_once('/')?;
    let knows_namespaces = !api.objects("/api/v1/namespaces").is_empty();
    if *method != Method::POST || !knows_namespaces || path.contains("/events") {
        return None;
    }
    match api.get(&format!("/api/v1/namespaces/{namespace}")) {
        None => Some((404, failure(404, "NotFound"))),
        Some(known) if known["metadata"]["deletionTimestamp"].is_null() => None,
        Some(_) => {
            let mut status = failure(403, "Forbidden");
            status["details"] = json!({"causes": [{"reason": "NamespaceTerminating"}]});
            Some((403, status))
        }
    }
}

/// So that each step has whole watches in one life and broken ones in another.
fn writes(lives: &Lives) -> u64 {
    match lives {
        Lives::Two(Some(death)) => death.after as u64,
        _ => 0,
    }
}

#[allow(clippy::disallowed_methods)] // Only tests read it.
fn seeds() -> Range<u64> {
    let Ok(text) = std::env::var("CORACLE_DEATHS_SEEDS") else {
        return SEEDS;
    };
    let (from, to) = text.split_once("..").expect("FROM..TO");
    from.parse().expect("a number")..to.parse().expect("a number")
}

fn there(cluster: &FakeCluster, path: &str) -> bool {
    cluster.api.get(path).is_some()
}

/// What stands at a JSON pointer of the object, null where there is none.
fn at(cluster: &FakeCluster, path: &str, pointer: &str) -> Value {
    let object = cluster.api.get(path).unwrap_or_default();
    object.pointer(pointer).cloned().unwrap_or_default()
}

/// Merges a change into an object that is there.
fn change(cluster: &FakeCluster, path: &str, change: &Value) {
    let mut object = cluster.api.get(path).expect("is there");
    crate::fake_api::merge(&mut object, change);
    cluster.api.put(path, object);
}

/// With the finalizer that every namespace has.
fn put_namespace(cluster: &FakeCluster, name: &str) {
    let namespace = json!({"metadata": {}, "spec": {"finalizers": ["kubernetes"]}});
    cluster
        .api
        .put(&format!("/api/v1/namespaces/{name}"), namespace);
}
