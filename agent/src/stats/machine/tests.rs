//! The kernel's own words, read.

use super::*;

#[test]
fn busy_time_is_all_but_idle() {
    let stat = "cpu  100 10 50 9000 30 4 6 0 7 0\ncpu0 1 2 3\nbtime 1700000000\n";
    assert_eq!(cpu_ns(stat), Some(170 * TICK_NS));
    assert_eq!(boot_time(stat).unwrap().as_second(), 1_700_000_000);
    assert_eq!(counter("pgfaulty 1\npgfault 7\n", "pgfault"), Some(7));
}

#[test]
fn a_process_is_read_behind_its_name() {
    let stat = "1 (a) b) S 1 1 1 0 -1 0 11 0 2 0 30 5 0 0 20 0 4 0 99 1 1";
    let status = "VmRSS:\t  10 kB\nRssAnon:\t   4 kB\nVmSwap:\t   1 kB\n";
    let usage = own_usage_of(stat, status).unwrap();
    assert_eq!((usage.cpu_ns, usage.page_faults), (35 * TICK_NS, 11));
    assert_eq!((usage.major_page_faults, usage.process_count), (2, 4));
    assert_eq!(usage.memory_working_set_bytes, 10 * 1024);
    assert_eq!(usage.swap_bytes, Some(1024));
}

#[test]
fn this_machine_runs() {
    let machine = look(Timestamp::UNIX_EPOCH);
    assert!(machine.memory_bytes > machine.usage.memory_working_set_bytes);
    assert!(machine.usage.cpu_ns > 0 && machine.booted_at.as_second() > 0);
    assert!(own_usage().unwrap().memory_rss_bytes > 0);
}
