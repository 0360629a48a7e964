//! Reading mounts and writing limits, without touching the host.

use super::*;

const HYBRID: &str = "\
26 25 0:23 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
27 26 0:24 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct
28 26 0:25 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
29 26 0:26 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd
30 26 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate
31 40 0:25 / /elsewhere/memory rw - cgroup cgroup rw,memory
";

#[test]
fn hierarchies_are_read_from_the_mounts() {
    let hybrid = Hierarchies::parse(HYBRID);
    assert!(!hybrid.is_unified());
    assert_eq!(hybrid.v1.len(), 3);
    assert_eq!(
        hybrid.v1_mount("cpuacct"),
        Some(Path::new("/sys/fs/cgroup/cpu"))
    );
    assert_eq!(
        hybrid.directory("memory", "/a/b"),
        Some(PathBuf::from("/sys/fs/cgroup/memory/a/b"))
    );
    assert!(hybrid.controls("memory", "/a") && !hybrid.controls("pids", "/a"));
    let unified = Hierarchies::parse("1 0 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    assert!(unified.is_unified());
    assert_eq!(
        unified.directory("memory", "/a"),
        Some(PathBuf::from("/sys/fs/cgroup/a"))
    );
}

#[test]
fn limits_are_written_as_each_version_wants_them() {
    let resources = Resources {
        cpu_shares: 512,
        cpu_quota_us: 50_000,
        memory_limit_bytes: 1 << 20,
        pids_limit: 9,
        ..Resources::default()
    };
    let text = |unified| {
        let all = limits(&resources, unified);
        all.iter()
            .map(|(_, file, value)| format!("{file}={value}"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(
        text(true),
        "memory.max=1048576 cpu.weight=20 cpu.max=50000 100000 pids.max=9"
    );
    assert_eq!(
        text(false),
        "memory.limit_in_bytes=1048576 cpu.shares=512 cpu.cfs_period_us=100000 \
         cpu.cfs_quota_us=50000 pids.max=9"
    );
    assert!(limits(&Resources::default(), true).is_empty());
}

#[test]
fn huge_pages_are_written_by_their_size() {
    let resources = Resources {
        huge_page_limits: vec![("2MB".into(), 4096)],
        ..Resources::default()
    };
    let files = |unified| huge_page_limits(&resources, unified);
    let file = |name: &str| vec![(name.to_owned(), "4096".to_owned())];
    assert_eq!(files(true), file("hugetlb.2MB.max"));
    assert_eq!(files(false), file("hugetlb.2MB.limit_in_bytes"));
}
