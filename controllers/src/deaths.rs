//! For tests: loops that die. A story is told once without any fault, and then again and again: a
//! loop dies before and after each of its writes in turn, and at its reads (`fake_cluster::Calls`
//! says at which), or again and again, after one to three writes or after any number of calls, or
//! lives on while reads and writes are refused and answers are wrong. Meanwhile what it watches
//! comes late and twice, and its watches break; in half of the steps all of them do, and what they
//! missed is forgotten.
//!
//! After each step everything on the server must be what it was without faults, and at the end
//! the same objects must have been made and deleted, each as often. Some loops have such tests
//! with their own (`ELSEWHERE`); those of workloads die over a whole server, too, in `tests/loops`.
//!
//! `CORACLE_DEATHS_SEEDS=1..20` tells each story with that many seeds, `CORACLE_DEATHS=all` with
//! all deaths in each of its two halves (`Telling::broken`).

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::fake_api::FakeApi;
use crate::fake_cluster::{Calls, FakeCluster, Lives, all_deaths, failure, spawn_lives};
use crate::{Config, LOOPS, Loop};

mod certificates;
mod content;
mod endpoints;
mod identities;
mod nodes;
mod poison;
mod storage;
mod tokens;
mod told; // What is compared.
mod workloads;

use told::{Told, everything};

/// One, so that a build stays short.
const SEEDS: Range<u64> = 1..2;
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Five minutes of them.
const LOOKS_MAX: usize = 600;
/// After each step: what is too much, too, has come by then.
const SETTLED: Duration = Duration::from_secs(30);
const BEAT: Duration = Duration::from_secs(10);

struct Story {
    /// As in `LOOPS`; they live and die together.
    loops: &'static [&'static str],
    config: fn() -> Config,
    steps: &'static [Step],
    /// A story with fewer would show little.
    writes_min: usize,
    /// Which of equal objects has which name, where the server chooses names, is chance.
    names_vary: bool,
    /// What others do every ten seconds.
    beat: Option<fn(&FakeCluster)>,
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
    tokens_that_nobody_uses_are_marked_and_go = tokens::UNUSED;
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
    what_wants_more_is_told_to_wait = storage::GROWN;
    volumes_are_made_once_and_go = storage::LOCAL;
    nodes_have_networks_of_their_own = nodes::NETWORKS;
    nodes_are_told_how_long_copies_are_good = nodes::TIMES;
    lost_nodes_lose_pods = nodes::LOST;
    tainted_devices_lose_pods = nodes::DEVICES;
    pods_are_rolled_out = workloads::ROLLED_OUT;
    replicas_are_counted = workloads::REPLICAS;
    each_node_has_one = workloads::ON_NODES;
    requests_of_nodes_are_approved = certificates::APPROVED;
    approved_requests_are_signed = certificates::SIGNED;
    old_requests_go = certificates::CLEANED;
}

/// Loops whose own tests kill them, in their modules.
const ELSEWHERE: &[&str] = &[
    "statefulset",
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
    let whole = Telling {
        lives: Lives::Two(None),
        seed: 0,
        broken: None,
    };
    let (told, _) = live(story, &whole, &said).await;
    let like_it = async |telling: Telling| {
        let said = format!("{said}, {telling:?}");
        let (again, lived) = live(story, &telling, &said).await;
        let differs = told.differences(again, story.names_vary);
        assert!(differs.is_empty(), "{said}: {}", differs.join("\n"));
        lived
    };
    for seed in seeds() {
        let telling = |lives, half| Telling {
            lives,
            seed,
            broken: Some(half),
        };
        like_it(telling(Lives::Refused, seed % 2)).await;
        assert!(like_it(telling(Lives::Short, seed % 2)).await.deaths > 0);
        for half in [0_u64, 1] {
            let lived = like_it(telling(Lives::Two(None), half)).await;
            let writes = lived.calls.writes();
            assert!(writes >= story.writes_min, "{said}: {writes}");
            like_it(telling(Lives::Chance(lived.calls.count()), half)).await;
            let (mut planned, mut died) = (0, 0);
            let deaths = (0..).zip(lived.calls.deaths(seed));
            // Of the two deaths at a write one is died in each half.
            for (_, death) in deaths.filter(|(number, _)| all_deaths() || number % 2 == half) {
                planned += 1;
                died += like_it(telling(Lives::Two(Some(death)), half)).await.deaths;
            }
            // How many calls there are is chance, to a degree: some deaths never come.
            assert!(died * 2 > planned, "{said}: {died} of {planned}");
        }
    }
}

/// How a story is told.
#[derive(Debug)]
struct Telling {
    lives: Lives,
    seed: u64,
    /// All watches break in every other step, from the first or the second on.
    broken: Option<u64>,
}

struct Lived {
    calls: Calls,
    deaths: usize,
}

async fn live(story: &Story, telling: &Telling, said: &str) -> (Told, Lived) {
    let cluster = FakeCluster::new();
    let api = cluster.api.clone();
    cluster.on_request(move |method, path| answer(&api, method, path));
    let find = |name: &&str| -> &Loop { LOOPS.iter().find(|one| one.name == *name).unwrap() };
    let runs: Vec<_> = story.loops.iter().map(|name| find(name).run).collect();
    let begin = || {
        let config = (story.config)();
        spawn_lives(&cluster, config, runs.clone(), telling.lives, telling.seed)
    };
    let mut told = Told::default();
    let mut living = None;
    let beating = story.beat.map(|beat| {
        let cluster = cluster.clone();
        tokio_util::task::AbortOnDropHandle::new(tokio::spawn(async move {
            loop {
                beat(&cluster);
                tokio::time::sleep(BEAT).await;
            }
        }))
    });
    for (number, step) in (0..).zip(story.steps) {
        let breaks = telling.broken == Some(number % 2);
        if breaks {
            cluster.api.break_watches();
        }
        (step.happens)(&cluster);
        if breaks {
            cluster.api.compact();
        }
        living.get_or_insert_with(begin);
        tokio::time::sleep(step.takes).await;
        let what = format!("{said}: {}", step.what);
        let done = || (step.done)(&cluster);
        let mut looks = 0;
        while !done() {
            looks += 1;
            assert!(looks < LOOKS_MAX, "{what}: {:#?}", everything(&cluster));
            tokio::time::sleep(LOOK_EVERY).await;
        }
        tokio::time::sleep(SETTLED).await;
        assert!(done(), "{what}, and no more: {:#?}", everything(&cluster));
        told.after.push(everything(&cluster));
    }
    drop(beating);
    told.add_history(&cluster);
    let living = living.expect("a story has a step");
    told.unanswered = living.unanswered.load(Ordering::Relaxed);
    let lived = Lived {
        calls: living.calls.clone(),
        deaths: living.deaths.load(Ordering::Relaxed),
    };
    (told, lived)
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
