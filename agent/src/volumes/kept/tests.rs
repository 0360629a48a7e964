//! What is kept of a pod's volumes is found again, and counts for other pods.

use super::{Found, Kept, OfDriver, others_have};

fn kept() -> Kept {
    let driver = OfDriver {
        driver: "d".to_owned(),
        handle: "h".to_owned(),
        ..OfDriver::default()
    };
    let found = Found {
        name: "pv".to_owned(),
        group: Some(7),
        driver: Some(driver),
        ..Found::default()
    };
    Kept([("data".to_owned(), found)].into())
}

#[test]
fn what_was_kept_is_found_again_until_it_is_forgotten() {
    let pods = tempfile::tempdir().unwrap();
    let pod = pods.path().join("u");
    assert_eq!(Kept::load(&pod).unwrap(), Kept::default());
    kept().save(&pod).unwrap();
    let found = Kept::load(&pod).unwrap();
    assert_eq!(found, kept());
    assert_eq!(found.groups().collect::<Vec<_>>(), [7]);
    Kept::forget(&pod).unwrap();
    Kept::forget(&pod).unwrap();
    assert_eq!(Kept::load(&pod).unwrap(), Kept::default());
}

#[test]
fn only_other_pods_count_and_what_cannot_be_read_does() {
    let pods = tempfile::tempdir().unwrap();
    let is_it = |found: &Found| found.name == "pv";
    kept().save(&pods.path().join("u")).unwrap();
    assert!(!others_have(pods.path(), "u", is_it));
    assert!(others_have(pods.path(), "other", is_it));
    assert!(!others_have(pods.path(), "other", |found| found.name == "x"));
    let mut gone = kept();
    gone.let_go();
    gone.save(&pods.path().join("u")).unwrap();
    assert!(!others_have(pods.path(), "other", is_it));
    std::fs::write(pods.path().join("u/claims.json"), "{").unwrap();
    assert!(others_have(pods.path(), "other", |found| found.name == "x"));
}

#[test]
fn a_volume_that_lives_with_its_pod_is_not_the_one_of_the_same_name() {
    let mut kept = kept();
    let found = kept.0.get_mut("data").unwrap();
    assert!(found.is_of("pv") && !found.is_of("other"));
    found.driver.as_mut().unwrap().is_ephemeral = true;
    assert!(!found.is_of("pv"));
    found.driver = None;
    assert!(found.is_of("pv"));
}

#[test]
fn two_volumes_of_a_pod_are_not_at_one_place() {
    let mut kept = kept();
    let mut other = kept.0["data"].clone();
    kept.0.insert("twice".to_owned(), other.clone());
    assert_eq!(kept.collision(), None, "it is the same volume");
    other.driver.as_mut().unwrap().handle = "csi-1".to_owned();
    kept.0.insert("pv".to_owned(), other);
    assert_eq!(kept.collision(), Some("pv"));
}
