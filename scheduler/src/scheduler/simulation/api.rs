//! What is true, and how the scheduler is answered: slowly, not at all, or after it was done.

use super::made::{capacity, from};
use super::watch::{Shown, name};
use crate::pod_info::PodInfo;
use coracle_client::Client;
use http::{Method, Request, Response};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Resource;
use kube::client::Body;
use parking_lot::{Mutex, MutexGuard};
use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

pub struct Truth {
    pub pods: BTreeMap<String, Arc<Pod>>,
    pub nodes: BTreeMap<String, Arc<Node>>,
    pub pod_log: Vec<Shown<Pod>>,
    pub node_log: Vec<Shown<Node>>,
    /// Nothing goes wrong any more.
    pub is_calm: bool,
    /// Nothing is shown for longer than an assumed pod is kept.
    pub is_silent: bool,
    pub story: Vec<String>,
    /// The first thing that should not have happened.
    pub wrong: Option<String>,
    /// Uids of the pods that the scheduler put where they are, and knows or is to be told of.
    pub ours: BTreeSet<String>,
    /// Uids of the pods that it asks to be bound.
    under_way: BTreeSet<String>,
    revision: u64,
    random: StdRng,
    began: Instant,
}

enum Fault {
    None,
    Refused,
    /// Nothing is done, and nobody answers.
    Lost,
    /// It is done, and nobody answers.
    Unheard,
}

type Answer = (u16, Value);

fn refusal(code: u16, reason: &str) -> Answer {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "reason": reason, "message": reason,
    });
    (code, status)
}

#[derive(Clone)]
pub struct Api(Arc<Mutex<Truth>>);

impl Api {
    pub fn new(random: StdRng) -> Self {
        Self(Arc::new(Mutex::new(Truth {
            pods: BTreeMap::new(),
            nodes: BTreeMap::new(),
            pod_log: Vec::new(),
            node_log: Vec::new(),
            is_calm: false,
            is_silent: false,
            story: Vec::new(),
            wrong: None,
            ours: BTreeSet::new(),
            under_way: BTreeSet::new(),
            revision: 0,
            random,
            began: Instant::now(),
        })))
    }

    pub fn truth(&self) -> MutexGuard<'_, Truth> {
        self.0.lock()
    }

    pub fn client(&self) -> Client {
        let api = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let api = api.clone();
            async move { api.answer(request).await }
        });
        Client::new(service, "default")
    }

    async fn answer(&self, request: Request<Body>) -> Result<Response<Body>, std::io::Error> {
        let (head, body) = request.into_parts();
        let body = body.collect_bytes().await.map_err(std::io::Error::other)?;
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let path = head.uri.path().to_owned();
        let path: Vec<&str> = path.split('/').skip(5).collect();
        if path[0] != "pods" {
            return respond((201, body));
        }
        let is_binding = path.last() == Some(&"binding");
        let uid = body["metadata"]["uid"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let (fault, before, after) = self.truth().fortune();
        if is_binding && !self.truth().under_way.insert(uid.clone()) {
            self.truth().fail(format!("{uid} is bound twice at a time"));
        }
        tokio::time::sleep(before).await;
        let answer = match fault {
            Fault::Refused => refusal(500, "InternalError"),
            Fault::Lost => refusal(0, "lost"),
            Fault::None | Fault::Unheard => self.truth().act(&head.method, &path, &body),
        };
        tokio::time::sleep(after).await;
        let mut truth = self.truth();
        let what = match fault {
            Fault::None => "answered",
            Fault::Refused => "refused",
            Fault::Lost | Fault::Unheard => "lost",
        };
        truth.tell(&format!("{what} {} {}", head.method, path.join("/")));
        if is_binding {
            truth.under_way.remove(&uid);
            if matches!(fault, Fault::Unheard) {
                // It may not know of the pod until it is shown there.
                truth.ours.remove(&uid);
            }
        }
        if matches!(fault, Fault::Lost | Fault::Unheard) {
            return Err(std::io::Error::other("the connection broke"));
        }
        respond(answer)
    }
}

fn respond((code, body): Answer) -> Result<Response<Body>, std::io::Error> {
    Response::builder()
        .status(code)
        .body(Body::from(body.to_string().into_bytes()))
        .map_err(std::io::Error::other)
}

pub fn node_of(pod: &Pod) -> &str {
    let spec = pod.spec.as_ref();
    spec.and_then(|spec| spec.node_name.as_deref())
        .unwrap_or_default()
}

impl Truth {
    pub fn tell(&mut self, what: &str) {
        let at = self.began.elapsed().as_secs_f64();
        self.story.push(format!("{at:.3} {what}"));
    }

    pub fn fail(&mut self, what: String) {
        self.tell(&what);
        self.wrong.get_or_insert(what);
    }

    /// What becomes of a request, and how long it takes before and after it is done.
    fn fortune(&mut self) -> (Fault, Duration, Duration) {
        let longest = if self.random.random_bool(0.1) {
            15_000
        } else {
            300
        };
        let mut time = || Duration::from_millis(self.random.random_range(0..longest));
        let (before, after) = (time(), time());
        let fault = match self.random.random_range(0..20) {
            _ if self.is_calm => Fault::None,
            0 | 1 => Fault::Refused,
            2 => Fault::Lost,
            3 | 4 => Fault::Unheard,
            _ => Fault::None,
        };
        (fault, before, after)
    }

