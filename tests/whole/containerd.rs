//! Pods on a containerd of the test's own: what the runtime that is built in does, containerd does
//! too, and keeps over restarts of either.

use crate::lab::{Cluster, Host, Lab, all_text, coracle, run, wait};
use crate::pictures;
use crate::workloads::{IMAGE, web};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

const PAUSE: &str = "example.test/pause:1";
/// Where Debian has the plugins of containernetworking-plugins.
const PLUGINS: &str = "/usr/lib/cni";

/// A containerd on a host of the lab, with its network by CNI.
struct Containerd {
    directory: PathBuf,
    host: Host,
    child: Child,
}

impl Containerd {
    fn start(lab: &Lab, host: &Host) -> Self {
        let directory = lab.path("containerd");
        std::fs::create_dir_all(directory.join("net.d")).unwrap();
        let at = directory.display().to_string();
        let configuration = format!(
            r#"
version = 2
root = "{at}/root"
state = "{at}/state"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
[grpc]
  address = "{at}/s"
[ttrpc]
  address = "{at}/t"
[plugins."io.containerd.internal.v1.opt"]
  path = "{at}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{PLUGINS}"
    conf_dir = "{at}/net.d"
"#
        );
        std::fs::write(directory.join("config.toml"), configuration).unwrap();
        let network = serde_json::json!({
            "cniVersion": "0.4.0",
            "name": "lab",
            "plugins": [{
                "type": "bridge",
                "bridge": "cni0",
                "isGateway": true,
                "ipam": {
                    "type": "host-local",
                    "dataDir": format!("{at}/addresses"),
                    "ranges": [[{ "subnet": "10.88.0.0/24" }]],
                    "routes": [{ "dst": "0.0.0.0/0" }],
                },
            }],
        });
        let list = directory.join("net.d/10-lab.conflist");
        std::fs::write(list, network.to_string()).unwrap();
        let mut containerd = Self {
            child: Self::spawn(host, &directory),
            directory,
            host: host.clone(),
        };
        containerd.wait_for_it();
        containerd
    }

