//! A server without scheduler and control loops, upstream's scheduler, and ours as a process.
//!
//! Everything is taken down when it is dropped.

mod objects; // Where kinds live, and what becomes of references.

use crate::upstream::{Decision, LOG_LEVELS, Line};
use crate::world::{self, NAMESPACES, World};
use coracle_client::{Client, connect};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Long enough for a slow machine with other tests on it.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// After which no further victims are expected of upstream, when it named some that go already.
const MORE_VICTIMS: Duration = Duration::from_millis(500);
/// Lines of upstream's log that wait to be read: past this its scheduler waits.
const LINES_MAX: usize = 100_000;
/// The profile of our scheduler as a process.
pub const OURS: &str = "ours";

/// How long upstream's informers are given: nothing tells when they have everything.
#[derive(Clone, Copy, Debug)]
pub enum Waits {
    Short,
    /// When something differed.
    Long,
}

pub struct Site {
    runtime: Runtime,
    client: Client,
    processes: Processes,
    log: Receiver<String>,
    /// By kind and name, of this world.
    uids: BTreeMap<(String, String), String>,
    directory: TempDir,
}

/// The last is ended first.
struct Processes(Vec<Child>);

impl Drop for Processes {
    fn drop(&mut self) {
        for process in self.0.iter_mut().rev() {
            drop(process.kill());
            drop(process.wait());
        }
    }
}

