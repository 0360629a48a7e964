//! What is kept of calls and points, under time that stands still unless it is moved.

use super::*;
use k8s_openapi::jiff::Timestamp;

const STEP: Duration = Duration::from_millis(3);

fn laps(is_sampled: bool) -> Laps {
    let mut laps = Laps::new(Clock::starting_at(Timestamp::UNIX_EPOCH));
    laps.begin(2, is_sampled);
    laps
}

fn asked(laps: &Laps, stage: Stage) -> Vec<u32> {
    let rows = laps.asked().into_iter();
    rows.map(|row| row[stage as usize]).collect()
}

fn called(laps: &mut Laps) -> Vec<(usize, Stage, Status)> {
    let calls = laps.calls().iter();
    calls
        .map(|call| (call.place, call.lap.stage, call.lap.status))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn calls_are_counted_always_and_timed_in_a_sample() {
    for is_sampled in [false, true] {
        let mut laps = laps(is_sampled);
        for place in [0, 1, 1] {
            laps.timing()
                .call((Stage::Filter, place), || (), |()| Status::Unschedulable);
        }
        let asked = asked(&laps, Stage::Filter);
        assert_eq!(asked, [1, 2]);
        let timed = if is_sampled { 3 } else { 0 };
        assert_eq!(called(&mut laps).len(), timed);
    }
}

#[tokio::test(start_paused = true)]
async fn who_skips_the_pod_is_timed_and_not_counted() {
    let mut laps = laps(true);
    laps.timing()
        .call((Stage::PreFilter, 1), || (), |()| Status::Skip);
    assert_eq!(asked(&laps, Stage::PreFilter), [0, 0]);
    let all = called(&mut laps);
    assert_eq!(all, [(1, Stage::PreFilter, Status::Skip)]);
}

#[tokio::test(start_paused = true)]
async fn a_large_cluster_has_few_calls_timed_and_all_counted() {
    let mut laps = laps(true);
    for _ in 0..1000 {
        laps.timing()
            .call((Stage::Score, 0), || (), |()| Status::Success);
    }
    assert_eq!(asked(&laps, Stage::Score), [1000, 0]);
    assert_eq!(laps.calls().len(), TIMED_MAX as usize);
}

#[test]
fn a_point_takes_as_long_as_the_clock_says_and_the_next_cycle_begins_with_nothing() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let _inside = runtime.enter();
    let mut laps = laps(false);
    let work = || runtime.block_on(tokio::time::advance(STEP));
    laps.timing()
        .point(Stage::PreScore, work, |()| Status::Success);
    let all: Vec<_> = laps
        .points()
        .iter()
        .map(|lap| (lap.stage, lap.took))
        .collect();
    assert_eq!(all, [(Stage::PreScore, STEP)]);
    laps.begin(1, true);
    assert!(laps.points().is_empty() && laps.calls().is_empty());
    assert_eq!(laps.asked().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn filters_are_counted_by_how_far_each_node_came() {
    let mut laps = laps(false);
    laps.timing().filters([1, 0].into_iter());
    for so_many in [2, 1, 1, 0] {
        laps.timing().filtered(so_many);
    }
    laps.timing().called((Stage::Score, 0), 7);
    assert_eq!(asked(&laps, Stage::Filter), [1, 3]);
    assert_eq!(asked(&laps, Stage::Score), [7, 0]);
    laps.begin(2, false);
    assert_eq!(asked(&laps, Stage::Filter), [0, 0]);
}
