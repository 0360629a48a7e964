use super::set;
use std::fs;

const CLOSE_WAIT: &str = "nf_conntrack_tcp_timeout_close_wait";
const ESTABLISHED: &str = "nf_conntrack_tcp_timeout_established";

#[test]
fn what_the_kernel_begins_with_is_changed_and_what_somebody_set_is_not() {
    let scratch = tempfile::tempdir().unwrap();
    let read = |name: &str| fs::read_to_string(scratch.path().join(name)).unwrap();
    let write = |name: &str, text: &str| fs::write(scratch.path().join(name), text).unwrap();
    // A kernel that keeps no connections.
    set(scratch.path());
    write(CLOSE_WAIT, "60\n");
    write(ESTABLISHED, "7200\n");
    for _ in 0..2 {
        set(scratch.path());
        assert_eq!(
            (read(CLOSE_WAIT).trim(), read(ESTABLISHED).trim()),
            ("3600", "7200")
        );
    }
    write(ESTABLISHED, "432000\n");
    set(scratch.path());
    assert_eq!(read(ESTABLISHED).trim(), "86400");
}
