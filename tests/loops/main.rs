//! The control loops over a real API server, killed and started again and again: whatever moment a
//! kill, a late event or a broken watch comes at, they end where they should, and no pod is made or
//! deleted that would not have been.
//!
//! A seed names a run. `CORACLE_LOOPS_SEEDS=1..200` runs more of them than each build does.

mod custom_owners; // Custom resources that own and are owned.
mod devices; // Pods that want devices of which there are few.
mod faults; // What a client of the loops sees go wrong.
mod measured; // The bench, on this server.
mod preemption; // A site that is full, and who goes for whom.
mod roles; // Loops that seldom write, as themselves.
mod site; // Server, scheduler, nodes, and the loops with their lives.
mod steps; // What is done to a workload, and where it should end.
mod volumes; // The same for claims, volumes, attachments and networks.

use std::ops::Range;

/// Few, so that a build stays short; each takes a few seconds.
const SEEDS: Range<u64> = 1..4;

#[allow(clippy::disallowed_methods)] // Only tests read it.
fn seeds() -> Range<u64> {
    let Ok(text) = std::env::var("CORACLE_LOOPS_SEEDS") else {
        return SEEDS;
    };
    let (from, to) = text.split_once("..").expect("FROM..TO");
    from.parse().expect("a number")..to.parse().expect("a number")
}

#[test]
fn deployments_end_where_they_should() {
    for seed in seeds() {
        steps::run(seed, &steps::deployment());
    }
}

#[test]
fn daemon_sets_end_where_they_should() {
    for seed in seeds() {
        steps::run(seed, &steps::daemon_set());
    }
}

#[test]
fn replication_controllers_end_where_they_should() {
    for seed in seeds() {
        steps::run(seed, &steps::replication_controller());
    }
}

#[test]
fn stateful_sets_end_where_they_should() {
    for seed in seeds() {
        steps::run(seed, &steps::stateful_set());
    }
}

#[test]
fn jobs_end_where_they_should() {
    for seed in seeds() {
        steps::run(seed, &steps::job());
    }
}

#[test]
fn volumes_and_networks_end_where_they_should() {
    for seed in seeds() {
        volumes::run(seed);
    }
}

#[test]
fn who_makes_room_goes_and_nobody_else() {
    for seed in seeds() {
        preemption::run(seed);
    }
}

#[test]
fn devices_are_given_to_one_pod_after_the_other() {
    for seed in seeds() {
        devices::run(seed);
    }
}

#[test]
fn custom_resources_go_with_their_owners_and_not_before() {
    for seed in seeds() {
        custom_owners::run(seed);
    }
}

#[test]
fn loops_that_seldom_write_may_write() {
    roles::run();
}

#[test]
fn each_suite_of_the_bench_does_its_work_and_takes_it_away() {
    measured::run();
}

#[test]
fn the_bench_starts_a_server_and_ends_it() {
    measured::starts();
}
