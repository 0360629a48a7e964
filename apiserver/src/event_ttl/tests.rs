//! When an Event goes.

use super::*;
use serde_json::json;

const HOUR: Duration = Duration::from_secs(3600);

fn version(key: &str, revision: u64) -> Version {
    Version {
        key: key.into(),
        revision: Revision(revision),
    }
}

fn minutes(count: u64) -> Duration {
    Duration::from_secs(60 * count)
}

#[test]
fn an_hour_after_the_last_write_and_not_after_the_first() {
    let begin = now();
    let mut living = Living::found(HOUR, Vec::new(), begin);
    assert_eq!(living.next(), None);
    living.written(&"default/a".into(), Revision(1), begin);
    living.written(&"default/b".into(), Revision(2), begin + minutes(1));
    living.written(&"default/a".into(), Revision(3), begin + minutes(30));
    assert_eq!(living.next(), Some(begin + HOUR + GATHER_MAX));
    let mut over = |after| {
        let mut all = Vec::new();
        while let Some(version) = living.over(begin + after) {
            all.push(version);
        }
        all
    };
    assert_eq!(over(minutes(59)), []);
    // The first version of `a`, which is not the newest: nothing is deleted for it.
    assert_eq!(
        over(minutes(61)),
        [version("default/a", 1), version("default/b", 2)]
    );
    assert_eq!(over(minutes(89)), []);
    assert_eq!(over(minutes(90)), [version("default/a", 3)]);
}

#[test]
fn what_is_found_at_a_start_has_what_is_left_of_its_hour() {
    let begin = now();
    let ages = vec![
        (version("default/young", 9), minutes(10)),
        (version("default/old", 2), minutes(300)),
        // Of a clock that is behind.
        (version("default/future", 5), Duration::ZERO),
    ];
    let mut living = Living::found(HOUR, ages, begin);
    assert_eq!(living.over(begin), Some(version("default/old", 2)));
    assert_eq!(living.over(begin + minutes(49)), None);
    assert_eq!(
        living.over(begin + minutes(50)),
        Some(version("default/young", 9))
    );
    assert_eq!(living.over(begin + minutes(59)), None);
    assert_eq!(
        living.over(begin + HOUR),
        Some(version("default/future", 5))
    );
}

#[test]
fn what_is_refused_is_tried_again_before_others() {
    let begin = now();
    let mut living = Living::found(HOUR, Vec::new(), begin);
    living.written(&"default/a".into(), Revision(1), begin);
    living.written(&"default/b".into(), Revision(2), begin);
    let first = living.over(begin + HOUR).unwrap();
    living.again(first, begin + HOUR + RETRY);
    assert_eq!(living.over(begin + HOUR), None);
    assert_eq!(
        living.over(begin + HOUR + RETRY),
        Some(version("default/a", 1))
    );
    assert_eq!(
        living.over(begin + HOUR + RETRY),
        Some(version("default/b", 2))
    );
}

#[test]
fn the_latest_time_in_an_event_is_that_of_its_last_write() {
    let last = |event: serde_json::Value| {
        last_written(&Object::from_value(event).unwrap()).map(|at| at.to_string())
    };
    let made = json!({"creationTimestamp": "2026-06-01T00:00:00Z"});
    assert_eq!(
        last(json!({"metadata": made})).as_deref(),
        Some("2026-06-01T00:00:00Z")
    );
    let counted = json!({"metadata": made, "lastTimestamp": "2026-06-01T00:05:00Z"});
    assert_eq!(last(counted).as_deref(), Some("2026-06-01T00:05:00Z"));
    let series = json!({"metadata": made, "lastTimestamp": null,
        "series": {"count": 2, "lastObservedTime": "2026-06-01T00:06:00.000001Z"}});
    assert_eq!(last(series).as_deref(), Some("2026-06-01T00:06:00.000001Z"));
    let labelled = json!({"metadata": {
        "creationTimestamp": "2026-06-01T00:00:00Z",
        "managedFields": [{"time": "2026-06-01T00:01:00Z"}, {"time": "2026-06-01T00:40:00Z"}],
    }});
    assert_eq!(last(labelled).as_deref(), Some("2026-06-01T00:40:00Z"));
    assert_eq!(last(json!({"metadata": {}})), None);
}