    pub fn set_pod(&mut self, mut pod: Pod) {
        self.revision += 1;
        pod.metadata.resource_version = Some(self.revision.to_string());
        let pod = Arc::new(pod);
        self.pods.insert(name(pod.as_ref()), Arc::clone(&pod));
        self.pod_log.push(Shown::Set(pod));
    }

    pub fn set_node(&mut self, mut node: Node) {
        self.revision += 1;
        node.metadata.resource_version = Some(self.revision.to_string());
        node.metadata
            .uid
            .get_or_insert(format!("node-{}", self.revision));
        let node = Arc::new(node);
        self.nodes.insert(name(node.as_ref()), Arc::clone(&node));
        self.node_log.push(Shown::Set(node));
    }

    pub fn remove_pod(&mut self, name: &str) {
        if let Some(pod) = self.pods.remove(name) {
            self.pod_log.push(Shown::Gone(pod));
        }
    }

    pub fn remove_node(&mut self, name: &str) {
        if let Some(node) = self.nodes.remove(name) {
            self.node_log.push(Shown::Gone(node));
        }
    }

    /// On a node a pod ends when the node says so; elsewhere it is gone at once.
    pub fn delete(&mut self, pod: &Pod) {
        if node_of(pod).is_empty() {
            return self.remove_pod(&name(pod));
        }
        let mut pod = pod.clone();
        pod.metadata.deletion_timestamp = from(json!("2030-01-01T00:00:00Z"));
        self.set_pod(pod);
    }

    fn act(&mut self, method: &Method, path: &[&str], body: &Value) -> Answer {
        let Some(pod) = self.pods.get(path[1]).cloned() else {
            return refusal(404, "NotFound");
        };
        let uid = match *method {
            Method::DELETE => &body["preconditions"]["uid"],
            _ => &body["metadata"]["uid"],
        };
        if uid.is_null() {
            self.fail(format!("{method} {path:?} may mean a namesake"));
        }
        if uid.as_str() != pod.meta().uid.as_deref() {
            self.tell(&format!("conflict {method} {path:?}: it is another pod"));
            return refusal(409, "Conflict");
        }
        match path.last() {
            Some(&"binding") => self.bind(&pod, body["target"]["name"].as_str().unwrap_or("")),
            Some(&"status") => self.patch(&pod, body),
            _ => {
                self.tell(&format!("asked {} to go", name(pod.as_ref())));
                self.delete(&pod);
                (
                    200,
                    json!({ "kind": "Status", "status": "Success", "code": 200 }),
                )
            }
        }
    }

    fn patch(&mut self, pod: &Pod, body: &Value) -> Answer {
        let mut patched = serde_json::to_value(pod).unwrap_or_default();
        if let Some(node) = body["status"].get("nominatedNodeName") {
            patched["status"]["nominatedNodeName"] = node.clone();
        }
        for condition in body["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let mut all = patched["status"]["conditions"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            all.retain(|known| known["type"] != condition["type"]);
            all.push(condition.clone());
            patched["status"]["conditions"] = all.into();
        }
        self.set_pod(from(patched.clone()));
        (200, patched)
    }

    fn bind(&mut self, pod: &Pod, node: &str) -> Answer {
        let [who, uid] =
            [&pod.metadata.name, &pod.metadata.uid].map(|it| it.clone().unwrap_or_default());
        if !node_of(pod).is_empty() || pod.metadata.deletion_timestamp.is_some() {
            self.tell(&format!("conflict {who} is on {:?}", node_of(pod)));
            return refusal(409, "Conflict");
        }
        let mut bound = pod.clone();
        let spec = bound.spec.get_or_insert_default();
        if spec
            .scheduling_gates
            .as_ref()
            .is_some_and(|gates| !gates.is_empty())
        {
            self.fail(format!("{who} is bound with gates"));
        }
        spec.node_name = Some(node.to_owned());
        bound.status.get_or_insert_default().nominated_node_name = None;
        self.tell(&format!("bound {who} to {node}"));
        if !self.is_silent {
            self.ours.insert(uid);
        }
        self.set_pod(bound);
        self.check_room(node);
        (
            201,
            json!({ "kind": "Status", "status": "Success", "code": 201 }),
        )
    }

    /// The pods that stand on a node.
    pub fn on_node(&self, node: &str) -> Vec<PodInfo> {
        let pods = self.pods.values().filter(|pod| node_of(pod) == node);
        let pods = pods.map(|pod| PodInfo::new(Arc::clone(pod)));
        pods.filter(|pod| !pod.is_terminal).collect()
    }

    /// Whatever others put there, what we put there has room.
    fn check_room(&mut self, node: &str) {
        let mut ours = self.on_node(node);
        ours.retain(|pod| self.ours.contains(&pod.uid));
        let (cpu, places) = capacity(node);
        let used: i64 = ours.iter().map(|pod| pod.requests.milli_cpu).sum();
        let ports: usize = ours.iter().map(|pod| pod.host_ports.len()).sum();
        if used > cpu || ours.len() > places || ports > 1 {
            let pods: Vec<&str> = ours.iter().map(|pod| pod.key.name.as_str()).collect();
            self.fail(format!("{node} is over-committed: {pods:?}"));
        }
    }
}
