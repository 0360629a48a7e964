//! Containers as users look into them: logs, exec, crash and restart, limits, init containers.

use crate::lab::{Cluster, Lab, all_text, wait};
use crate::workloads::{IMAGE, with_images};
use std::process::Stdio;

fn pod(name: &str, script: &str, more: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{ name: {name} }}
spec:
  terminationGracePeriodSeconds: 1
  {more}
  containers:
  - name: main
    image: {IMAGE}
    command: ["sh", "-c", "{script}"]
"#
    )
}

const FOREVER: &str = "trap 'exit 0' TERM; while true; do sleep 1; done";

fn wait_phase(cluster: &Cluster, name: &str, phase: &str) {
    cluster.wait_value(&["pod", name], "{.status.phase}", phase);
}

#[test]
fn logs_are_read_followed_and_cut() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "logs");
    cluster.apply(&pod(
        "talk",
        "for i in $(seq 1 20); do echo line $i; done",
        "restartPolicy: Never",
    ));
    wait_phase(&cluster, "talk", "Succeeded");
    let all = cluster.kubectl(&["logs", "talk"]);
    assert_eq!(all.lines().count(), 20, "{all}");
    assert_eq!(
        cluster.kubectl(&["logs", "talk", "--tail=2"]),
        "line 19\nline 20\n"
    );
    assert_eq!(cluster.kubectl(&["logs", "talk", "--since=1h"]), all);
    let stamped = cluster.kubectl(&["logs", "talk", "--timestamps", "--tail=1"]);
    assert!(
        stamped.starts_with("20") && stamped.ends_with("Z line 20\n"),
        "{stamped}"
    );

    cluster.apply(&pod(
        "tick",
        "i=0; while [ $i -lt 5 ]; do echo tick $i; i=$((i+1)); sleep 0.2; done",
        "restartPolicy: Never",
    ));
    wait("its log can be followed", || {
        let followed = cluster
            .kubectl_command(&["logs", "-f", "tick"])
            .output()
            .unwrap();
        (String::from_utf8_lossy(&followed.stdout) == "tick 0\ntick 1\ntick 2\ntick 3\ntick 4\n")
            .then_some(())
    });
    let error = cluster
        .try_kubectl(&["logs", "talk", "-c", "nobody"])
        .unwrap_err();
    assert!(
        error.contains("container nobody is not valid for pod talk"),
        "{error}"
    );
}

#[test]
fn exec_runs_with_and_without_a_terminal() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "exec");
    cluster.apply(&pod("box", FOREVER, ""));
    wait_phase(&cluster, "box", "Running");
    assert_eq!(
        cluster.kubectl(&["exec", "box", "--", "echo", "hello"]),
        "hello\n"
    );
    let failed = cluster
        .try_kubectl(&["exec", "box", "--", "sh", "-c", "exit 7"])
        .unwrap_err();
    assert!(failed.contains("exit code 7"), "{failed}");

    let mut child = cluster
        .kubectl_command(&["exec", "-i", "box", "--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let text = "all of this comes back\n".repeat(5000);
    let mut stdin = child.stdin.take().unwrap();
    let sent = text.clone();
    let writer = std::thread::spawn(move || {
        std::io::Write::write_all(&mut stdin, sent.as_bytes()).unwrap();
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), text);

    let said = on_terminal(&cluster, "true", &["exec", "-it", "box", "--", "tty"]);
    assert!(said.contains("/dev/pts/"), "{said}");
    // The size of the client's terminal comes when the command runs already.
    let script = "while test \"$(stty size)\" != '33 99'; do sleep 0.1; done; echo sized";
    let write = format!("echo {script:?} > /tmp/size");
    cluster.kubectl(&["exec", "box", "--", "sh", "-c", &write.replace('$', "\\$")]);
    let sized = ["exec", "-it", "box", "--", "sh", "/tmp/size"];
    let said = on_terminal(&cluster, "stty rows 33 cols 99", &sized);
    assert!(said.contains("sized"), "{said}");
}

/// kubectl asks for a terminal only when it has one: script(1) lends it, prepared by a command.
fn on_terminal(cluster: &Cluster, prepare: &str, arguments: &[&str]) -> String {
    let kubectl = cluster.kubectl_command(arguments);
    let line: Vec<String> = std::iter::once(kubectl.get_program())
        .chain(kubectl.get_args())
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    // In a group of its own it would have no terminal, and be stopped. One shell on every machine.
    let line = format!("{prepare}; timeout --foreground 100 {}", line.join(" "));
    let output = std::process::Command::new("script")
        .env("SHELL", "/bin/sh")
        .args(["-qec", &line, "/dev/null"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    all_text(&output)
}

#[test]
fn a_crash_restarts_with_back_off_and_keeps_the_last_log() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "crash");
    cluster.apply(&pod("crash", "echo about to fall; exit 3", ""));
    let state = "{.status.containerStatuses[0].state.waiting.reason}";
    cluster.wait_value(&["pod", "crash"], state, "CrashLoopBackOff");
    let code = "{.status.containerStatuses[0].lastState.terminated.exitCode}";
    assert_eq!(cluster.value(&["pod", "crash"], code), "3");
    assert_eq!(
        cluster.kubectl(&["logs", "crash", "--previous"]),
        "about to fall\n"
    );
    // Between two tries, each of which takes its place for a moment.
    wait("the row says so", || {
        let row = cluster.kubectl(&["get", "pod", "crash"]);
        row.contains("CrashLoopBackOff").then_some(())
    });
    wait("an event tells of the back-off", || {
        cluster
            .kubectl(&["get", "events"])
            .contains("Back-off restarting failed container")
            .then_some(())
    });
}

#[test]
fn a_container_over_its_memory_is_oom_killed() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "oom");
    // dd holds one block in memory: it is over the limit as soon as it fills it.
    let script = "dd if=/dev/zero of=/dev/null bs=64M count=1";
    let limits = "    resources: { limits: { memory: 16Mi } }\n";
    cluster.apply(&(pod("eats", &format!("exec {script}"), "restartPolicy: Never") + limits));
    wait("it ends", || {
        let reason = "{.status.containerStatuses[0].state.terminated.reason}";
        (cluster.value(&["pod", "eats"], reason) == "OOMKilled").then_some(())
    });
    assert_eq!(
        cluster.value(
            &["pod", "eats"],
            "{.status.containerStatuses[0].state.terminated.exitCode}"
        ),
        "137"
    );
}

