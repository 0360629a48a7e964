//! One state of the filters serves for all nodes that are tried.

use super::*;
use crate::framework::{Filters, PreFilter, Refusal, Slot};
use crate::plugins::inter_pod_affinity::InterPodAffinity;
use crate::plugins::pod_topology_spread::PodTopologySpread;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Keeps something in its slot, and counts how often that is copied.
#[derive(Debug, Default)]
struct Copies(Arc<AtomicUsize>);

#[derive(Debug)]
struct Kept(Arc<AtomicUsize>);

impl Clone for Kept {
    fn clone(&self) -> Self {
        self.0.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(&self.0))
    }
}

impl Plugin for Copies {
    fn name(&self) -> &'static str {
        "Copies"
    }

    fn points(&self) -> Points {
        Points {
            pre_filter: true,
            ..Points::FILTER
        }
    }

    fn pre_filter(&self, _pod: &PodInfo, _world: &Snapshot, slot: &mut Slot) -> PreFilter {
        slot.set(Kept(Arc::clone(&self.0)));
        PreFilter::Filter
    }
}

/// What plugins keep may be as large as the cluster: a copy for each node would cost its square.
#[test]
fn what_filters_keep_is_copied_once_however_many_nodes_are_tried() {
    let copies = Arc::new(AtomicUsize::new(0));
    let plugins: Vec<SharedPlugin> = vec![
        Arc::new(Copies(Arc::clone(&copies))),
        Arc::new(NodeResourcesFit::default()),
        Arc::new(DefaultPreemption::default()),
    ];
    let plugins = plugins.into_iter().map(|plugin| (plugin, 1)).collect();
    let profile = Profile::new("default-scheduler", plugins);
    let mut cache = Cache::default();
    for place in 0..50 {
        let (name, on) = (format!("n{place}"), format!("on=n{place}"));
        cache.set_node(&Arc::new(from(node(&name, &["cpu=2"]))));
        cache.set_pod(info(&format!("p{place}"), &[&on, "cpu=2"]));
        let nominated = format!("nominated={name}");
        cache.set_nominated(&info(
            &format!("w{place}"),
            &[&nominated, "cpu=1", "priority=9"],
        ));
    }
    let mut snapshot = Snapshot::default();
    cache.update(&mut snapshot);
    let pod = info("new", &["cpu=1", "priority=9"]);
    let outcome = cycle::run(&profile, &snapshot, &pod, &mut Rotation::default(), |_| 0);
    let Outcome::NoFit(diagnosis) = outcome else {
        panic!("it fits");
    };
    assert!(diagnosis.remedy().preemption.is_some());
    assert_eq!(copies.load(Ordering::Relaxed), 1);
}

/// What one node's try leaves behind would change what is said of the next.
#[test]
fn a_state_that_served_for_other_nodes_says_the_same_as_a_fresh_one() {
    let views = crate::views::Views::default();
    let plugins: Vec<SharedPlugin> = vec![
        Arc::new(NodePorts),
        Arc::new(NodeResourcesFit::default()),
        Arc::new(PodTopologySpread::new(views.owners)),
        Arc::new(InterPodAffinity::new(views.namespaces, Default::default())),
    ];
    let plugins = plugins.into_iter().map(|plugin| (plugin, 1)).collect();
    let profile = Profile::new("default-scheduler", plugins);
    let mut with_victims = 0;
    for seed in 0..60 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut cache = Cache::default();
        for place in 0..5 {
            cache.set_node(&Arc::new(from(node(&format!("n{place}"), &["cpu=5"]))));
        }
        for number in 0..20 {
            let on = format!("on=n{}", random.random_range(0..5));
            let priority = format!("priority={}", random.random_range(0..6));
            let app = format!("app={}", random.random_range(0..3));
            let apart = format!("apart={}", random.random_range(0..9));
            cache.set_pod(info(
                &format!("p{number}"),
                &[&on, &priority, "cpu=1", &app, &apart],
            ));
        }
        let nominated = format!("nominated=n{}", random.random_range(0..5));
        cache.set_nominated(&info(
            "w",
            &[&nominated, "cpu=1", "priority=9", "app=1", "apart=2"],
        ));
        let mut snapshot = Snapshot::default();
        cache.update(&mut snapshot);
        let pod = info(
            "new",
            &["cpu=2", "priority=4", "app=1", "spread=1", "apart=2"],
        );
        let filters = Filters::new(&profile, &snapshot, &pod);
        let begun = filters.begin().unwrap();
        let mut shared = begun.state.clone();
        for node in &snapshot.nodes {
            let uids = |found: Result<Victims, Refusal>| match found {
                Ok(victims) => Ok(victims.pods.iter().map(|pod| pod.uid.clone()).collect()),
                Err(refusal) => Err(refusal.verdict),
            };
            let fresh: Result<Vec<_>, _> =
                uids(victims::select(filters, &mut begun.state.clone(), node));
            let again = uids(victims::select(filters, &mut shared, node));
            assert_eq!(again, fresh, "seed {seed}, {}", node.name);
            with_victims += usize::from(fresh.is_ok());
        }
    }
    assert!(with_victims > 50, "only {with_victims} nodes had victims");
}
