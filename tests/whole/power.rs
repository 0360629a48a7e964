//! Processes of a node that are killed, a server that is away, and a machine that starts anew:
//! pods go on under their names, restarts are counted, and what happened is told.

use crate::bad_containers::shim_of;
use crate::faults::{start_agent, token};
use crate::lab::{Cluster, Host, Lab, import, run, wait};
use crate::pictures;
use crate::workloads::IMAGE;
use std::path::{Path, PathBuf};

const READY: &str = "{.status.conditions[?(@.type==\"Ready\")].status}";

fn pod(name: &str, script: &str, container: &str, spec: &str) -> String {
    format!(
        r#"
---
apiVersion: v1
kind: Pod
metadata: {{ name: {name} }}
spec:
  terminationGracePeriodSeconds: 1
  {spec}
  containers:
  - name: main
    image: {IMAGE}
    command: ["sh", "-c", "{script}"]
    {container}
"#
    )
}

const SLEEP: &str = "trap 'exit 0' TERM; while true; do sleep 0.2; done";

fn has(cluster: &Cluster, name: &str, path: &str, expected: &str) {
    cluster.wait_value(&["pod", name], path, expected);
}

const RESTARTS: &str = "{.status.phase} {.status.containerStatuses[0].restartCount}";

#[test]
fn an_agent_that_is_killed_with_a_shim_counts_and_tells_it() {
    let mut lab = Lab::new();
    let server = lab.server("server", &[]);
    let host = lab.host("node");
    let token = token(&server);
    let agent = start_agent(&mut lab, &server, &host, "node", &token);
    lab.wait_ready(&server, "node");
    import(&host, &pictures::busybox(&lab.path(""), IMAGE));
    server.apply(&(pod("lost", SLEEP, "", "") + &pod("kept", SLEEP, "", "")));
    has(&server, "lost", RESTARTS, "Running 0");
    has(&server, "kept", RESTARTS, "Running 0");
    let shim = shim_of(&server, &host.data_dir, "lost");
    lab.process(agent).kill();
    run("kill", &["-s", "KILL", &shim.to_string()]);
    start_agent(&mut lab, &server, &host, "node", &token);
    has(&server, "lost", RESTARTS, "Running 1");
    let last = "{.status.containerStatuses[0].lastState.terminated.exitCode} \
                {.status.containerStatuses[0].lastState.terminated.reason}";
    assert_eq!(
        server.value(&["pod", "lost"], last),
        "255 ContainerStatusUnknown"
    );
    assert_eq!(server.value(&["pod", "kept"], RESTARTS), "Running 0");
}

fn echo(server: &Cluster, words: &str) -> Option<String> {
    let command = ["exec", "steady", "--", "echo", words];
    server.try_kubectl(&command).ok()
}

/// What was under way ends, the next goes through.
fn a_cable_is_out_for_a_while(lab: &Lab, server: &Cluster, host: &Host) {
    let mut watching = server
        .kubectl_command(&["exec", "steady", "--", "sh", "-c", SLEEP])
        .spawn()
        .unwrap();
    lab.set_link(host, false);
    server.apply(&pod("meanwhile", SLEEP, "", "nodeName: node"));
    wait("the server notices", || {
        (server.value(&["node", "node"], READY) == "Unknown").then_some(())
    });
    lab.set_link(host, true);
    server.wait_value(&["node", "node"], READY, "True");
    has(server, "meanwhile", RESTARTS, "Running 0");
    has(server, "steady", RESTARTS, "Running 0");
    wait("the node's connection is back", || echo(server, "again"));
    wait("what was under way has ended", || {
        watching.try_wait().unwrap()
    });
}

