//! What a disk does to a server: it is full, takes no writes, fails, or is slow. Nothing that was
//! answered is lost, reads go on, and so does everything once the disk does.

use crate::lab::{Cluster, Lab, PATIENCE, now, run, wait};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A file system of its own, which goes when this does.
struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    fn mount(path: PathBuf, size: &str) -> Self {
        std::fs::create_dir_all(&path).unwrap();
        let options = format!("size={size},mode=700");
        let shown = path.display().to_string();
        run("mount", &["-t", "tmpfs", "-o", &options, "tmpfs", &shown]);
        Self { path }
    }

    /// Takes all that is left of it.
    fn fill(&self) {
        let zeros = std::fs::File::open("/dev/zero").unwrap();
        let mut filler = std::fs::File::create(self.filler()).unwrap();
        let full = std::io::copy(&mut &zeros, &mut filler).unwrap_err();
        assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    }

    fn free(&self) {
        std::fs::remove_file(self.filler()).unwrap();
    }

    fn filler(&self) -> PathBuf {
        self.path.join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(&self.path).status());
    }
}

/// System calls of a process go wrong for as long as this is there.
struct Injection {
    strace: Child,
}

impl Injection {
    /// `what` is done to `calls`, as strace has it.
    fn begin(lab: &mut Lab, server: &Cluster, calls: &str, what: &str) -> Self {
        let pid = lab.process(server.process).pid();
        let strace = Command::new("strace")
            .args(["-f", "-q", "-o", "/dev/null"])
            .args(["-e", &format!("trace={calls}")])
            .args(["-e", &format!("inject={calls}:{what}")])
            .args(["-p", &pid.to_string()])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let tracer = format!("TracerPid:\t{}", strace.id());
        wait("all threads are traced", || {
            let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
            let mut statuses = tasks
                .flatten()
                .filter_map(|task| std::fs::read_to_string(task.path().join("status")).ok());
            statuses
                .all(|status| status.contains(&tracer))
                .then_some(())
        });
        Self { strace }
    }

    /// Lets go of the process, which goes on.
    fn end(mut self) {
        run("kill", &["-s", "TERM", &self.strace.id().to_string()]);
        self.strace.wait().unwrap();
    }
}

impl Drop for Injection {
    fn drop(&mut self) {
        drop(self.strace.kill());
        drop(self.strace.wait());
    }
}

/// All through which the store's files change.
const WRITES: &str = "pwrite64,ftruncate,fallocate,fdatasync,fsync,sync_file_range";

fn create(server: &Cluster, name: &str, file: &Path) -> Result<String, String> {
    let from = format!("--from-file={}", file.display());
    server.try_kubectl(&["create", "configmap", name, &from])
}

fn names(server: &Cluster) -> Vec<String> {
    let text = server.kubectl(&["get", "configmaps", "-o", "name"]);
    let named = text.lines().map(|line| line.replace("configmap/", ""));
    named.filter(|name| name.starts_with("data-")).collect()
}

/// Some 100 KB that do not compress.
fn payload(lab: &Lab) -> PathBuf {
    let path = lab.path("payload");
    let mut state = 1_u64;
    let text: String = std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        char::from(b'a' + (state >> 33) as u8 % 26)
    })
    .take(100_000)
    .collect();
    std::fs::write(&path, text).unwrap();
    path
}

/// Creates until one is refused; all that were created, and what the last one was told.
fn until_refused(server: &Cluster, file: &Path, created: &mut Vec<String>) -> String {
    let end = now() + PATIENCE;
    while now() < end {
        let name = format!("data-{}", created.len());
        match create(server, &name, file) {
            Ok(_) => created.push(name),
            Err(told) => return told,
        }
    }
    panic!("nothing was refused");
}

fn goes_on(server: &Cluster, file: &Path, created: &mut Vec<String>) {
    let name = format!("data-{}", created.len());
    wait("a write is taken again", || {
        create(server, &name, file).ok()
    });
    created.push(name);
}

#[track_caller]
fn all_there(server: &Cluster, created: &[String]) {
    let mut expected = created.to_vec();
    expected.sort();
    assert_eq!(names(server), expected);
}

#[test]
fn a_full_disk_refuses_writes_in_so_many_words_and_loses_nothing() {
    let mut lab = Lab::new();
    let file = payload(&lab);
    let host = lab.host("server");
    let disk = SmallDisk::mount(host.data_dir.join("server/store"), "48m");
    let server = lab.server_on(host.clone(), &[]);
    let mut created = Vec::new();
    goes_on(&server, &file, &mut created);
    disk.fill();
    let told = until_refused(&server, &file, &mut created);
    assert!(told.contains("no space is left on the disk"), "{told}");
    let told = server.try_kubectl(&["label", "namespace", "default", "a=b"]);
    let told = told.unwrap_err();
    assert!(told.contains("(InsufficientStorage)"), "{told}");
    all_there(&server, &created);
    let health = |path: &str| server.try_kubectl(&["get", "--raw", path]);
    assert_eq!(health("/livez").as_deref(), Ok("ok"));
    let told = health("/readyz/etcd").unwrap_err();
    assert!(told.contains("no space is left"), "{told}");

    disk.free();
    goes_on(&server, &file, &mut created);
    all_there(&server, &created);
    assert_eq!(health("/readyz").as_deref(), Ok("ok"));

    // Once more, and the power goes while it is full.
    disk.fill();
    until_refused(&server, &file, &mut created);
    lab.process(server.process).kill();
    disk.free();
    let server = lab.server_on(host, &[]);
    all_there(&server, &created);
    goes_on(&server, &file, &mut created);
}

#[test]
fn a_disk_that_takes_no_writes_for_a_while_costs_nothing_that_was_answered() {
    let mut lab = Lab::new();
    let file = payload(&lab);
    let server = lab.server("server", &[]);
    let mut created = Vec::new();
    goes_on(&server, &file, &mut created);
    for error in ["EROFS", "EIO"] {
        let injection = Injection::begin(&mut lab, &server, WRITES, &format!("error={error}"));
        let told = until_refused(&server, &file, &mut created);
        assert!(told.contains("the disk refused the write"), "{told}");
        all_there(&server, &created);
        injection.end();
        goes_on(&server, &file, &mut created);
        all_there(&server, &created);
    }
    // What failed and what was written anew is sound on disk.
    lab.process(server.process).kill();
    let server = lab.server_on(server.host, &[]);
    all_there(&server, &created);
}

#[test]
fn on_a_slow_disk_everything_takes_longer_and_nobody_is_lost() {
    let mut lab = Lab::new();
    let file = payload(&lab);
    let cluster = lab.cluster("slow", &["--node-monitor-grace-period", "12s"]);
    let since = "{.status.conditions[?(@.type==\"Ready\")].lastTransitionTime}";
    let ready_since = cluster.value(&["node", "slow"], since);
    let calls = "fdatasync,fsync,sync_file_range";
    let injection = Injection::begin(&mut lab, &cluster, calls, "delay_enter=500000");
    let mut created = Vec::new();
    // Longer than the node may be silent.
    let end = now() + Duration::from_secs(15);
    while now() < end {
        let name = format!("data-{}", created.len());
        create(&cluster, &name, &file).unwrap();
        created.push(name);
    }
    assert_eq!(cluster.value(&["node", "slow"], since), ready_since);
    assert_eq!(
        cluster.try_kubectl(&["get", "--raw", "/readyz"]).as_deref(),
        Ok("ok")
    );
    assert!(!lab.process(cluster.process).has_ended());
    injection.end();
    all_there(&cluster, &created);
}
