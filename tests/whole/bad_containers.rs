//! Containers that take what they can get: they are held, ended and told of, the node stays Ready
//! and other pods do not notice.

use crate::lab::{Cluster, Lab, run, wait};
use crate::workloads::{IMAGE, with_images, with_images_and};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

const FOREVER: &str = "while true; do sleep 1; done";
const READY: &str = "{.status.conditions[?(@.type==\"Ready\")]";
const LAST: &str = "{.status.containerStatuses[0].lastState.terminated";
/// Of each file of a log, and of how many.
const LOG_BYTES_MAX: u64 = 1 << 20;
const LOG_FILES_MAX: usize = 3;

fn pod(name: &str, script: &str, container: &str, spec: &str) -> String {
    format!(
        r#"
---
apiVersion: v1
kind: Pod
metadata: {{ name: {name} }}
spec:
  terminationGracePeriodSeconds: 2
  {spec}
  containers:
  - name: main
    image: {IMAGE}
    command: ["sh", "-c", "{script}"]
    {container}
"#
    )
}

fn running(cluster: &Cluster, name: &str) {
    cluster.wait_value(&["pod", name], "{.status.phase}", "Running");
}

/// The process that stands beside a pod's container.
pub fn shim_of(cluster: &Cluster, data_dir: &Path, pod: &str) -> u32 {
    let id = "{.status.containerStatuses[0].containerID}";
    let id = cluster.value(&["pod", pod], id);
    let id = id.strip_prefix("coracle://").unwrap();
    let started = data_dir
        .join("agent/containers")
        .join(id)
        .join("started.json");
    let started: serde_json::Value =
        serde_json::from_slice(&std::fs::read(started).unwrap()).unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", started["pid"])).unwrap();
    let fields = stat.rsplit_once(')').unwrap().1;
    fields.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn its_log_is_set_aside(cluster: &Cluster) {
    let logs = cluster.host.data_dir.join("agent/logs");
    let files_of = |pod: &str| -> Vec<u64> {
        // It fails when something goes meanwhile.
        let mut find = std::process::Command::new("find");
        let found = find.arg(&logs).args(["-type", "f"]).output().unwrap();
        let all = String::from_utf8_lossy(&found.stdout).into_owned();
        let own = all
            .lines()
            .filter(|path| path.contains(&format!("_{pod}_")));
        own.filter_map(|path| Some(std::fs::metadata(path).ok()?.len()))
            .collect()
    };
    wait("a file of the log was set aside", || {
        (files_of("talks").len() > 1).then_some(())
    });
    let first = files_of("talks");
    assert!(first.len() <= LOG_FILES_MAX, "{first:?}");
    assert!(
        first.iter().any(|bytes| *bytes >= LOG_BYTES_MAX),
        "{first:?}"
    );
    // Only the file that is written is read, as upstream does: one that has just begun is empty.
    wait("its last line is told", || {
        let tail = cluster.kubectl(&["logs", "talks", "--tail=1"]);
        let bytes = tail.trim_end().len();
        assert!(matches!(bytes, 0 | 4000), "{tail}");
        (bytes > 0).then_some(())
    });
}

#[test]
fn who_forks_or_writes_without_end_or_will_not_go_is_held() {
    let mut lab = Lab::new();
    let (size, files) = ("1Mi".to_owned(), LOG_FILES_MAX.to_string());
    let settings = [
        "--pod-max-pids=64",
        "--container-log-max-size",
        &size,
        "--container-log-max-files",
        &files,
    ];
    let cluster = with_images_and(&mut lab, "calm", &settings);
    let since = cluster.value(&["node", "calm"], &format!("{READY}.lastTransitionTime}}"));
    // A shell that cannot fork ends; what it began stays.
    let bomb = "f() { while true; do sleep 100000 & (f) & done; }; (f) & exec sleep 100000";
    // A line of some KiB at a time, so that the disk of the machine is left alone.
    let talk = "while true; do busybox head -c 4000 /dev/zero | busybox tr '\\\\0' x; echo; done";
    // A megabyte at a time, however slow the machine is.
    let fill = "while true; do busybox head -c 1000000 /dev/zero >> /fill; sleep 1; done";
    let limit = "resources: { limits: { ephemeral-storage: 4Mi } }";
    let unhealthy = "livenessProbe: { exec: { command: [\"false\"] }, periodSeconds: 1, \
                     failureThreshold: 1, terminationGracePeriodSeconds: 1 }";
    let deaf = format!("trap '' TERM; {FOREVER}");
    let manifests = [
        pod("bystander", FOREVER, "", ""),
        pod("bomb", bomb, "", ""),
        pod("talks", talk, "", ""),
        pod("fills", fill, limit, ""),
        pod("deaf", &deaf, "", ""),
        pod("unhealthy", &deaf, unhealthy, ""),
    ];
    cluster.apply(&manifests.concat());
    for name in ["bystander", "bomb", "deaf"] {
        running(&cluster, name);
    }
    wait("the bomb has filled its room", || {
        let said = cluster.try_kubectl(&["logs", "bomb"]).ok()?;
        said.contains("can't fork").then_some(())
    });
    let said = cluster.kubectl(&["exec", "bystander", "--", "echo", "well"]);
    assert_eq!(said, "well\n");

    // What is deleted goes, whether it will or not.
    for name in ["bomb", "deaf"] {
        cluster.kubectl(&["delete", "pod", name, "--timeout=60s"]);
    }
    wait("it was killed after its grace", || {
        let code = cluster.value(&["pod", "unhealthy"], &format!("{LAST}.exitCode}}"));
        (code == "137").then_some(())
    });

    cluster.wait_value(&["pod", "fills"], "{.status.reason}", "Evicted");
    assert_eq!(
        cluster.value(&["pod", "fills"], "{.status.phase} {.status.message}"),
        "Failed Pod ephemeral local storage usage exceeds the total limit of containers 4Mi. "
    );
    its_log_is_set_aside(&cluster);

    let ready = format!("{READY}.status}} {READY}.lastTransitionTime}}");
    assert_eq!(
        cluster.value(&["node", "calm"], &ready),
        format!("True {since}")
    );
    let path = "{.status.phase} {.status.containerStatuses[0].restartCount}";
    assert_eq!(cluster.value(&["pod", "bystander"], path), "Running 0");
}

#[test]
fn a_killed_shim_is_told_and_its_container_starts_again() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "shims");
    cluster.apply(&pod("again", FOREVER, "", ""));
    cluster.apply(&pod("once", FOREVER, "", "restartPolicy: Never"));
    for name in ["again", "once"] {
        running(&cluster, name);
        let shim = shim_of(&cluster, &cluster.host.data_dir, name);
        run("kill", &["-s", "KILL", &shim.to_string()]);
    }
    let path = format!(
        "{{.status.phase}} {{.status.containerStatuses[0].restartCount}} \
         {LAST}.exitCode}} {LAST}.reason}}"
    );
    cluster.wait_value(
        &["pod", "again"],
        &path,
        "Running 1 255 ContainerStatusUnknown",
    );
    let ended = "{.status.phase} {.status.containerStatuses[0].restartCount} \
                 {.status.containerStatuses[0].state.terminated.exitCode} \
                 {.status.containerStatuses[0].state.terminated.reason}";
    cluster.wait_value(
        &["pod", "once"],
        ended,
        "Failed 0 255 ContainerStatusUnknown",
    );
    assert_eq!(
        cluster.value(&["node", "shims"], &format!("{READY}.status}}")),
        "True"
    );
}