#[test]
fn init_containers_run_in_order_and_share_a_volume() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "init");
    cluster.apply(&format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{ name: steps }}
spec:
  restartPolicy: Never
  hostname: stepper
  volumes: [{{ name: work, emptyDir: {{}} }}]
  initContainers:
  - {{ name: one, image: {IMAGE}, command: [sh, -c, "echo one > /work/log"], volumeMounts: [{{ name: work, mountPath: /work }}] }}
  - {{ name: two, image: {IMAGE}, command: [sh, -c, "echo two >> /work/log"], volumeMounts: [{{ name: work, mountPath: /work }}] }}
  containers:
  - name: main
    image: {IMAGE}
    command: [sh, -c]
    args: ["cat /work/log; echo $GREETING; hostname; id -u; id -g; pwd"]
    workingDir: /tmp
    env: [{{ name: NAME, value: you }}, {{ name: GREETING, value: "hello $(NAME)" }}]
    securityContext: {{ runAsUser: 1234, runAsGroup: 5678 }}
    volumeMounts: [{{ name: work, mountPath: /work }}]
"#
    ));
    wait_phase(&cluster, "steps", "Succeeded");
    let expected = "one\ntwo\nhello you\nstepper\n1234\n5678\n/tmp\n";
    assert_eq!(cluster.kubectl(&["logs", "steps"]), expected);
}

#[test]
fn pods_reach_each_other_by_their_addresses() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "reach");
    let serve =
        "busybox mkdir -p /tmp/www; echo served > /tmp/www/index.html; httpd -f -p 80 -h /tmp/www";
    cluster.apply(&pod("serve", serve, ""));
    wait_phase(&cluster, "serve", "Running");
    let address = cluster.value(&["pod", "serve"], "{.status.podIP}");
    assert!(address.starts_with("10.42."), "{address}");
    cluster.apply(&pod("ask", FOREVER, ""));
    wait_phase(&cluster, "ask", "Running");
    let url = format!("http://{address}/");
    let answer = wait("the page is served", || {
        cluster
            .try_kubectl(&["exec", "ask", "--", "wget", "-q", "-O", "-", &url])
            .ok()
    });
    assert_eq!(answer, "served\n");

    cluster.apply(&pod(
        "host",
        "ip -o addr show eth0; sleep 100",
        "hostNetwork: true",
    ));
    wait_phase(&cluster, "host", "Running");
    assert_eq!(
        cluster.value(&["pod", "host"], "{.status.podIP}"),
        cluster.host.address
    );
    wait("it sees the host's network", || {
        cluster
            .kubectl(&["logs", "host"])
            .contains(&cluster.host.address)
            .then_some(())
    });
}

#[test]
fn an_image_that_is_not_there_is_told() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "noimage");
    cluster.kubectl(&["run", "ghost", "--image=127.0.0.1:1/no/such:1"]);
    let reason = "{.status.containerStatuses[0].state.waiting.reason}";
    cluster.wait_value(&["pod", "ghost"], reason, "ImagePullBackOff");
    cluster.wait_events(&["Failed to pull image \"127.0.0.1:1/no/such:1\""]);
}
