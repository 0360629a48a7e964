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
    let hybrid = Hierarchies::among(mounts::parse(HYBRID));
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
    let unified = Hierarchies::among(mounts::parse(
        "1 0 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
    ));
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
        let all = limits::files(&resources, unified);
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
    assert!(limits::files(&Resources::default(), true).is_empty());
}

/// A version 2 hierarchy of plain files.
fn unified(files: &[(&str, &str)]) -> (tempfile::TempDir, Hierarchies) {
    let directory = tempfile::tempdir().unwrap();
    let group = directory.path().join("pod");
    fs::create_dir(&group).unwrap();
    for (file, text) in files {
        fs::write(group.join(file), text).unwrap();
    }
    let hierarchies = Hierarchies {
        v2: Some(directory.path().to_owned()),
        ..Hierarchies::default()
    };
    (directory, hierarchies)
}

#[test]
fn limits_are_read_as_they_were_asked_for() {
    let asked = Resources {
        cpu_shares: 102,
        cpu_quota_us: 20_000,
        cpu_period_us: 100_000,
        memory_limit_bytes: 100_000_000,
        ..Resources::default()
    };
    // What the kernel makes of them: whole pages and coarse weights.
    let (_directory, kept) = unified(&[
        ("memory.max", "99999744\n"),
        ("cpu.weight", "4\n"),
        ("cpu.max", "20000 100000\n"),
    ]);
    assert_eq!(kept.read("/pod", &asked), asked);
    // Somebody else has changed them.
    let (_directory, changed) = unified(&[
        ("memory.max", "max\n"),
        ("cpu.weight", "39\n"),
        ("cpu.max", "max 100000\n"),
    ]);
    let found = changed.read("/pod", &asked);
    assert_eq!((found.memory_limit_bytes, found.cpu_quota_us), (0, 0));
    assert_eq!(found.cpu_shares, 999);
}

#[test]
fn a_change_leaves_what_it_does_not_name() {
    let (directory, group) = unified(&[
        ("memory.max", "1048576"),
        ("cpu.weight", "20"),
        ("cpu.max", "50000 100000"),
    ]);
    let change = Resources {
        memory_limit_bytes: 2 << 20,
        ..Resources::default()
    };
    group.change("/pod", &change).unwrap();
    let text = |file: &str| fs::read_to_string(directory.path().join("pod").join(file)).unwrap();
    assert_eq!(text("memory.max"), "2097152");
    assert_eq!(
        (text("cpu.weight"), text("cpu.max")),
        ("20".into(), "50000 100000".into())
    );
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
