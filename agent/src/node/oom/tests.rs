//! Records of the kernel's log.

use super::victim;

#[test]
fn only_kills_of_the_whole_machine_are_told() {
    let told = |text: &str| victim(&format!("3,1204,5140900,-;{text}\n SUBSYSTEM=x\n"));
    assert_eq!(
        told(
            "Out of memory: Killed process 812 (tail -f) total-vm:1234kB, anon-rss:0kB, UID:0 \
             pgtables:40kB oom_score_adj:1000"
        ),
        Some("tail -f, pid: 812".to_owned())
    );
    assert_eq!(
        told("Out of memory: Kill process 7 (a(b)c) score 5 or sacrifice child"),
        Some("a(b)c, pid: 7".to_owned())
    );
    for other in [
        "Memory cgroup out of memory: Killed process 812 (tail) total-vm:1234kB",
        "Out of memory: Killed process x (tail)",
        "eth0: link up",
        "",
    ] {
        assert_eq!(told(other), None, "{other}");
    }
    assert_eq!(victim("no record"), None);
}
