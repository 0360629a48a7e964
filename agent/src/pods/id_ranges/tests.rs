use super::*;

fn first(ranges: &IdRanges, pods: &Path, uid: &str) -> u32 {
    let range = ranges.of_pod(pods, uid, 0).unwrap();
    assert_eq!(range.count, IDS_PER_POD);
    range.first
}

#[test]
fn each_pod_has_a_range_of_its_own_until_it_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let pods = directory.path();
    let ranges = IdRanges::default();
    assert_eq!(first(&ranges, pods, "a"), 65_536);
    assert_eq!(first(&ranges, pods, "b"), 2 * 65_536);
    // Kept on disk: another agent gives the same answer.
    let later = IdRanges::default();
    assert_eq!(first(&later, pods, "b"), 2 * 65_536);
    fs::remove_dir_all(pods.join("a")).unwrap();
    assert_eq!(first(&later, pods, "c"), 65_536);
    assert_eq!(first(&later, pods, "d"), 3 * 65_536);
    let last = later.of_pod(pods, "e", RANGES_MAX - 1).unwrap().first;
    assert_eq!(last, RANGES_MAX * 65_536);
    // Goes on from the beginning.
    let next = later.of_pod(pods, "f", RANGES_MAX - 1).unwrap().first;
    assert_eq!(next, 4 * 65_536);
}

#[test]
fn no_range_is_given_out_while_one_cannot_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let pods = directory.path();
    fs::write(pods.join("stray"), "").unwrap();
    for kept in [
        "{",
        r#"{"uidMappings":[{"hostId":0,"containerId":0,"length":65536}],
            "gidMappings":[{"hostId":0,"containerId":0,"length":65536}]}"#,
        r#"{"uidMappings":[{"hostId":65536,"containerId":0,"length":65536}],
            "gidMappings":[{"hostId":131072,"containerId":0,"length":65536}]}"#,
    ] {
        fs::create_dir_all(pods.join("odd")).unwrap();
        fs::write(pods.join("odd/userns"), kept).unwrap();
        let refused = IdRanges::default()
            .of_pod(pods, "a", 0)
            .unwrap_err()
            .to_string();
        assert!(refused.starts_with("invalid user namespace"), "{refused}");
    }
}
