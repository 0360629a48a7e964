//! Time is paused, so that expiry is exact.

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::*;

fn object(uid: &str, version: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some("web".to_owned()),
            namespace: Some("default".to_owned()),
            uid: Some(uid.to_owned()),
            resource_version: Some(version.to_owned()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}

fn refusal(code: u16, reason: &str) -> kube::Error {
    kube::Error::Api(Box::new(kube::core::Status {
        code,
        reason: reason.to_owned(),
        ..kube::core::Status::default()
    }))
}

#[tokio::test(start_paused = true)]
async fn a_copy_is_behind_until_it_shows_what_was_written() {
    let writes = OwnWrites::new();
    assert_eq!(
        writes.behind(&object("a", "7")),
        None,
        "nothing was written"
    );
    writes.wrote(&object("a", "10"));
    assert_eq!(writes.behind(&object("a", "9")), Some(BELIEVED_FOR));
    assert_eq!(writes.behind(&object("a", "10")), None);
}

#[tokio::test(start_paused = true)]
async fn what_somebody_else_wrote_since_counts_as_seen() {
    let writes = OwnWrites::new();
    writes.wrote(&object("a", "99"));
    assert_eq!(writes.behind(&object("a", "100")), None);
}

#[tokio::test(start_paused = true)]
async fn a_successor_of_the_same_name_is_not_waited_for() {
    let writes = OwnWrites::new();
    writes.wrote(&object("a", "10"));
    assert_eq!(writes.behind(&object("b", "3")), None);
    writes.wrote(&object("b", "10"));
    writes.forget(&ObjectKey::new("default", "web"));
    assert_eq!(writes.behind(&object("b", "3")), None);
}

#[tokio::test(start_paused = true)]
async fn a_state_that_a_conflict_was_about_is_over() {
    let writes = OwnWrites::new();
    writes.ended(&object("a", "10"), &Err(refusal(409, "Conflict")));
    assert_eq!(writes.behind(&object("a", "10")), Some(BELIEVED_FOR));
    assert_eq!(writes.behind(&object("a", "11")), None);
}

#[tokio::test(start_paused = true)]
async fn what_failed_otherwise_is_tried_again_as_it_is() {
    let writes = OwnWrites::new();
    writes.ended(&object("a", "10"), &Err(refusal(500, "InternalError")));
    writes.ended(&object("a", "10"), &Err(refusal(409, "AlreadyExists")));
    assert_eq!(writes.behind(&object("a", "10")), None);
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_never_shows_it_is_worked_with_in_the_end() {
    let writes = OwnWrites::new();
    writes.wrote(&object("a", "10"));
    tokio::time::advance(BELIEVED_FOR - Duration::from_secs(1)).await;
    assert_eq!(
        writes.behind(&object("a", "9")),
        Some(Duration::from_secs(1))
    );
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(writes.behind(&object("a", "9")), None);
}

#[tokio::test(start_paused = true)]
async fn the_first_count_goes_at_once_and_the_next_after_a_pause() {
    let (writes, key) = (OwnWrites::new(), ObjectKey::new("default", "web"));
    assert_eq!(
        (writes.pause(&key), writes.gather(&key)),
        (None, Duration::ZERO)
    );
    writes.wrote(&object("a", "10"));
    assert_eq!(writes.pause(&key), Some(PAUSE));
    assert_eq!(writes.gather(&key), GATHERED_FOR);
    tokio::time::advance(PAUSE - Duration::from_millis(1)).await;
    assert_eq!(writes.pause(&key), Some(Duration::from_millis(1)));
    tokio::time::advance(Duration::from_millis(1)).await;
    assert_eq!(
        (writes.pause(&key), writes.gather(&key)),
        (None, Duration::ZERO)
    );
}

#[tokio::test(start_paused = true)]
async fn versions_that_are_no_numbers_are_not_compared() {
    let writes = OwnWrites::new();
    writes.wrote(&object("a", "x10"));
    assert_eq!(writes.behind(&object("a", "x9")), None);
    writes.wrote(&object("a", "10"));
    assert_eq!(writes.behind(&object("a", "x9")), None);
}

#[tokio::test(start_paused = true)]
async fn notes_of_what_is_gone_do_not_pile_up() {
    let writes = OwnWrites::new();
    for number in 0..NOTES_MAX {
        let mut one = object("a", "10");
        one.metadata.name = Some(format!("web-{number}"));
        writes.wrote(&one);
    }
    tokio::time::advance(BELIEVED_FOR).await;
    writes.wrote(&object("a", "10"));
    assert_eq!(writes.by_key.lock().len(), 1);
}
