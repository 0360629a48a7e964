//! Which files a rotation leaves.

use super::{rotated, set_aside};
use crate::LogBounds;
use jiff::Timestamp;

const BOUNDS: LogBounds = LogBounds {
    bytes_max: 1,
    files_max: 5,
};

#[test]
fn the_oldest_go_first() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("0.log");
    let other = scratch.path().join("10.log");
    std::fs::write(&other, "").unwrap();
    for second in 0..8 {
        std::fs::write(&path, second.to_string()).unwrap();
        set_aside(&path, BOUNDS, Timestamp::from_second(second).unwrap()).unwrap();
        assert!(!path.exists());
    }
    let mut left = rotated(&path).unwrap();
    left.sort();
    // The one that is written to comes on top.
    assert_eq!(left.len(), BOUNDS.files_max - 1);
    assert_eq!(std::fs::read_to_string(&left[0]).unwrap(), "4");
    assert!(left[3].ends_with("0.log.19700101-000007"));
    assert!(other.exists());
}
