//! Our scheduler held against upstream's: the same random worlds, one API server, both decisions.
//!
//! `decisions` asks ours for every filter, score, message and victim of a pod, and then lets
//! upstream's place it. `placements` has ours place pod after pod, each after upstream's said where
//! it may go. What differs is told with the seed of its world, and ends the test.
//!
//! `CORACLE_KUBE_SCHEDULER=PATH` names the binary of upstream's, without which nothing is tried;
//! `CORACLE_DIFFERENTIAL_SEEDS=1..200` how many worlds are.

mod compare; // What must be the same, pure.
mod decisions;
mod placements;
mod site; // API server, upstream's scheduler, ours.
mod tally;
mod upstream; // What its log says.
mod world; // Random worlds, pure.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Mutex;

/// Few, so that a build which has the binary stays short.
const SEEDS: Range<u64> = 1..21;

/// Two pairs of schedulers at a time would only wait for each other.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

#[allow(clippy::disallowed_methods)] // Tests are configured by the command that runs them.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[allow(clippy::print_stderr)] // For whoever runs the tests.
fn kube_scheduler() -> Option<PathBuf> {
    let path = variable("CORACLE_KUBE_SCHEDULER").map(PathBuf::from);
    if path.is_none() {
        eprintln!("skipped: CORACLE_KUBE_SCHEDULER names no kube-scheduler to compare with");
    }
    path
}

fn seeds() -> Range<u64> {
    let Some(text) = variable("CORACLE_DIFFERENTIAL_SEEDS") else {
        return SEEDS;
    };
    let (from, to) = text.split_once("..").expect("FROM..TO");
    from.parse().expect("a number")..to.parse().expect("a number")
}

#[test]
fn decisions_are_upstreams() {
    let Some(upstream) = kube_scheduler() else {
        return;
    };
    let _alone = ONE_AT_A_TIME.lock();
    decisions::run(&upstream, seeds()).must_be_alike();
}

#[test]
fn placements_are_what_upstream_accepts() {
    let Some(upstream) = kube_scheduler() else {
        return;
    };
    let _alone = ONE_AT_A_TIME.lock();
    placements::run(&upstream, seeds()).must_be_alike();
}