    fn spawn(host: &Host, directory: &std::path::Path) -> Child {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(directory.join("log"))
            .unwrap();
        host.command("containerd")
            .arg("--config")
            .arg(directory.join("config.toml"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap()
    }

    fn wait_for_it(&mut self) {
        wait("containerd answers", || {
            let mut version = self.ctr(&["version"]);
            version.output().unwrap().status.success().then_some(())
        });
    }

    /// Its containers run on.
    fn restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = Self::spawn(&self.host, &self.directory);
        self.wait_for_it();
    }

    fn ctr(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("ctr");
        command
            .arg("--address")
            .arg(self.directory.join("s"))
            .args(["--namespace", "k8s.io"])
            .args(arguments);
        command
    }

    fn import(&self, archive: &std::path::Path) {
        let archive = archive.display().to_string();
        let output = self.ctr(&["images", "import", &archive]).output().unwrap();
        assert!(output.status.success(), "{}", all_text(&output));
    }

    fn endpoint(&self) -> String {
        format!("unix://{}/s", self.directory.display())
    }

    fn containers(&self) -> Vec<String> {
        let output = self.ctr(&["containers", "list", "-q"]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for Containerd {
    /// A test that failed leaves containers, which are ended with their shims.
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.directory.join("log")).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            let tail = lines[lines.len().saturating_sub(20)..].join("\n");
            eprintln!("--- end of containerd's log\n{tail}");
            for id in self.containers() {
                drop(self.ctr(&["task", "delete", "--force", &id]).output());
            }
        }
        drop(self.child.kill());
        drop(self.child.wait());
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let at = self.directory.display().to_string();
        for mount in mounts
            .lines()
            .rev()
            .filter_map(|line| line.split(' ').nth(4))
        {
            if mount.starts_with(&at) {
                run("umount", &["--lazy", mount]);
            }
        }
    }
}

/// `coracle up` over a containerd that has the images.
fn cluster(lab: &mut Lab, name: &str) -> (Cluster, Containerd) {
    let host = lab.host(name);
    let containerd = Containerd::start(lab, &host);
    containerd.import(&pictures::busybox(&lab.path(""), IMAGE));
    let command = ["sleep", "2147483647"];
    containerd.import(&pictures::busybox_with(&lab.path(""), PAUSE, &command));
    let endpoint = containerd.endpoint();
    let more = ["--container-runtime-endpoint", &endpoint];
    (lab.cluster_on(host, name, &more), containerd)
}

fn exec(cluster: &Cluster, pod: &str, script: &str) -> Result<String, String> {
    cluster.try_kubectl(&["exec", pod, "--", "sh", "-c", script])
}

#[test]
fn a_deployment_lives_on_containerd_and_leaves_nothing() {
    let mut lab = Lab::new();
    let (cluster, mut containerd) = cluster(&mut lab, "boat");
    let version = "{.status.nodeInfo.containerRuntimeVersion}";
    let version = cluster.value(&["node", "boat"], version);
    assert!(version.starts_with("containerd://1."), "{version}");
    cluster.apply(&web(IMAGE, 2));
    cluster.rolled_out("deployment/web");
    let names = cluster.value(&["pods", "-l", "app=web"], "{.items[*].metadata.name}");
    let names: Vec<&str> = names.split(' ').collect();
    let pod = ["pod", names[0]];
    let address = cluster.value(&pod, "{.status.podIP}");
    assert!(
        address.starts_with("10.88.0."),
        "the address is CNI's: {address}"
    );
    let id = cluster.value(&pod, "{.status.containerStatuses[0].containerID}");
    assert!(id.starts_with("containerd://"), "{id}");
    cluster.wait_log(&[names[0]], "started\n");

    assert_eq!(
        exec(&cluster, names[0], "hostname").unwrap(),
        format!("{}\n", names[0])
    );
    let failed = exec(&cluster, names[0], "exit 7").unwrap_err();
    assert!(failed.contains("exit code 7"), "{failed}");
    let told = exec(&cluster, names[0], "ip addr; echo >&2 wailed").unwrap();
    assert!(told.contains(&address), "{told}");
    let output = echo(&cluster, names[0], "all of this comes back\n");
    assert_eq!(output, "all of this comes back\n");

    // Neither loses what runs when it starts anew.
    let seen = containerd.containers();
    lab.process(cluster.process).kill();
    let endpoint = containerd.endpoint();
    let cluster = lab.cluster_on(
        cluster.host,
        "boat",
        &["--container-runtime-endpoint", &endpoint],
    );
    containerd.restart();
    wait("commands run again", || {
        exec(&cluster, names[0], "true").ok()
    });
    assert_eq!(containerd.containers(), seen);
    let restarts = "{.status.containerStatuses[0].restartCount}";
    assert_eq!(cluster.value(&pod, restarts), "0");

    cluster.kubectl(&["delete", "deployment", "web", "--wait"]);
    wait("containerd has nothing of the pods", || {
        containerd.containers().is_empty().then_some(())
    });
    wait("the API has nothing of the pods", || {
        cluster.value(&["pods"], "{.items}").eq("[]").then_some(())
    });
    let directories = ["pods", "logs", "parts"].map(|name| {
        let directory = cluster.host.data_dir.join("agent").join(name);
        std::fs::read_dir(directory).into_iter().flatten().count()
    });
    assert_eq!(directories, [0, 0, 0]);
    wipe(&mut lab, &cluster);
}

/// By way of `cat`, which ends with its input.
fn echo(cluster: &Cluster, pod: &str, text: &str) -> String {
    let mut child = cluster
        .kubectl_command(&["exec", "-i", pod, "--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, text.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn crashes_probes_parts_and_limits_are_containerds_too() {
    let mut lab = Lab::new();
    let (cluster, containerd) = cluster(&mut lab, "keel");
    cluster.apply(&format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{ name: crash }}
spec:
  containers:
  - {{ name: main, image: "{IMAGE}", command: [sh, -c, "echo last words > /dev/termination-log; exit 3"] }}
---
apiVersion: v1
kind: Pod
metadata: {{ name: rich }}
spec:
  terminationGracePeriodSeconds: 1
  volumes: [{{ name: work, emptyDir: {{}} }}]
  initContainers:
  - {{ name: first, image: "{IMAGE}", command: [sh, -c, "echo kept > /work/file"], volumeMounts: [{{ name: work, mountPath: /work, subPath: a/b }}] }}
  containers:
  - name: main
    image: "{IMAGE}"
    command: [sh, -c, "trap 'exit 0' TERM; httpd -p 8080 -h /work; touch /tmp/ready; while true; do sleep 1; done"]
    securityContext: {{ runAsUser: 0, runAsGroup: 5678, readOnlyRootFilesystem: false }}
    resources: {{ limits: {{ memory: 32Mi, cpu: 100m }} }}
    volumeMounts: [{{ name: work, mountPath: /work, subPath: a/b }}]
    readinessProbe: {{ exec: {{ command: [cat, /tmp/ready] }}, periodSeconds: 1, timeoutSeconds: 20 }}
    livenessProbe: {{ httpGet: {{ port: 8080, path: /file }}, periodSeconds: 1, timeoutSeconds: 20 }}
"#
    ));
    let last = "{.status.containerStatuses[0].lastState.terminated.message}";
    cluster.wait_value(&["pod", "crash"], last, "last words\n");
    let code = "{.status.containerStatuses[0].lastState.terminated.exitCode}";
    assert_eq!(cluster.value(&["pod", "crash"], code), "3");
    let ready = "{.status.containerStatuses[0].ready}";
    cluster.wait_value(&["pod", "rich"], ready, "true");
    assert_eq!(
        exec(&cluster, "rich", "cat /work/file; id -g").unwrap(),
        "kept\n5678\n"
    );
    assert_eq!(forwarded(&cluster, "rich"), "kept\n");
    cluster.kubectl(&["delete", "pod", "crash", "rich", "--wait"]);
    wait("containerd has nothing of the pods", || {
        containerd.containers().is_empty().then_some(())
    });
    wipe(&mut lab, &cluster);
}

/// While containerd is there: a node that is wiped has no runtime any more.
fn wipe(lab: &mut Lab, cluster: &Cluster) {
    lab.process(cluster.process).kill();
    let data_dir = cluster.host.data_dir.display().to_string();
    let wipe = ["wipe", "--data-dir", &data_dir];
    let wiped = cluster.host.command(coracle()).args(wipe).output().unwrap();
    assert!(wiped.status.success(), "{}", all_text(&wiped));
}

/// Through `kubectl port-forward`, from the pod's port 8080.
fn forwarded(cluster: &Cluster, pod: &str) -> String {
    let mut child = cluster
        .kubectl_command(&["port-forward", pod, ":8080"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = String::new();
    // Kept open: kubectl ends when nobody hears what it says.
    let mut stdout = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut stdout, &mut told).unwrap();
    let port = told
        .split(" -> ")
        .next()
        .unwrap()
        .rsplit(':')
        .next()
        .unwrap();
    let url = format!("http://127.0.0.1:{port}/file");
    let output = cluster.host.command("curl").args(["-s", &url]).output();
    child.kill().unwrap();
    child.wait().unwrap();
    drop(stdout);
    String::from_utf8_lossy(&output.unwrap().stdout).into_owned()
}