impl Site {
    pub fn new(upstream: &Path) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let runtime = Runtime::new().expect("a runtime");
        let kubeconfig = directory.path().join("admin.kubeconfig");
        let data_dir = directory.path().display().to_string();
        let mut server = Command::new(env!("CARGO_BIN_EXE_coracle"));
        server.args(["server", "--data-dir", &data_dir, "--listen", "127.0.0.1:0"]);
        server.args(["--disable", "scheduler,controllers,dns,manifests,metrics"]);
        server.args([
            "--disable-admission-plugins",
            "TaintNodesByCondition,StorageObjectInUseProtection",
        ]);
        let server = spawn(&mut server, &directory.path().join("server.log"));
        let processes = Processes(vec![server]);
        let entered = runtime.enter();
        let client = client(&kubeconfig);
        drop(entered);
        let (lines, log) = sync_channel(LINES_MAX);
        let mut site = Self {
            runtime,
            client,
            processes,
            log,
            uids: BTreeMap::new(),
            directory,
        };
        site.until("the server answers", |site| {
            site.get("/readyz?verbose=false").is_some() || site.get("/api/v1/nodes").is_some()
        });
        for object in world::foundation() {
            site.create(&object);
        }
        let upstream = follow(upstream, &kubeconfig, lines);
        site.processes.0.push(upstream);
        site
    }

    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// From here on ours places the pods of its profile.
    pub fn start_ours(&mut self) {
        let file = self.directory.path().join("scheduler.json");
        let config = json!({
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": false},
            "profiles": [{"schedulerName": OURS}],
        });
        std::fs::write(&file, config.to_string()).expect("a file");
        let mut ours = Command::new(env!("CARGO_BIN_EXE_coracle"));
        ours.arg("scheduler").arg("--config").arg(&file);
        ours.arg("--kubeconfig").arg(self.kubeconfig());
        ours.arg("--secure-port=0");
        let ours = spawn(&mut ours, &self.directory.path().join("ours.log"));
        self.processes.0.push(ours);
    }

    fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("admin.kubeconfig")
    }

    pub fn settle(&self, waits: Waits) {
        let wait = match waits {
            Waits::Short => Duration::from_millis(60),
            Waits::Long => Duration::from_millis(1500),
        };
        std::thread::sleep(wait);
    }

    #[track_caller]
    fn until(&mut self, what: &str, mut holds: impl FnMut(&mut Self) -> bool) {
        let end = now() + PATIENCE;
        while !holds(self) {
            assert!(now() < end, "waited {PATIENCE:?} for this to hold: {what}");
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Ends the world before.
    pub fn clear(&mut self) {
        for path in objects::collections(&NAMESPACES) {
            let options = "gracePeriodSeconds=0&propagationPolicy=Background";
            self.ask("DELETE", &format!("{path}?{options}"), None)
                .unwrap_or_else(|error| panic!("{path}: {error}"));
        }
        self.until("the world is empty", |site| {
            let items = |path: &str| site.get(path).map(|list| list["items"] == json!([]));
            items("/api/v1/pods") == Some(true) && items("/api/v1/nodes") == Some(true)
        });
        self.uids.clear();
        self.forget_log();
    }

    /// What upstream's said until now is of nothing that is asked from here on.
    pub fn forget_log(&mut self) {
        while self.log.try_recv().is_ok() {}
    }

    pub fn make(&mut self, world: &World) {
        for object in &world.objects {
            self.create(object);
        }
    }

    /// With its status, which the API takes apart from the rest.
    pub fn create(&mut self, object: &Value) {
        let mut object = objects::resolved(object, &self.uids);
        let meta = object["metadata"].as_object_mut().expect("metadata");
        let is_going = meta.remove(world::IS_GOING).is_some();
        let path = objects::collection(&object);
        let made = self.ask("POST", &path, Some(&object));
        let made = made.unwrap_or_else(|error| panic!("{error}: {object}"));
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        let uid = made["metadata"]["uid"].as_str().unwrap_or_default();
        let name = world::name(&object).to_owned();
        let own = format!("{path}/{name}");
        self.uids.insert((kind, name), uid.to_owned());
        if object["status"].is_object() {
            self.patch(
                &format!("{own}/status"),
                &json!({ "status": object["status"] }),
            );
        }
        if is_going {
            self.ask("DELETE", &own, None).expect("a deletion");
        }
    }

    pub fn patch(&self, path: &str, patch: &Value) {
        self.ask("PATCH", path, Some(patch))
            .unwrap_or_else(|error| panic!("{path}: {error}: {patch}"));
    }

    pub fn delete_pod(&self, pod: &Value) {
        let path = format!("{}/{}", objects::collection(pod), world::name(pod));
        match self.ask("DELETE", &format!("{path}?gracePeriodSeconds=0"), None) {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            deleted => drop(deleted.expect("a deletion")),
        }
    }

    /// What upstream's makes of the pod.
    pub fn decision(&mut self, pod: &str) -> Result<Decision, String> {
        let mut decision = Decision::default();
        let end = now() + PATIENCE;
        while !decision.is_complete() {
            let left = match decision.may_be_complete() {
                true => MORE_VICTIMS,
                false => end.saturating_duration_since(now()),
            };
            let line = match self.log.recv_timeout(left) {
                Ok(line) => line,
                Err(_) if decision.may_be_complete() => break,
                Err(_) => return Err(format!("upstream decided nothing: {decision:?}")),
            };
            if let Some(line) = Line::parse(&line) {
                decision.hear(pod, &line);
            }
        }
        Ok(decision)
    }

    /// Where ours put it, or why nowhere.
    pub fn placed(&mut self, pod: &Value) -> Result<Result<String, String>, String> {
        let path = format!("{}/{}", objects::collection(pod), world::name(pod));
        let end = now() + PATIENCE;
        while now() < end {
            let found = self.get(&path).ok_or("the pod is gone")?;
            if let Some(node) = found["spec"]["nodeName"].as_str() {
                return Ok(Ok(node.to_owned()));
            }
            let conditions = found["status"]["conditions"].as_array();
            let mut conditions = conditions.into_iter().flatten();
            if let Some(told) = conditions.find(|one| one["reason"] == "Unschedulable") {
                return Ok(Err(told["message"].as_str().unwrap_or_default().to_owned()));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Err("ours decided nothing".to_owned())
    }

    /// Nodes and pods as they are now, for whoever looks into a difference.
    pub fn world(&self) -> String {
        let lists = ["/api/v1/nodes", "/api/v1/pods"].map(|path| self.get(path));
        let lists = lists.into_iter().flatten();
        lists.map(|list| format!("{}\n", list["items"])).collect()
    }

    fn get(&self, path: &str) -> Option<Value> {
        self.ask("GET", path, None).ok()
    }

    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> kube::Result<Value> {
        let kind = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let body = body.map(|body| body.to_string().into_bytes());
        let request = http::Request::builder().method(method).uri(path);
        let request = request.header("content-type", kind);
        let request = request.body(body.unwrap_or_default()).expect("a request");
        self.block_on(self.client.request(request))
    }
}

fn client(kubeconfig: &Path) -> Client {
    let end = now() + PATIENCE;
    loop {
        match connect::kubeconfig::load(kubeconfig, None) {
            Ok(loaded) => return connect::client(&loaded.endpoint),
            Err(error) => assert!(now() < end, "no kubeconfig: {error}"),
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn spawn(command: &mut Command, log: &Path) -> Child {
    let log = File::create(log).expect("a log");
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(log).spawn().expect("a process")
}

/// Starts upstream's, with every line of its log into `lines`.
fn follow(upstream: &Path, kubeconfig: &Path, lines: SyncSender<String>) -> Child {
    let mut command = Command::new(upstream);
    command.arg("--kubeconfig").arg(kubeconfig).args(LOG_LEVELS);
    command.args(["--leader-elect=false", "--secure-port=0"]);
    command
        .arg("--kube-api-qps=1000")
        .arg("--kube-api-burst=1000");
    // Pods that are alike would be placed together, without a word about scores.
    command.arg("--feature-gates=OpportunisticBatching=false");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("kube-scheduler");
    let stderr = child.stderr.take().expect("piped");
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            if lines.send(line).is_err() {
                return;
            }
        }
    });
    child
}

#[allow(clippy::disallowed_methods)] // A test's own deadline.
fn now() -> Instant {
    Instant::now()
}
