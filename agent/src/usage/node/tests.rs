//! Numbers from texts.

use super::*;

const MEMINFO: &str = "MemTotal: 1000 kB\nMemFree: 300 kB\nMemAvailable: 900 kB\n\
                       Inactive(anon): 1 kB\nInactive(file): 200 kB\n";

#[test]
fn the_working_set_leaves_out_what_is_cached_and_idle() {
    let memory = memory_of(MEMINFO, None).unwrap();
    assert_eq!(memory.working_set_bytes, 500 * 1024);
    assert_eq!(memory.available_bytes(), 500 * 1024);
    let memory = memory_of(MEMINFO, Some((400 * 1024, 100 * 1024))).unwrap();
    assert_eq!(memory.available_bytes(), 700 * 1024);
}

#[test]
fn a_machine_says_of_itself() {
    assert!(memory().unwrap().available_bytes() > 0);
    let processes = processes().unwrap();
    assert!(processes.count > 0 && processes.max > processes.count);
}
