//! Rates, and where there is none.

use super::*;

const NEAR: Duration = Duration::from_secs(60);

fn point(at_ms: i64, cpu_ms: u64) -> Point {
    Point {
        at_ms,
        started_ms: None,
        cpu_ns: cpu_ms * NANO_A_MILLI,
        memory_bytes: 1,
    }
}

/// A node whose one pod has these containers.
fn batch(node: Point, containers: &[(&str, Option<Point>)]) -> Batch {
    let each = containers
        .iter()
        .map(|(name, point)| ((*name).to_owned(), *point));
    Batch {
        node: Some(node),
        pods: BTreeMap::from([(("ns".to_owned(), "p".to_owned()), each.collect())]),
    }
}

/// Milli cores and milliseconds.
fn shown(used: Option<Used>) -> Option<(u64, u64)> {
    let used = used?;
    Some((
        used.cpu_nano_cores / NANO_A_MILLI,
        used.window_ns / NANO_A_MILLI,
    ))
}

fn containers(samples: &Samples) -> Option<Vec<(u64, u64)>> {
    let each = samples.pod("ns", "p")?.into_iter();
    each.map(|(_, used)| shown(Some(used))).collect()
}

#[test]
fn two_counts_make_a_rate() {
    let (mut samples, now) = (Samples::default(), Instant::now());
    assert!(!samples.add(
        batch(point(1_000, 0), &[("a", Some(point(1_000, 5)))]),
        now,
        NEAR
    ));
    assert_eq!(samples.node(), None);
    assert_eq!(containers(&samples), None);
    let next = batch(point(3_000, 500), &[("a", Some(point(2_000, 505)))]);
    assert!(samples.add(next, now + NEAR, NEAR));
    assert_eq!(shown(samples.node()), Some((250, 2_000)));
    assert_eq!(containers(&samples), Some(vec![(500, 1_000)]));
    assert_eq!(samples.pod("ns", "other"), None);
}

#[test]
fn what_is_old_is_compared_with_nothing() {
    let (mut samples, now) = (Samples::default(), Instant::now());
    samples.add(batch(point(1_000, 0), &[]), now, NEAR);
    let late = now + NEAR + Duration::from_millis(1);
    assert!(!samples.add(batch(point(90_000, 9), &[]), late, NEAR));
    assert_eq!(samples.node(), None);
}

#[test]
fn the_same_count_again_leaves_the_rate() {
    let (mut samples, now) = (Samples::default(), Instant::now());
    for at in [1_000, 2_000, 2_000] {
        samples.add(batch(point(at, at.unsigned_abs()), &[]), now, NEAR);
    }
    assert_eq!(shown(samples.node()), Some((1_000, 1_000)));
}

#[test]
fn a_container_that_began_anew_is_not_compared_with_the_one_before() {
    let (mut samples, now) = (Samples::default(), Instant::now());
    samples.add(
        batch(point(0, 0), &[("a", Some(point(1_000, 900)))]),
        now,
        NEAR,
    );
    let again = Point {
        started_ms: Some(1_500),
        ..point(2_000, 950)
    };
    samples.add(batch(point(1, 0), &[("a", Some(again))]), now, NEAR);
    assert_eq!(containers(&samples), None);
    // Its counts fell, whatever it says of its start.
    samples.add(
        batch(point(2, 0), &[("a", Some(point(3_000, 10)))]),
        now,
        NEAR,
    );
    assert_eq!(containers(&samples), None);
}

#[test]
fn one_that_began_a_while_ago_had_used_nothing_then() {
    let begun = |ago_ms: i64| {
        let mut samples = Samples::default();
        let one = Point {
            started_ms: Some(100_000 - ago_ms),
            ..point(100_000, 3_000)
        };
        samples.add(
            batch(point(0, 0), &[("a", Some(one))]),
            Instant::now(),
            NEAR,
        );
        containers(&samples)
    };
    assert_eq!(begun(12_000), Some(vec![(250, 12_000)]));
    assert_eq!(begun(BEGUN_MS_MIN - 1), None);
    assert_eq!(begun(60_000), None, "that is no rate of now");
}

#[test]
fn a_pod_is_known_with_all_of_its_containers() {
    let (mut samples, now) = (Samples::default(), Instant::now());
    let both = |at_ms, b| batch(point(at_ms, 0), &[("a", Some(point(at_ms, 0))), ("b", b)]);
    samples.add(both(1_000, None), now, NEAR);
    samples.add(both(2_000, Some(point(2_000, 0))), now, NEAR);
    assert_eq!(containers(&samples), None);
    samples.add(both(3_000, Some(point(3_000, 0))), now, NEAR);
    assert_eq!(containers(&samples), Some(vec![(0, 1_000); 2]));
    samples.add(batch(point(4_000, 0), &[]), now, NEAR);
    assert_eq!(containers(&samples), Some(Vec::new()));
}
