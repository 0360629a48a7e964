//! The tail of a log as a termination message.

use super::from_log;

#[test]
fn lines_lose_their_stamps_and_parts_are_joined() {
    let log = "half of a stamp\n\
               2026-01-02T03:04:05.000000001Z stdout P one \n\
               2026-01-02T03:04:05.000000002Z stdout F line\n\
               2026-01-02T03:04:05.000000003Z stderr F oh no: it broke\n";
    assert_eq!(from_log(log), "stamp\none line\noh no: it broke\n");
}

#[test]
fn no_end_is_added_to_what_was_written_without_one() {
    assert_eq!(from_log("2026-01-02T03:04:05Z stdout P DONE\n"), "DONE");
}

#[test]
fn only_the_end_is_kept() {
    let line = format!("2026-01-02T03:04:05Z stdout F {}\n", "x".repeat(99));
    let message = from_log(&line.repeat(60));
    assert_eq!(message.len(), 2048);
}