#[test]
fn what_happens_while_the_server_is_away_is_told_when_it_is_back() {
    let mut lab = Lab::new();
    let mut server = lab.server("server", &[]);
    let host = lab.host("node");
    let agent = start_agent(&mut lab, &server, &host, "node", &token(&server));
    lab.wait_ready(&server, "node");
    import(&host, &pictures::busybox(&lab.path(""), IMAGE));
    let marks = lab.path("marks");
    std::fs::create_dir(&marks).unwrap();
    let spec = format!(
        "volumes: [{{ name: marks, hostPath: {{ path: \"{}\" }} }}]",
        marks.display()
    );
    let mount = "volumeMounts: [{ name: marks, mountPath: /marks }]";
    // Each falls when it is told to; the first run of a name leaves a mark.
    let fall = |name: &str, code: u32| {
        format!(
            "echo run >> /marks/{name}; while ! test -e /marks/go; do sleep 0.1; done; \
             test $(busybox wc -l < /marks/{name}) -gt 1 || exit {code}; {SLEEP}"
        )
    };
    server.apply(
        &(pod("again", &fall("again", 3), mount, &spec)
            + &pod(
                "once",
                &fall("once", 0),
                mount,
                &format!("restartPolicy: Never\n  {spec}"),
            )
            + &pod("steady", SLEEP, "", "")),
    );
    for name in ["again", "once", "steady"] {
        has(&server, name, RESTARTS, "Running 0");
    }
    lab.process(server.process).kill();
    std::fs::write(marks.join("go"), "").unwrap();
    wait("it started again without the server", || {
        let runs = std::fs::read_to_string(marks.join("again")).ok()?;
        (runs == "run\nrun\n").then_some(())
    });
    let data_dir = server.host.data_dir.display().to_string();
    server.process = lab.spawn(&server.host.clone(), &["server", "--data-dir", &data_dir]);
    wait("the server answers again", || {
        server.try_kubectl(&["get", "--raw", "/readyz"]).ok()
    });
    has(&server, "again", RESTARTS, "Running 1");
    has(&server, "once", RESTARTS, "Succeeded 0");
    let code = "{.status.containerStatuses[0].lastState.terminated.exitCode}";
    assert_eq!(server.value(&["pod", "again"], code), "3");
    assert_eq!(server.value(&["pod", "steady"], RESTARTS), "Running 0");
    wait("the node's connection is back", || echo(&server, "back"));

    a_cable_is_out_for_a_while(&lab, &server, &host);
    assert!(!lab.process(agent).has_ended());
}

/// The control group of all that a node runs, by the record of a sandbox.
fn node_group(data_dir: &Path) -> String {
    let sandboxes = data_dir.join("agent/sandboxes");
    let first = std::fs::read_dir(sandboxes)
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let record = std::fs::read(first.path().join("sandbox.json")).unwrap();
    let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
    let group = record["cgroup"].as_str().unwrap();
    let root = group.trim_start_matches('/').split('/').next().unwrap();
    assert!(root.starts_with("coracle-"), "{group}");
    root.to_owned()
}

fn processes_in(group: &str) -> Vec<String> {
    let inside = format!(":/{group}/");
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let named = processes.filter_map(|process| process.file_name().into_string().ok());
    named
        .filter(|name| {
            let groups = std::fs::read_to_string(format!("/proc/{name}/cgroup"));
            let is_ended = std::fs::read_to_string(format!("/proc/{name}/stat"))
                .is_ok_and(|stat| stat.contains(") Z "));
            !is_ended && groups.is_ok_and(|groups| groups.contains(&inside))
        })
        .collect()
}

fn remove_group(directory: &Path) {
    for inner in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if inner.path().is_dir() {
            remove_group(&inner.path());
        }
    }
    drop(std::fs::remove_dir(directory));
}

