//! Pods in a few words, for tests of `plan` and `status`. It is second 1000.
//!
//! ```text
//! pod main=a,b init=i,s* debug=d restart=Never grace=5 deadline=60 deleting phase=Failed gone hostnet
//! sandbox 0 ready                     (or: dead)
//! a running attempt=1                 (or: created, exited code=1 at=990, in=0 for the sandbox)
//! pod all=a:42                        (a that ends with 42 makes all begin again)
//! pod size=a:100m/200m policy=a:cpu   (a is to have the second and has the first)
//! memory ip preparing starting podbehind resizing resizefailed=@1005 restarting=a reset=a:1 crash=a:1@990 waiting=a:Why@1005 killing=a@1010 removing=a-0 failed=a
//! ```
//! A `*` makes an init container a sidecar; `unstarted` and `unready` are a container's health.

use super::back_off::{BackOff, Pace};
use super::state::{Health, Memory, Observed, View, Waiting};
use crate::runtime::{
    ContainerConfig, ContainerId, ContainerState, ContainerStatus, SandboxConfig, SandboxId,
    SandboxState, SandboxStatus,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use std::net::IpAddr;

pub struct Scene {
    pub pod: Pod,
    pub is_gone: bool,
    pub observed: Observed,
    pub memory: Memory,
}

pub fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

impl Scene {
    pub fn view(&self) -> View<'_> {
        View {
            pod: &self.pod,
            is_gone: self.is_gone,
            observed: &self.observed,
            memory: &self.memory,
            now: at(1000),
        }
    }

    pub fn read(text: &str) -> Self {
        let mut scene = Self {
            pod: Pod::default(),
            is_gone: false,
            observed: Observed {
                runtime: "coracle",
                ..Observed::default()
            },
            memory: Memory::new(at(900)),
        };
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let words: Vec<_> = line.split_whitespace().collect();
            let (first, rest) = words.split_first().unwrap();
            match *first {
                "pod" => scene.read_pod(rest),
                "sandbox" => scene.observed.sandboxes.push(sandbox(rest)),
                "memory" => scene.read_memory(rest),
                name => scene.read_container(name, rest),
            }
        }
        scene
    }

    fn read_pod(&mut self, words: &[&str]) {
        let mut meta = json!({"name": "web", "namespace": "default", "uid": "u1"});
        let mut spec = json!({"containers": [], "restartPolicy": "Always"});
        let mut status = json!({});
        for word in words {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            let number = value.parse::<i64>().unwrap_or(0);
            match key {
                "main" => spec["containers"] = containers(value),
                "init" => spec["initContainers"] = containers(value),
                "debug" => spec["ephemeralContainers"] = containers(value),
                "restart" => spec["restartPolicy"] = value.into(),
                "grace" => spec["terminationGracePeriodSeconds"] = number.into(),
                "deadline" => spec["activeDeadlineSeconds"] = number.into(),
                "hostnet" => spec["hostNetwork"] = true.into(),
                "gate" => spec["readinessGates"] = json!([{"conditionType": value}]),
                "deleting" => {
                    meta["deletionTimestamp"] = "1970-01-01T00:16:40Z".into();
                    meta["deletionGracePeriodSeconds"] = number.into();
                }
                "phase" => status["phase"] = value.into(),
                "restarts" => {
                    status["containerStatuses"] = json!([{
                        "name": "a", "restartCount": number, "image": "", "imageID": "",
                        "ready": true, "containerID": "coracle://old",
                        "state": {"running": {}},
                    }]);
                }
                "size" => {
                    let (name, sizes) = value.split_once(':').unwrap();
                    let (has, wanted) = sizes.split_once('/').unwrap();
                    let cpu = |cpu: &str| json!({"requests": {"cpu": cpu}, "limits": {"cpu": cpu}});
                    find(&mut spec, name)["resources"] = cpu(wanted);
                    let has = serde_json::from_value(cpu(has)).unwrap();
                    self.memory.sizing.kept.behind.insert(name.into(), has);
                }
                "all" => {
                    let (name, code) = value.split_once(':').unwrap();
                    let code = code.parse::<i32>().unwrap();
                    let container = find(&mut spec, name);
                    container["restartPolicy"] = "Never".into();
                    container["restartPolicyRules"] = json!([{
                        "action": "RestartAllContainers",
                        "exitCodes": {"operator": "In", "values": [code]},
                    }]);
                }
                "policy" => {
                    let (name, resource) = value.split_once(':').unwrap();
                    let policy =
                        json!({"resourceName": resource, "restartPolicy": "RestartContainer"});
                    find(&mut spec, name)["resizePolicy"] = json!([policy]);
                }
                "gone" => self.is_gone = true,
                other => panic!("what is {other}?"),
            }
        }
        let pod = json!({"metadata": meta, "spec": spec, "status": status});
        self.pod = serde_json::from_value(pod).unwrap();
    }

    fn read_container(&mut self, name: &str, words: &[&str]) {
        let mut status = ContainerStatus {
            id: ContainerId(String::new()),
            sandbox: SandboxId("sandbox-0".into()),
            config: ContainerConfig {
                name: name.into(),
                ..ContainerConfig::default()
            },
            state: ContainerState::Unknown,
            created_at: at(910),
            started_at: None,
            finished_at: None,
            exit_code: None,
            reason: String::new(),
            message: String::new(),
            image_id: "sha256:1".into(),
            pid: None,
            user: None,
        };
        let mut health = Health::default();
        for word in words {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            match key {
                "running" => {
                    status.state = ContainerState::Running;
                    status.started_at = Some(at(911));
                }
                "created" => status.state = ContainerState::Created,
                "unknown" => status.state = ContainerState::Unknown,
                "exited" => {
                    status.state = ContainerState::Exited;
                    status.exit_code = Some(0);
                    status.reason = "Completed".into();
                    status.started_at = Some(at(911));
                    status.finished_at = Some(at(950));
                }
                "code" => {
                    status.exit_code = Some(value.parse().unwrap());
                    status.reason = "Error".into();
                }
                "at" => status.finished_at = Some(at(value.parse().unwrap())),
                "attempt" => status.config.attempt = value.parse().unwrap(),
                "in" => status.sandbox = SandboxId(format!("sandbox-{value}")),
                "unstarted" => health.started = Some(false),
                "unready" => health.ready = Some(false),
                other => panic!("what is {other}?"),
            }
        }
        status.id = ContainerId(format!("{name}-{}", status.config.attempt));
        if status.state == ContainerState::Running {
            self.memory.health.insert(status.id.clone(), health);
        }
        self.observed.containers.push(status);
    }

    fn read_memory(&mut self, words: &[&str]) {
        for word in words {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            let (value, second) = value.split_once('@').unwrap_or((value, "0"));
            let second = at(second.parse().unwrap());
            match key {
                "ip" => self.memory.ips = IpAddr::from([10, 42, 0, 5]).into(),
                "preparing" => self.memory.is_preparing = true,
                "prepare" => self.memory.prepare_after = Some(second),
                "starting" => self.memory.is_starting = true,
                "podbehind" => self.memory.sizing.kept.is_pod_behind = true,
                "resizing" => self.memory.is_resizing = true,
                "resizefailed" => self.memory.resize_after = Some(second),
                "reset" => {
                    let (name, attempt) = value.split_once(':').unwrap();
                    let attempt = attempt.parse().unwrap();
                    self.memory.reset.insert(name.into(), attempt);
                }
                "restarting" => drop(self.memory.restarting.insert(value.into())),
                "crash" => {
                    let back_off = BackOff::after(Pace::CONTAINER, None, second, second);
                    self.memory.crashes.insert(value.into(), back_off);
                }
                "waiting" => {
                    let (name, reason) = value.split_once(':').unwrap();
                    let waiting = Waiting {
                        reason: reason.into(),
                        message: "words".into(),
                        retry_at: second,
                    };
                    self.memory.waiting.insert(name.into(), waiting);
                }
                "removing" => drop(self.memory.removing.insert(ContainerId(value.into()))),
                "killing" => {
                    self.memory
                        .killing
                        .insert(ContainerId(value.into()), second);
                }
                "failed" => {
                    let id = ContainerId(value.into());
                    self.memory.health.get_mut(&id).unwrap().failed = Some("liveness");
                }
                other => panic!("what is {other}?"),
            }
        }
    }
}

fn find<'a>(spec: &'a mut Value, name: &str) -> &'a mut Value {
    let all = spec["containers"].as_array_mut().unwrap();
    all.iter_mut().find(|one| one["name"] == name).unwrap()
}

fn containers(names: &str) -> Value {
    names
        .split(',')
        .map(|name| match name.strip_suffix('*') {
            Some(name) => json!({"name": name, "image": "i", "restartPolicy": "Always"}),
            None => json!({"name": name, "image": "i"}),
        })
        .collect()
}

fn sandbox(words: &[&str]) -> SandboxStatus {
    let attempt = words[0].parse().unwrap();
    SandboxStatus {
        id: SandboxId(format!("sandbox-{attempt}")),
        config: SandboxConfig {
            attempt,
            host_network: words.contains(&"hostnet"),
            ..SandboxConfig::default()
        },
        state: if words.contains(&"ready") {
            SandboxState::Ready
        } else {
            SandboxState::NotReady
        },
        created_at: at(905),
        network_namespace: None,
        addresses: Default::default(),
    }
}
