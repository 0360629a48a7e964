//! Hosts in network namespaces on one bridge, or on two with a router between, and the processes
//! that run on them.
//!
//! A `Lab` takes everything down when it is dropped: processes, containers, namespaces, files.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Long enough for a slow machine with other tests on it, short enough to end a stuck test.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// Between two looks at a predicate.
pub const LOOK_EVERY: Duration = Duration::from_millis(50);

static LABS: AtomicU32 = AtomicU32::new(0);

pub struct Lab {
    prefix: String,
    directory: tempfile::TempDir,
    hosts: BTreeMap<String, Host>,
    processes: Vec<Process>,
}

/// A machine of the lab: a network namespace with one address and a data directory.
#[derive(Clone)]
pub struct Host {
    pub namespace: String,
    pub address: String,
    pub data_dir: PathBuf,
    link: String,
}

/// A bridge with machines on it.
struct Segment {
    bridge: &'static str,
    /// Of its /24.
    prefix: &'static str,
}

const NEAR: Segment = Segment {
    bridge: "hub",
    prefix: "10.99.0",
};
const FAR: Segment = Segment {
    bridge: "far",
    prefix: "10.99.1",
};

pub struct Process {
    child: Child,
    pub log: PathBuf,
}

impl Process {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn kill(&mut self) {
        drop(self.child.kill());
        self.child.wait().unwrap();
    }

    /// SIGTERM, then waits for the end.
    pub fn terminate(&mut self) -> std::process::ExitStatus {
        self.signal("TERM");
        wait("a process ends", || self.child.try_wait().unwrap())
    }

    pub fn signal(&self, name: &str) {
        run("kill", &["-s", name, &self.pid().to_string()]);
    }

    pub fn log_text(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }
}

/// Waits until `look` finds something; a test that waits for ever fails with `what` instead.
#[track_caller]
pub fn wait<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(now() < end, "waited {PATIENCE:?} for this to hold: {what}");
        std::thread::sleep(LOOK_EVERY);
    }
}

#[allow(clippy::disallowed_methods)] // A test's own deadline.
pub fn now() -> Instant {
    Instant::now()
}

#[track_caller]
pub fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}",
        all_text(&output)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn all_text(output: &Output) -> String {
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    write!(text, "{}", String::from_utf8_lossy(&output.stderr)).unwrap();
    text
}

pub fn coracle() -> &'static str {
    env!("CARGO_BIN_EXE_coracle")
}

/// Every kubectl that the tests are to be run with: the machine's, and the one tests/run installs.
#[allow(clippy::disallowed_methods)] // Tests are configured by the command that runs them.
pub fn kubectls() -> Vec<String> {
    let installed = std::env::var("CORACLE_TEST_KUBECTL").ok();
    let own = Command::new("kubectl")
        .arg("version")
        .arg("--client")
        .output();
    let own = own
        .is_ok_and(|output| output.status.success())
        .then(|| "kubectl".to_owned());
    let all: Vec<String> = installed.into_iter().chain(own).collect();
    assert!(
        !all.is_empty(),
        "no kubectl: run the tests with tests/run, which installs one"
    );
    all
}

impl Lab {
    pub fn new() -> Self {
        assert!(
            nix::unistd::geteuid().is_root(),
            "whole-binary tests need root"
        );
        let number = LABS.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("cl{}x{number}", std::process::id());
        let directory = tempfile::Builder::new()
            .prefix("coracle-lab")
            .tempdir()
            .unwrap();
        let lab = Self {
            prefix,
            directory,
            hosts: BTreeMap::new(),
            processes: Vec::new(),
        };
        let hub = lab.hub();
        run("ip", &["netns", "add", &hub]);
        run("ip", &["-n", &hub, "link", "set", "lo", "up"]);
        run("ip", &["-n", &hub, "link", "add", "hub", "type", "bridge"]);
        run(
            "ip",
            &["-n", &hub, "addr", "add", "10.99.0.254/24", "dev", "hub"],
        );
        run("ip", &["-n", &hub, "link", "set", "hub", "up"]);
        lab
    }