/// All that is in memory goes, and what is on disk stays, as when the power is cut.
fn cut_power(lab: &mut Lab, host: &Host, agent: usize) {
    let group = node_group(&host.data_dir);
    lab.process(agent).kill();
    wait("no process is left", || {
        let processes = processes_in(&group);
        for process in &processes {
            drop(
                std::process::Command::new("kill")
                    .args(["-9", process])
                    .output(),
            );
        }
        processes.is_empty().then_some(())
    });
    let below = format!("{}/", host.data_dir.display());
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mut points: Vec<&str> = mounts
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .filter(|point| point.starts_with(&below))
        .collect();
    points.reverse();
    for point in points {
        run("umount", &["-l", point]);
    }
    for hierarchy in std::fs::read_dir("/sys/fs/cgroup").unwrap().flatten() {
        remove_group(&hierarchy.path().join(&group));
    }
    remove_group(&Path::new("/sys/fs/cgroup").join(&group));
    let bridge = ["-n", &host.namespace, "link", "delete", "coracle0"];
    run("ip", &bridge);
    // The next boot has another id.
    let sandboxes: Vec<PathBuf> = std::fs::read_dir(host.data_dir.join("agent/sandboxes"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    for sandbox in sandboxes {
        let path = sandbox.join("sandbox.json");
        let mut record: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        record["boot_id"] = "00000000-0000-4000-8000-000000000000".into();
        std::fs::write(&path, record.to_string()).unwrap();
    }
}

/// What shall run after the power is back.
fn all_kinds_of_pods() -> String {
    let volumes = "volumes:\n  - { name: disk, emptyDir: {} }\n  \
                   - { name: memory, emptyDir: { medium: Memory } }\n  \
                   - { name: secret, secret: { secretName: word } }";
    let mounts = "volumeMounts:\n    - { name: disk, mountPath: /disk }\n    \
                  - { name: memory, mountPath: /memory }\n    \
                  - { name: secret, mountPath: /secret }";
    let script = format!(
        "echo disk $(ls /disk), memory $(ls /memory), $(cat /secret/word), \
         $(ls /var/run/secrets/kubernetes.io/serviceaccount/token); touch /disk/was /memory/was; {SLEEP}"
    );
    let init = format!(
        "{volumes}\n  initContainers:\n  - name: first\n    image: {IMAGE}\n    \
         command: [sh, -c, \"echo ran >> /disk/first\"]\n    \
         volumeMounts: [{{ name: disk, mountPath: /disk }}]"
    );
    let count = format!("busybox wc -l < /disk/first; {SLEEP}");
    pod("web", &script, mounts, volumes)
        + &pod("begun", &count, mounts, &init)
        + &pod("once", SLEEP, "", "restartPolicy: Never")
        + &pod("retried", SLEEP, "", "restartPolicy: OnFailure")
        + &pod("done", "true", "", "restartPolicy: Never")
        + &pod("shared", SLEEP, "", "shareProcessNamespace: true")
        + &pod("host", SLEEP, "", "hostNetwork: true")
}

const GOING: [&str; 7] = [
    "web",
    "begun",
    "once",
    "retried",
    "shared",
    "host",
    "lone-node",
];

fn begin_all_kinds_of_pods(server: &Cluster) {
    let word = "--from-literal=word=told";
    server.kubectl(&["create", "secret", "generic", "word", word]);
    let account = ["get", "serviceaccount", "default"];
    wait("the account is there", || server.try_kubectl(&account).ok());
    server.apply(&all_kinds_of_pods());
}

/// What was on disk is there, what was in memory is made anew.
fn they_have_what_they_had(server: &Cluster, first: &str) {
    let facts = |name: &str, path: &str| server.value(&["pod", name], path);
    let last = "{.status.containerStatuses[0].lastState.terminated.exitCode} \
                {.status.containerStatuses[0].lastState.terminated.reason}";
    assert_eq!(facts("web", last), "255 ContainerStatusUnknown");
    let ended = "{.status.containerStatuses[0].state.terminated.exitCode}";
    assert_eq!(facts("once", ended), "255");
    // The shell may live long enough to tell that its child was killed.
    let previous = server.kubectl(&["logs", "web", "--previous"]);
    assert_eq!(
        previous.strip_suffix("Killed\n").unwrap_or(&previous),
        first
    );
    wait("the pod can be looked into", || {
        let said = server.try_kubectl(&["logs", "web"]).ok()?;
        (said == first.replace("disk ,", "disk was,")).then_some(())
    });
    server.wait_log(&["begun"], "2\n");
    let init = "{.status.initContainerStatuses[0].restartCount} \
                {.status.initContainerStatuses[0].state.terminated.reason}";
    assert_eq!(facts("begun", init), "1 Completed");
    let reached = server.kubectl(&[
        "exec", "web", "--", "ip", "-o", "-4", "addr", "show", "eth0",
    ]);
    assert!(
        reached.contains(&facts("web", "{.status.podIP}")),
        "{reached}"
    );
    server.wait_events(&["Pod sandbox changed, it will be killed and re-created"]);
}

#[test]
fn after_a_reboot_pods_run_again_and_own_pods_without_the_server() {
    let mut lab = Lab::new();
    let server = lab.server("server", &[]);
    let host = lab.host("node");
    let files = lab.path("manifests");
    let marks = lab.path("marks");
    for directory in [&files, &marks] {
        std::fs::create_dir(directory).unwrap();
    }
    let spec = format!(
        "volumes: [{{ name: marks, hostPath: {{ path: \"{}\" }} }}]",
        marks.display()
    );
    let mount = "volumeMounts: [{ name: marks, mountPath: /marks }]";
    let script = format!("echo run >> /marks/lone; {SLEEP}");
    std::fs::write(files.join("lone.yaml"), pod("lone", &script, mount, &spec)).unwrap();
    let statics = files.display().to_string();
    let url = format!("https://{}:6443", server.host.address);
    let given = token(&server);
    let data_dir = host.data_dir.display().to_string();
    let line = format!(
        "agent --server {url} --token {given} --node-name node --data-dir {data_dir} \
         --static-pods {statics}"
    );
    let words: Vec<&str> = line.split(' ').collect();
    import(&host, &pictures::busybox(&lab.path(""), IMAGE));
    let agent = lab.spawn(&host, &words);
    lab.wait_ready(&server, "node");
    begin_all_kinds_of_pods(&server);
    for name in GOING {
        has(&server, name, RESTARTS, "Running 0");
    }
    has(&server, "done", RESTARTS, "Succeeded 0");
    let facts = |name: &str, path: &str| server.value(&["pod", name], path);
    let (uid, id) = (
        "{.metadata.uid}",
        "{.status.containerStatuses[0].containerID}",
    );
    let before = GOING.map(|name| (facts(name, uid), facts(name, id)));
    let first = "disk , memory , told, /var/run/secrets/kubernetes.io/serviceaccount/token\n";
    server.wait_log(&["web"], first);

    lab.set_link(&host, false);
    cut_power(&mut lab, &host, agent);
    let agent = lab.spawn(&host, &words);
    wait("its own pod runs without the server", || {
        let runs = std::fs::read_to_string(marks.join("lone")).unwrap();
        (runs == "run\nrun\n").then_some(())
    });
    lab.set_link(&host, true);
    for name in ["web", "begun", "retried", "shared", "host", "lone-node"] {
        has(&server, name, RESTARTS, "Running 1");
    }
    has(&server, "once", RESTARTS, "Failed 0");
    has(&server, "done", RESTARTS, "Succeeded 0");
    for (name, (uid_before, id_before)) in GOING.iter().zip(before) {
        if *name != "lone-node" {
            assert_eq!(facts(name, uid), uid_before, "{name}");
        }
        let is_same = facts(name, id) == id_before;
        assert_eq!(is_same, *name == "once", "{name}");
    }
    they_have_what_they_had(&server, first);
    // Nobody has a second address, and who has ended has none.
    let held = std::fs::read_dir(host.data_dir.join("agent/network")).unwrap();
    assert_eq!(held.count(), 5, "web, begun, retried, shared, lone");
    assert_eq!(server.value(&["node", "node"], READY), "True");
    assert!(!lab.process(agent).has_ended());
}
