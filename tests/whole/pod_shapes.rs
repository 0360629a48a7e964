//! Pods of unusual shapes: looked into, with shared processes, with full names, with images as
//! volumes.

use crate::lab::{Cluster, Lab, run, wait};
use crate::workloads::{IMAGE, IMAGE_2, with_images};

fn pod(name: &str, more: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{ name: {name} }}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - {{ name: main, image: {IMAGE}, command: [sleep, "100000"] }}
{more}
"#
    )
}

#[test]
fn a_running_pod_is_looked_into() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "debug");
    cluster.apply(&pod("box", ""));
    cluster.wait_value(&["pod", "box"], "{.status.phase}", "Running");
    let image = format!("--image={IMAGE_2}");
    let look = "tr '\\0' ' ' < /proc/1/cmdline; echo; read line; echo said $line";
    let debug = [
        "debug",
        "box",
        "-q",
        "-i",
        &image,
        "--target=main",
        "-c",
        "lens",
    ];
    let mut child = cluster
        .kubectl_command(&[&debug[..], &["--", "sh", "-c", look]].concat())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let path = "{.status.ephemeralContainerStatuses[0].state.running.startedAt}";
    wait("the debugger runs", || {
        (!cluster.value(&["pod", "box"], path).is_empty()).then_some(())
    });
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, b"hello\n").unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.ends_with("said hello\n"), "{said}");
    cluster.wait_log(&["box", "-c", "lens"], "sleep 100000 \nsaid hello\n");
    let state = "{.status.ephemeralContainerStatuses[0].state.terminated.reason}";
    cluster.wait_value(&["pod", "box"], state, "Completed");
    // It is over for good, and the pod runs on.
    let ready = "{.status.phase} {.status.containerStatuses[0].restartCount}";
    assert_eq!(cluster.value(&["pod", "box"], ready), "Running 0");
    wait("the events tell of it", || {
        let paths = cluster.value(&["events"], "{..involvedObject.fieldPath}");
        paths
            .contains("spec.ephemeralContainers{lens}")
            .then_some(())
    });

    let absent = [
        "debug",
        "box",
        &image,
        "--target=main",
        "-c",
        "late",
        "--",
        "true",
    ];
    cluster.kubectl(&absent);
    let code = "{.status.ephemeralContainerStatuses[?(@.name=='late')].state.terminated.exitCode}";
    cluster.wait_value(&["pod", "box"], code, "0");
}

#[test]
fn processes_names_and_images_are_shared_as_asked() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "shape");
    let more = format!(
        r#"
  - {{ name: other, image: {IMAGE}, command: [sleep, "200000"] }}
  shareProcessNamespace: true
  hostname: one
  subdomain: two
  setHostnameAsFQDN: true
  hostAliases: [{{ ip: 192.0.2.7, hostnames: [far.example, away.example] }}]
"#
    );
    cluster.apply(&pod("shared", &more));
    cluster.wait_value(&["pod", "shared"], "{.status.phase}", "Running");
    let inside = |pod: &str, line: &str| {
        let words = ["exec", pod, "-c", "main", "--", "sh", "-c", line];
        cluster.kubectl(&words)
    };
    let ready = "{.status.containerStatuses[*].ready}";
    cluster.wait_value(&["pod", "shared"], ready, "true true");
    wait("each sees the processes of both", || {
        let line = "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '";
        let seen = inside("shared", line);
        (seen.contains("sleep 100000") && seen.contains("sleep 200000")).then_some(())
    });
    assert_eq!(
        inside("shared", "hostname"),
        "one.two.default.svc.cluster.local\n"
    );
    let hosts = inside("shared", "cat /etc/hosts");
    assert!(
        hosts.contains("\tone.two.default.svc.cluster.local\tone\n"),
        "{hosts}"
    );
    assert!(
        hosts.ends_with("192.0.2.7\tfar.example\taway.example\n"),
        "{hosts}"
    );

    it_has_another_sandbox(&cluster);

    let more = format!(
        r#"
    volumeMounts:
    - {{ name: pictures, mountPath: /whole }}
    - {{ name: pictures, mountPath: /part, subPath: bin }}
  volumes: [{{ name: pictures, image: {{ reference: {IMAGE_2}, pullPolicy: Never }} }}]
"#
    );
    let manifest = pod("gallery", &more).replace("[sleep, \"100000\"] }", "[sleep, \"100000\"]");
    let manifest = manifest.replace("- { name: main, image:", "- name: main\n    image:");
    let manifest = manifest.replace(", command: [sleep", "\n    command: [sleep");
    cluster.apply(&manifest);
    cluster.wait_value(&["pod", "gallery"], "{.status.phase}", "Running");
    let kept = inside("gallery", "ls /whole/bin | head -1; ls /part | head -1");
    let lines: Vec<&str> = kept.lines().collect();
    assert!(lines.len() == 2 && lines[0] == lines[1], "{kept}");
    let refused = inside(
        "gallery",
        "touch /whole/x 2>&1; /whole/bin/busybox true 2>&1; true",
    );
    assert!(
        refused.contains("Read-only") && refused.contains("denied"),
        "{refused}"
    );
}