    fn hub(&self) -> String {
        format!("{}-hub", self.prefix)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Adds a machine on the lab's network.
    pub fn host(&mut self, name: &str) -> Host {
        self.host_on(name, &NEAR)
    }

    /// Adds a machine on another segment, behind a router.
    pub fn far_host(&mut self, name: &str) -> Host {
        let hub = self.hub();
        if !self
            .hosts
            .values()
            .any(|host| host.address.starts_with(FAR.prefix))
        {
            let router = format!("{}.254/24", FAR.prefix);
            run(
                "ip",
                &["-n", &hub, "link", "add", FAR.bridge, "type", "bridge"],
            );
            run(
                "ip",
                &["-n", &hub, "addr", "add", &router, "dev", FAR.bridge],
            );
            run("ip", &["-n", &hub, "link", "set", FAR.bridge, "up"]);
            let forward = "echo 1 > /proc/sys/net/ipv4/ip_forward";
            run("ip", &["netns", "exec", &hub, "sh", "-c", forward]);
        }
        self.host_on(name, &FAR)
    }

    fn host_on(&mut self, name: &str, segment: &Segment) -> Host {
        let namespace = format!("{}-{name}", self.prefix);
        let number = self.hosts.len() + 1;
        let (hub, link) = (self.hub(), format!("port{number}"));
        let address = format!("{}.{number}", segment.prefix);
        let (subnet, router) = (format!("{address}/24"), format!("{}.254", segment.prefix));
        run("ip", &["netns", "add", &namespace]);
        let peer = ["type", "veth", "peer", "name", "eth0", "netns", &namespace];
        run(
            "ip",
            &[&["-n", &hub, "link", "add", &link], &peer[..]].concat(),
        );
        run(
            "ip",
            &[
                "-n",
                &hub,
                "link",
                "set",
                &link,
                "master",
                segment.bridge,
                "up",
            ],
        );
        for arguments in [
            &["link", "set", "lo", "up"][..],
            &["addr", "add", &subnet, "dev", "eth0"],
            &["link", "set", "eth0", "up"],
            &["route", "add", "default", "via", &router],
        ] {
            run("ip", &[&["-n", &namespace], arguments].concat());
        }
        let data_dir = self.path(name);
        let host = Host {
            namespace,
            address,
            data_dir,
            link,
        };
        self.hosts.insert(name.to_owned(), host.clone());
        host
    }

    /// What is no machine of the cluster, at this address; its namespace.
    pub fn outside(&self) -> (String, String) {
        (format!("{}.254", NEAR.prefix), self.hub())
    }

    /// Starts `coracle` on a host; the lab ends it if the test does not.
    pub fn spawn(&mut self, host: &Host, arguments: &[&str]) -> usize {
        self.spawn_with(host, &[], arguments)
    }

    /// The same with settings in the environment.
    pub fn spawn_with(
        &mut self,
        host: &Host,
        environment: &[(&str, &str)],
        arguments: &[&str],
    ) -> usize {
        let log = self.path(&format!("log-{}", self.processes.len()));
        let file = std::fs::File::create(&log).unwrap();
        let child = host
            .command(coracle())
            .args(arguments)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .spawn()
            .unwrap();
        self.processes.push(Process { child, log });
        self.processes.len() - 1
    }

    pub fn process(&mut self, number: usize) -> &mut Process {
        &mut self.processes[number]
    }

    /// Pulls the cable of a host, or puts it back.
    pub fn set_link(&self, host: &Host, up: bool) {
        run(
            "ip",
            &[
                "-n",
                &self.hub(),
                "link",
                "set",
                &host.link,
                if up { "up" } else { "down" },
            ],
        );
    }

    /// `coracle up` on a new host, waited for until its node is Ready.
    pub fn cluster(&mut self, name: &str, more: &[&str]) -> Cluster {
        let host = self.host(name);
        self.cluster_on(host, name, more)
    }

    /// The same on a host that there is already.
    pub fn cluster_on(&mut self, host: Host, name: &str, more: &[&str]) -> Cluster {
        let data_dir = host.data_dir.display().to_string();
        let mut arguments = vec!["up", "--data-dir", &data_dir, "--node-name", name];
        arguments.extend(more);
        let process = self.spawn(&host, &arguments);
        let cluster = Cluster {
            host,
            process,
            kubectl: kubectls()[0].clone(),
        };
        self.wait_ready(&cluster, name);
        cluster
    }

    /// Only the control plane, waited for until it answers.
    pub fn server(&mut self, name: &str, more: &[&str]) -> Cluster {
        let host = self.host(name);
        self.server_on(host, more)
    }

    /// The same on a host that there is already.
    pub fn server_on(&mut self, host: Host, more: &[&str]) -> Cluster {
        let data_dir = host.data_dir.display().to_string();
        let mut arguments = vec!["server", "--data-dir", &data_dir];
        arguments.extend(more);
        let process = self.spawn(&host, &arguments);
        let cluster = Cluster {
            host,
            process,
            kubectl: kubectls()[0].clone(),
        };
        self.watched("the server answers", process, || {
            cluster.try_kubectl(&["get", "--raw", "/readyz"]).is_ok()
        });
        cluster
    }

    pub fn wait_ready(&mut self, cluster: &Cluster, node: &str) {
        let condition = "jsonpath={.status.conditions[?(@.type==\"Ready\")].status}";
        let process = cluster.process;
        self.watched("the node is Ready", process, || {
            cluster
                .try_kubectl(&["get", "node", node, "-o", condition])
                .as_deref()
                == Ok("True")
        });
    }

    /// Waits on a predicate, and fails at once with the log when the process behind it ends.
    fn watched(&mut self, what: &str, process: usize, look: impl Fn() -> bool) {
        let end = now() + PATIENCE;
        while !look() {
            let process = &mut self.processes[process];
            let log = process.log_text();
            assert!(
                !process.has_ended(),
                "coracle ended before this held: {what}\n{log}"
            );
            assert!(
                now() < end,
                "waited {PATIENCE:?} for this to hold: {what}\n{log}"
            );
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

/// The disk of a machine that builds things may be fuller than a node's should be.
const EVICTION_HARD: &str =
    "memory.available<100Mi,nodefs.available<100Mi,imagefs.available<100Mi,pid.available<5%";

impl Host {
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net=/run/netns/{}", self.namespace))
            .arg("--")
            .arg(program)
            .env("CORACLE_EVICTION_HARD", EVICTION_HARD)
            // The machine's own network plugins are none of a lab's.
            .env("CORACLE_CNI_CONF_DIR", self.data_dir.join("net.d"));
        command
    }
}

/// A control plane that answers, and the kubectl to ask it with.
#[derive(Clone)]
pub struct Cluster {
    pub host: Host,
    pub process: usize,
    pub kubectl: String,
}

impl Cluster {
    pub fn kubeconfig(&self) -> PathBuf {
        self.host.data_dir.join("admin.kubeconfig")
    }

    pub fn kubectl_command(&self, arguments: &[&str]) -> Command {
        let mut command = self.host.command(&self.kubectl);
        command
            .arg("--kubeconfig")
            .arg(self.kubeconfig())
            .args(arguments);
        command.env("KUBECACHEDIR", self.host.data_dir.join("kubectl-cache"));
        command
    }

    pub fn try_kubectl(&self, arguments: &[&str]) -> Result<String, String> {
        let output = self.kubectl_command(arguments).output().unwrap();
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            Err(all_text(&output))
        }
    }

    #[track_caller]
    pub fn kubectl(&self, arguments: &[&str]) -> String {
        match self.try_kubectl(arguments) {
            Ok(text) => text,
            Err(text) => panic!("kubectl {arguments:?}: {text}"),
        }
    }

    /// `kubectl apply -f -`.
    #[track_caller]
    pub fn apply(&self, manifest: &str) -> String {
        let file = self.host.data_dir.join(format!(
            "manifest-{}.yaml",
            LABS.fetch_add(1, Ordering::Relaxed)
        ));
        std::fs::write(&file, manifest).unwrap();
        self.kubectl(&["apply", "-f", &file.display().to_string()])
    }

    /// The value of a JSONPath, empty when there is none.
    pub fn value(&self, target: &[&str], path: &str) -> String {
        let output = format!("jsonpath={path}");
        let mut arguments = vec!["get"];
        arguments.extend(target);
        arguments.extend(["-o", &output]);
        self.try_kubectl(&arguments).unwrap_or_default()
    }

    #[track_caller]
    pub fn wait_value(&self, target: &[&str], path: &str, expected: &str) {
        self.wait_for(target, path, &format!("{expected:?}"), |value| {
            value == expected
        });
    }

    /// Until the value is as it should be; `expected` says how.
    #[track_caller]
    pub fn wait_for(
        &self,
        target: &[&str],
        path: &str,
        expected: &str,
        is_it: impl Fn(&str) -> bool,
    ) {
        let mut last = String::new();
        let end = now() + PATIENCE;
        while now() < end {
            last = self.value(target, path);
            if is_it(&last) {
                return;
            }
            std::thread::sleep(LOOK_EVERY);
        }
        panic!(
            "{target:?} {path} is {last:?}, not {expected}\n{}",
            self.story()
        );
    }

    /// Of an object by its name: a line `reason: message` each.
    pub fn events(&self, object: &str) -> String {
        let selector = format!("involvedObject.name={object}");
        let lines = "{range .items[*]}{.reason}: {.message}{\"\\n\"}{end}";
        self.value(&["events", "--field-selector", &selector], lines)
    }

    /// Until the log of a pod is this: what a container says is there a moment after it runs.
    #[track_caller]
    pub fn wait_log(&self, arguments: &[&str], expected: &str) {
        let arguments = [&["logs"], arguments].concat();
        let mut last = Ok(String::new());
        let end = now() + PATIENCE;
        while last.as_deref() != Ok(expected) {
            assert!(now() < end, "{arguments:?}: {last:?}, not {expected:?}");
            last = self.try_kubectl(&arguments);
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Until the events tell all of these: they are sent beside what they tell of.
    #[track_caller]
    pub fn wait_events(&self, parts: &[&str]) {
        let mut told = String::new();
        let end = now() + PATIENCE;
        while !parts.iter().all(|part| told.contains(part)) {
            assert!(now() < end, "events should tell {parts:?}:\n{told}");
            told = self
                .try_kubectl(&["get", "events", "-A"])
                .unwrap_or_else(|error| error);
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Until there is no such object.
    #[track_caller]
    pub fn wait_gone(&self, target: &[&str]) {
        let arguments = [&["get", "--ignore-not-found"], target].concat();
        wait(&format!("{target:?} is gone"), || {
            (self.try_kubectl(&arguments).as_deref() == Ok("")).then_some(())
        });
    }

    /// What there is and what happened, for a test that fails.
    fn story(&self) -> String {
        let kinds = "events,pods,deployments,replicasets";
        self.try_kubectl(&["get", kinds, "-A", "-o", "wide"])
            .unwrap_or_else(|error| error)
    }

    /// `kubectl rollout status`, until it is through.
    #[track_caller]
    pub fn rolled_out(&self, deployment: &str) {
        let arguments = ["rollout", "status", deployment, "--timeout=100s"];
        if let Err(text) = self.try_kubectl(&arguments) {
            panic!("{deployment}: {text}\n{}", self.story());
        }
    }

    pub fn import(&self, archive: &Path) {
        import(&self.host, archive);
    }
}

pub fn import(host: &Host, archive: &Path) {
    let output = Command::new(coracle())
        .args(["image", "import", "--data-dir"])
        .arg(&host.data_dir)
        .arg(archive)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", all_text(&output));
}

impl Drop for Lab {
    fn drop(&mut self) {
        for process in &mut self.processes {
            if !process.has_ended() {
                process.kill();
            }
            if std::thread::panicking() {
                let text = process.log_text();
                let lines: Vec<&str> = text.lines().collect();
                let tail = lines[lines.len().saturating_sub(40)..].join("\n");
                eprintln!("--- end of {}\n{tail}", process.log.display());
            }
        }
        for host in self.hosts.values() {
            if host.data_dir.exists() {
                let wiped = host
                    .command(coracle())
                    .args(["wipe", "--data-dir"])
                    .arg(&host.data_dir)
                    .output()
                    .unwrap();
                if !wiped.status.success() {
                    eprintln!("wipe of {}: {}", host.namespace, all_text(&wiped));
                }
            }
            drop(
                Command::new("ip")
                    .args(["netns", "delete", &host.namespace])
                    .output(),
            );
        }
        drop(
            Command::new("ip")
                .args(["netns", "delete", &self.hub()])
                .output(),
        );
    }
}
