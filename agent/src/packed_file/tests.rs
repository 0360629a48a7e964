//! How often.

use super::*;

#[test]
fn a_large_file_is_written_less_often() {
    assert_eq!(pause_after(100), PAUSE_MIN);
    assert_eq!(pause_after(100 * 1024), Duration::from_secs(100));
    assert_eq!(pause_after(10 << 20), PAUSE_MAX);
}