/// Turns a link to and fro until it is told to stop.
fn swap(volume: &Path, outside: &Path, stop: &AtomicBool) {
    let (link, next) = (volume.join("link"), volume.join(".next"));
    while !stop.load(Ordering::Relaxed) {
        for target in [outside, Path::new("real")] {
            symlink(target, &next).unwrap();
            std::fs::rename(&next, &link).unwrap();
        }
    }
}

#[test]
fn paths_that_lead_out_of_a_volume_lead_nowhere() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "walled");
    let (volume, outside) = (lab.path("volume"), lab.path("outside"));
    for (directory, word) in [(volume.join("real"), "mine"), (outside.clone(), "host")] {
        std::fs::create_dir_all(directory.join("part")).unwrap();
        std::fs::write(directory.join("part/word"), word).unwrap();
    }
    symlink("real", volume.join("link")).unwrap();
    let volumes = format!(
        "volumes: [{{ name: work, hostPath: {{ path: \"{}\" }} }}]\n  restartPolicy: OnFailure",
        volume.display()
    );
    let mounts = |of: &str| format!("volumeMounts: [{{ name: work, mountPath: /part, {of} }}]");

    // What a path says is refused where it is said.
    let file = lab.path("bad.yaml");
    let refused = |manifest: &str| {
        std::fs::write(&file, manifest).unwrap();
        let tried = cluster.try_kubectl(&["apply", "-f", &file.display().to_string()]);
        let text = tried.unwrap_err();
        assert!(text.contains("must not contain '..'"), "{text}");
    };
    refused(&pod("up", "true", &mounts("subPath: a/../../b"), &volumes));
    let climbing = "volumes: [{ name: work, hostPath: { path: /tmp/../etc } }]";
    refused(&pod("up", "true", &mounts("subPath: a"), climbing));
    // And what it says only when it is made.
    let env = "env: [{ name: WHERE, value: ../outside }]\n    ";
    let expression = mounts("subPathExpr: $(WHERE)/part");
    cluster.apply(&pod(
        "expanded",
        "cat /part/word",
        &format!("{env}{expression}"),
        &volumes,
    ));
    let reason = "{.status.containerStatuses[0].state.waiting.reason}";
    cluster.wait_value(&["pod", "expanded"], reason, "CreateContainerConfigError");

    let stop = AtomicBool::new(false);
    let names: Vec<String> = (0..12).map(|number| format!("racer{number}")).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| swap(&volume, &outside, &stop));
        let script = "cat /part/word; echo; sleep 0.1; cat /part/word";
        let racers = names.iter();
        let racers = racers.map(|name| pod(name, script, &mounts("subPath: link/part"), &volumes));
        cluster.apply(&racers.collect::<String>());
        // Each has been decided one way or the other at least once.
        let state = "{range .items[*]}{.metadata.name} {.status.phase}\
                     {.status.containerStatuses[0].state.waiting.message}\
                     {.status.containerStatuses[0].lastState.terminated.message}{\"\\n\"}{end}";
        wait("each was tried", || {
            let all = cluster.value(&["pods"], state);
            let racers = all.lines().filter(|line| line.starts_with("racer"));
            let tried =
                racers.filter(|line| line.contains("Succeeded") || line.contains("subPath"));
            (tried.count() == names.len()).then_some(())
        });
        stop.store(true, Ordering::Relaxed);
    });
    for name in &names {
        cluster.wait_value(&["pod", name], "{.status.phase}", "Succeeded");
        assert_eq!(cluster.kubectl(&["logs", name]), "mine\nmine", "{name}");
    }
    assert_eq!(
        cluster.value(&["node", "walled"], &format!("{READY}.status}}")),
        "True"
    );
}
