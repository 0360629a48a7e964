//! Pods from files of the node: shown to the server, and run without it.

use crate::faults::{start_agent, token};
use crate::lab::{Lab, import, wait};
use crate::pictures;
use crate::workloads::{IMAGE, IMAGE_2, with_images_and};
use std::path::Path;

fn manifest(name: &str, image: &str, script: &str, more: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{ name: {name} }}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: {image}
    command: [sh, -c, "{script}; exec sleep 100000"]
{more}
"#
    )
}

/// As a careful tool writes: another file takes the name.
fn put(directory: &Path, name: &str, text: &str) {
    std::fs::create_dir_all(directory).unwrap();
    std::fs::write(directory.join(".new"), text).unwrap();
    std::fs::rename(directory.join(".new"), directory.join(name)).unwrap();
}

#[test]
fn files_of_a_node_are_pods_that_the_server_only_shows() {
    let mut lab = Lab::new();
    let files = lab.path("manifests");
    put(&files, "web.yaml", &manifest("web", IMAGE, "echo one", ""));
    put(
        &files,
        "bad.yaml",
        "apiVersion: v1\nkind: Pod\nmetadata: { name: bad }\n",
    );
    let more = ["--static-pods", &files.display().to_string()];
    let cluster = with_images_and(&mut lab, "statics", &more);
    cluster.wait_value(&["pod", "web-statics"], "{.status.phase}", "Running");
    let told = lab.process(cluster.process).log_text();
    assert!(
        told.contains("bad.yaml") && told.contains("spec.containers: Required value"),
        "{told}"
    );
    cluster.wait_log(&["web-statics"], "one\n");
    let words = ["exec", "web-statics", "--", "hostname"];
    assert_eq!(cluster.kubectl(&words), "web-statics\n");
    let source = "{.metadata.annotations.kubernetes\\.io/config\\.source}";
    assert_eq!(cluster.value(&["pod", "web-statics"], source), "file");

    // What is deleted there comes again; what runs here does not notice.
    let value = |path: &str| cluster.value(&["pod", "web-statics"], path);
    let (uid, container) = (
        "{.metadata.uid}",
        "{.status.containerStatuses[0].containerID}",
    );
    let (first, runs) = (value(uid), value(container));
    cluster.kubectl(&["delete", "pod", "web-statics", "--wait=false"]);
    wait("another mirror is there", || {
        let now = value(uid);
        (!now.is_empty() && now != first).then_some(())
    });
    cluster.wait_value(&["pod", "web-statics"], container, &runs);

    // Another file is another pod.
    put(
        &files,
        "web.yaml",
        &manifest("web", IMAGE_2, "echo two", ""),
    );
    cluster.wait_value(
        &["pod", "web-statics"],
        "{.spec.containers[0].image}",
        IMAGE_2,
    );
    cluster.wait_value(&["pod", "web-statics"], "{.status.phase}", "Running");
    cluster.wait_for(&["pod", "web-statics"], container, "another", |now| {
        !now.is_empty() && now != runs
    });
    cluster.wait_log(&["web-statics"], "two\n");

    // A broken one leaves it as it is; one that goes takes it along.
    put(&files, "bad.yaml", &manifest("bad", IMAGE, "echo good", ""));
    put(&files, "web.yaml", "kind: [");
    cluster.wait_value(&["pod", "bad-statics"], "{.status.phase}", "Running");
    assert_eq!(value("{.status.phase}"), "Running");
    for name in ["web", "bad"] {
        let file = files.join(format!("{name}.yaml"));
        let name = format!("{name}-statics");
        let hash = "{.metadata.annotations.kubernetes\\.io/config\\.hash}";
        let uid = cluster.value(&["pod", &name], hash);
        let kept = cluster.host.data_dir.join("agent/pods").join(&uid);
        assert!(!uid.is_empty() && kept.exists(), "{}", kept.display());
        std::fs::remove_file(file).unwrap();
        cluster.wait_gone(&["pod", &name]);
        // The server shows it until nothing of it is left: what runs takes two seconds to end.
        assert!(!kept.exists(), "{}", kept.display());
    }
    let containers = cluster.host.data_dir.join("agent/containers");
    let left: Vec<_> = std::fs::read_dir(containers).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_node_that_cannot_reach_its_server_runs_its_own_pods() {
    let mut lab = Lab::new();
    let server = lab.server("center", &[]);
    let host = lab.host("far");
    import(&host, &pictures::busybox(&lab.path(""), IMAGE));
    let files = lab.path("manifests");
    std::fs::create_dir_all(&files).unwrap();
    let environment = [("CORACLE_STATIC_PODS", files.display().to_string())];
    let environment: Vec<_> = environment
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let given = token(&server);
    let agent = start_agent(&mut lab, &server, &host, "far", &given);
    lab.wait_ready(&server, "far");
    lab.process(agent).terminate();
    lab.set_link(&host, false);

    let marks = lab.path("marks");
    std::fs::create_dir_all(&marks).unwrap();
    let more = format!(
        "    volumeMounts: [{{ name: marks, mountPath: /marks }}]\n  volumes: [{{ name: marks, hostPath: {{ path: {} }} }}]",
        marks.display()
    );
    // Takes a while to end.
    let script = "touch /marks/runs; cat /sys/class/net/eth0/operstate > /marks/net; trap 'sleep 3; \
                  /bin/busybox rm /marks/runs; exit 0' TERM; sleep 100000 & wait";
    put(&files, "lone.yaml", &manifest("lone", IMAGE, script, &more));
    let url = format!("https://{}:6443", server.host.address);
    let data_dir = host.data_dir.display().to_string();
    let words = [
        "agent",
        "--server",
        &url,
        "--node-name",
        "far",
        "--data-dir",
        &data_dir,
    ];
    let agent = lab.spawn_with(&host, &environment, &words);
    wait("it runs, with its network", || {
        let state = std::fs::read_to_string(marks.join("net")).unwrap_or_default();
        (state == "up\n").then_some(())
    });
    lab.set_link(&host, true);
    server.wait_value(&["pod", "lone-far"], "{.status.phase}", "Running");
    let restarts = "{.status.containerStatuses[0].restartCount}";
    assert_eq!(server.value(&["pod", "lone-far"], restarts), "0");

    // A file that changed while the agent was down: one ends before the other begins.
    lab.process(agent).terminate();
    let script = "test -e /marks/runs && echo two > /marks/met || echo one > /marks/met";
    put(&files, "lone.yaml", &manifest("lone", IMAGE, script, &more));
    assert!(marks.join("runs").exists());
    lab.spawn_with(&host, &environment, &words);
    let met = wait("the other runs", || {
        let met = std::fs::read_to_string(marks.join("met")).unwrap_or_default();
        met.ends_with('\n').then_some(met)
    });
    assert_eq!(met, "one\n");
}