/// What keeps its processes together dies: another sandbox takes the place of all of it.
fn it_has_another_sandbox(cluster: &Cluster) {
    let agent = cluster.host.data_dir.join("agent");
    let within = |part: &str| -> Vec<_> {
        let entries = std::fs::read_dir(agent.join(part)).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    let former = within("sandboxes").remove(0);
    let reaper = std::fs::read_to_string(former.join("reaper.json")).unwrap();
    let address = || cluster.value(&["pod", "shared"], "{.status.podIP}");
    let before = address();
    run("kill", &["-s", "KILL", &reaper]);
    let now = wait("it has another address", || {
        Some(address()).filter(|now| !now.is_empty() && *now != before)
    });
    assert!(former.join("stopped").exists());
    let addresses = within("network");
    let held: Vec<_> = addresses.iter().map(|path| path.file_name()).collect();
    assert_eq!(held, [Some(now.as_ref())]);
    let ready = "{.status.containerStatuses[*].ready}";
    cluster.wait_value(&["pod", "shared"], ready, "true true");
}

#[test]
fn a_running_pod_is_given_another_size() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "resize");
    let size =
        "resources: { requests: { cpu: 100m, memory: 32Mi }, limits: { cpu: 200m, memory: 64Mi } }";
    let policy = "resizePolicy: [{ resourceName: memory, restartPolicy: RestartContainer }]";
    let command = r#"command: [sleep, "100000"]"#;
    let manifest = pod("elastic", "").replace(command, &format!("{command}, {size}, {policy}"));
    cluster.apply(&manifest);
    cluster.wait_value(&["pod", "elastic"], "{.status.phase}", "Running");
    let resize = |sizes: &str| {
        let patch =
            format!(r#"{{"spec":{{"containers":[{{"name":"main","resources":{sizes}}}]}}}}"#);
        cluster.kubectl(&[
            "patch",
            "pod",
            "elastic",
            "--subresource=resize",
            "-p",
            &patch,
        ]);
    };
    let has = "{.status.containerStatuses[0].resources.limits.cpu} \
               {.status.containerStatuses[0].resources.limits.memory} \
               {.status.containerStatuses[0].allocatedResources.cpu} \
               {.status.containerStatuses[0].restartCount} \
               {.status.conditions[?(@.reason=='Deferred')].type}";
    cluster.wait_value(&["pod", "elastic"], has, "200m 64Mi 100m 0 ");
    resize(r#"{"requests":{"cpu":"150m"},"limits":{"cpu":"300m"}}"#);
    cluster.wait_value(&["pod", "elastic"], has, "300m 64Mi 150m 0 ");
    resize(r#"{"limits":{"memory":"96Mi"}}"#);
    cluster.wait_value(&["pod", "elastic"], has, "300m 96Mi 150m 1 ");
    let line = "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes \
                2>/dev/null; true";
    wait("its group has the new limit", || {
        let limit = cluster.try_kubectl(&["exec", "elastic", "--", "sh", "-c", line]);
        (limit.as_deref() == Ok("100663296\n")).then_some(())
    });

    // Another pod has most of the node: what this one has stays, until the other goes.
    let cpus = cluster.value(&["nodes"], "{.items[0].status.allocatable.cpu}");
    let rest = cpus.parse::<u64>().unwrap() * 1000 - 500;
    let size = format!("resources: {{ requests: {{ cpu: {rest}m }} }}");
    cluster.apply(&pod("hog", "").replace(command, &format!("{command}, {size}")));
    cluster.wait_value(&["pod", "hog"], "{.status.phase}", "Running");
    resize(r#"{"requests":{"cpu":"600m"},"limits":{"cpu":"700m"}}"#);
    cluster.wait_value(
        &["pod", "elastic"],
        has,
        "300m 96Mi 150m 1 PodResizePending",
    );
    let why = "{.status.conditions[?(@.type=='PodResizePending')].message}";
    let why = cluster.value(&["pod", "elastic"], why);
    let said = format!("enough resource: cpu, requested: 600, used: {rest}, capacity: ");
    assert!(why.contains(&said), "{why}");
    cluster.kubectl(&["delete", "pod", "hog"]);
    cluster.wait_value(&["pod", "elastic"], has, "700m 96Mi 600m 1 ");
    cluster.wait_events(&["ResizeStarted", "ResizeCompleted", "ResizeDeferred"]);
}

#[test]
fn one_container_makes_all_begin_again() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "again");
    // Ends with 42 the first time: the volume remembers.
    let once = "[ -e /v/was ] && exec sleep 100000; touch /v/was; exit 42";
    cluster.apply(&format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{ name: team }}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  volumes: [{{ name: v, emptyDir: {{}} }}]
  initContainers:
  - {{ name: first, image: {IMAGE}, command: [sh, -c, "echo begun >> /v/log"],
      volumeMounts: [{{ name: v, mountPath: /v }}] }}
  containers:
  - {{ name: other, image: {IMAGE}, command: [sleep, "100000"] }}
  - name: watch
    image: {IMAGE}
    command: [sh, -c, "{once}"]
    volumeMounts: [{{ name: v, mountPath: /v }}]
    restartPolicy: Never
    restartPolicyRules:
    - {{ action: RestartAllContainers, exitCodes: {{ operator: In, values: [42] }} }}
"#
    ));
    let pod = ["pod", "team"];
    let counts = "{.status.phase} {.status.initContainerStatuses[*].restartCount} \
                  {.status.containerStatuses[*].restartCount} \
                  {.status.containerStatuses[*].lastState.terminated.reason} \
                  {.status.conditions[?(@.type==\"Ready\")].status}";
    cluster.wait_value(
        &pod,
        counts,
        "Running 1 1 1 RestartingAllContainers RestartingAllContainers True",
    );
    let path = "{.status.conditions[?(@.type==\"AllContainersRestarting\")].status}";
    cluster.wait_value(&pod, path, "False");
    let log = cluster.kubectl(&["exec", "team", "-c", "watch", "--", "cat", "/v/log"]);
    assert_eq!(log, "begun\nbegun\n");
}
