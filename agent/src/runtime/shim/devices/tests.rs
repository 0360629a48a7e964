//! As root, on a kernel that has control groups of version 2 mounted, beside version 1 or alone.

use super::*;
use std::path::PathBuf;
use std::process::Command;

/// A group of version 2, gone with the test.
struct Group(PathBuf);

impl Group {
    fn new() -> Self {
        let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mounted = table.lines().find(|line| line.contains(" - cgroup2 "));
        let mount = mounted.and_then(|line| line.split(' ').nth(4));
        let mount = Path::new(mount.expect("control groups of version 2 are mounted"));
        let group = mount.join(format!("coracle-devices-{}", std::process::id()));
        std::fs::create_dir(&group).unwrap();
        Self(group)
    }

    /// What a shell in the group says.
    fn say(&self, line: &str) -> String {
        let line = format!("echo $$ > {}/cgroup.procs\n{line}", self.0.display());
        let output = Command::new("/bin/sh").args(["-c", &line]).output();
        let output = output.unwrap();
        let all = [output.stdout, output.stderr].concat();
        String::from_utf8(all).unwrap()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn a_node_is_made_and_not_opened_but_for_those_of_every_container() {
    // Where nodes work: file systems of tests may be mounted without devices.
    let directory = tempfile::tempdir_in("/dev").unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (disk, memory, zero) = (path("disk"), path("memory"), path("zero"));
    let group = Group::new();
    let open = |node: &str| group.say(&format!("head -c 1 {node} > /dev/null && echo read"));
    let made = group.say(&format!(
        "mknod {disk} b 7 0 && mknod {memory} c 1 1 && mknod {zero} c 1 5 && echo made"
    ));
    assert_eq!(made, "made\n");
    for node in [&disk, &memory] {
        let before = open(node);
        assert!(!before.contains("Operation not permitted"), "{before}");
    }

    confine(&group.0, &[]).unwrap();
    for node in [&disk, &memory] {
        let after = open(node);
        assert!(after.contains("Operation not permitted"), "{after}");
    }
    assert_eq!(open(&zero), "read\n");
    for node in ["/dev/null", "/dev/full", "/dev/random", "/dev/urandom"] {
        let opened = group.say(&format!("exec 3< {node} && echo opened"));
        assert_eq!(opened, "opened\n", "{node}");
    }
    let other = path("other");
    assert_eq!(
        group.say(&format!("mknod {other} b 8 0 && echo made")),
        "made\n"
    );
}
