//! What a newcomer does: up, get, create, the demo.

use crate::lab::{Lab, all_text, coracle, kubectls, run, wait};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

#[test]
fn up_makes_a_node_that_kubectl_sees() {
    let mut lab = Lab::new();
    let cluster = lab.cluster("gateway", &["--node-label", "site=north"]);
    for kubectl in kubectls() {
        let cluster = crate::lab::Cluster {
            kubectl,
            ..cluster.clone()
        };
        let nodes = cluster.kubectl(&["get", "nodes", "-o", "wide", "-l", "site=north"]);
        let row = nodes.lines().nth(1).unwrap();
        assert!(
            row.starts_with("gateway") && row.contains("Ready"),
            "{nodes}"
        );
        assert!(row.contains(&cluster.host.address), "{nodes}");
        assert!(cluster.kubectl(&["version"]).contains("v1.36"));
        assert!(cluster.kubectl(&["api-resources"]).contains("deploy"));
        assert!(
            cluster
                .kubectl(&["get", "namespaces"])
                .contains("kube-system")
        );
        assert!(
            cluster
                .kubectl(&["explain", "deployment.spec.strategy"])
                .contains("RollingUpdate")
        );
        let described = cluster.kubectl(&["describe", "node", "gateway"]);
        assert!(described.contains("KubeletReady"), "{described}");
    }
    wait("the token that enrolled the node is gone", || {
        let kind = "--field-selector=type=bootstrap.kubernetes.io/token";
        let left = cluster.kubectl(&["-n", "kube-system", "get", "secrets", kind, "-o", "name"]);
        left.is_empty().then_some(())
    });
    let mode =
        std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(cluster.kubeconfig()).unwrap());
    assert_eq!(mode & 0o777, 0o600);
    assert!(lab.process(cluster.process).terminate().success());
}

/// Runs the demo, interrupts it once at the line that holds `stop_at`, and gives all it said.
fn demo(host: &crate::lab::Host, stop_at: &str) -> String {
    // Passes the signal on, and ends what one signal does not end.
    let mut child = host
        .command("timeout")
        .args(["-s", "KILL", "150"])
        .arg(coracle())
        .args(["up", "--demo", "--node-name", "demo"])
        .arg("--data-dir")
        .arg(&host.data_dir)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut seen = String::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        seen.push_str(&line);
        seen.push('\n');
        if let Some(kubeconfig) = line.strip_prefix("kubeconfig: ") {
            // What a newcomer makes beside it neither holds the end up nor stays.
            let make = [
                "create",
                "deployment",
                "own",
                "--image=registry.invalid/own",
            ];
            let mut kubectl = host.command(&kubectls()[0]);
            kubectl.args(["--kubeconfig", kubeconfig.trim()]).args(make);
            assert!(kubectl.status().unwrap().success());
        }
        if line.contains(stop_at) {
            crate::lab::run("kill", &["-s", "INT", &child.id().to_string()]);
        }
    }
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{seen}{}", all_text(&output));
    assert!(seen.contains("Nothing is left behind."), "{seen}");
    let told = all_text(&output);
    assert!(!told.contains("were not gone"), "{told}");
    assert!(!host.data_dir.exists());
    seen
}

#[test]
fn the_demo_is_taken_down_by_one_interrupt_while_it_begins() {
    let mut lab = Lab::new();
    demo(&lab.host("demo"), "asks for 3 pods");
}

#[test]
fn the_demo_shows_around_and_leaves_nothing_behind() {
    let mut lab = Lab::new();
    let host = lab.host("demo");
    let seen = demo(&host, "stop:");
    for part in [
        "3 of 3 pods are ready",
        "Hello from pod demo-",
        "kubeconfig:",
        "Running",
    ] {
        assert!(
            seen.contains(part),
            "the demo should show {part:?}:\n{seen}"
        );
    }
    // What `ip` says of peers in the namespaces of other tests goes to its error output.
    let links = run("ip", &["-n", &host.namespace, "-o", "link"]);
    assert_eq!(
        links.lines().count(),
        2,
        "only lo and eth0 were there before:\n{links}"
    );
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(
        !mounts.contains(&host.data_dir.display().to_string()),
        "{mounts}"
    );
}

#[test]
fn what_up_keeps_is_there_after_a_restart() {
    let mut lab = Lab::new();
    let cluster = lab.cluster("keeper", &[]);
    cluster.kubectl(&["create", "configmap", "settings", "--from-literal=a=b"]);
    assert!(lab.process(cluster.process).terminate().success());
    let data_dir = cluster.host.data_dir.display().to_string();
    let again = lab.spawn(
        &cluster.host.clone(),
        &["up", "--data-dir", &data_dir, "--node-name", "keeper"],
    );
    wait("the restarted server answers", || {
        cluster.try_kubectl(&["get", "configmap", "settings"]).ok()
    });
    assert_eq!(cluster.value(&["configmap", "settings"], "{.data.a}"), "b");
    assert!(lab.process(again).terminate().success());
}
