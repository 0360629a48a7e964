//! For tests: the in-memory server with what whole-cluster loops need besides: discovery,
//! deletions that respect finalizers and grace, deletion of collections, patches of owners.

use std::convert::Infallible;
use std::sync::Arc;

use coracle_client::Client;
use coracle_client::clock::Clock;
use coracle_client::informer::Informers;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::fake_api::{FakeApi, merge};
use crate::{Config, Context};

mod calls;
mod chance;
mod trouble;
mod web;

pub(crate) use calls::{Calls, Death, all_deaths};
pub(crate) use trouble::{Lives, spawn_lives, spawn_mortal};
pub(crate) use web::WEB;

#[derive(Clone)]
pub(crate) struct FakeCluster {
    pub(crate) api: FakeApi,
    hook: Arc<Mutex<Option<Hook>>>,
}

/// Sees method and path of each request before anybody else; may answer it, with code and body.
type Hook = Box<dyn FnMut(&Method, &str) -> Option<(u16, Value)> + Send>;

/// Name, kind, whether it has a namespace, and verbs.
type Served = (&'static str, &'static str, bool, &'static [&'static str]);

const ALL: &[&str] = &[
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "watch",
];
const SINGLE: &[&str] = &["create", "delete", "get", "list", "patch", "watch"];
const CORE: &[Served] = &[
    ("bindings", "Binding", true, &["create"]),
    ("configmaps", "ConfigMap", true, ALL),
    ("events", "Event", true, ALL),
    ("namespaces", "Namespace", false, SINGLE),
    ("namespaces/status", "Namespace", false, &["get", "update"]),
    ("nodes", "Node", false, ALL),
    ("pods", "Pod", true, ALL),
    ("services", "Service", true, SINGLE),
];
const APPS: &[Served] = &[
    ("deployments", "Deployment", true, ALL),
    ("replicasets", "ReplicaSet", true, ALL),
];

/// Runs a loop against a server in memory from the start of 2030 on, until the guard is dropped.
pub(crate) fn spawn(
    client: Client,
    config: Config,
    run: fn(Context) -> BoxFuture<'static, ()>,
) -> DropGuard {
    let shutdown = CancellationToken::new();
    start(
        client,
        Arc::new(config),
        run,
        clock_of_2030(),
        shutdown.clone(),
    );
    shutdown.drop_guard()
}

fn clock_of_2030() -> Clock {
    Clock::starting_at("2030-01-01T00:00:00Z".parse().expect("a time"))
}

fn start(
    client: Client,
    config: Arc<Config>,
    run: fn(Context) -> BoxFuture<'static, ()>,
    clock: Clock,
    shutdown: CancellationToken,
) {
    tokio::spawn(run(Context {
        informers: Informers::new(client.clone(), shutdown.clone()),
        client,
        config,
        clock,
        shutdown,
    }));
}

impl FakeCluster {
    pub(crate) fn new() -> Self {
        Self {
            api: FakeApi::new(),
            hook: Arc::default(),
        }
    }

    pub(crate) fn on_request(
        &self,
        hook: impl FnMut(&Method, &str) -> Option<(u16, Value)> + Send + 'static,
    ) {
        *self.hook.lock() = Some(Box::new(hook));
    }

    pub(crate) fn client(&self) -> Client {
        let (cluster, inner) = (self.clone(), self.api.client());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (cluster, inner) = (cluster.clone(), inner.clone());
            async move {
                let (head, body) = request.into_parts();
                let bytes = body.collect().await.expect("in memory").to_bytes();
                let body: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
                let strategic = head.headers.get("content-type").is_some_and(|value| {
                    value
                        .to_str()
                        .is_ok_and(|text| text.contains("strategic-merge"))
                });
                let path = head.uri.path().to_owned();
                if let Some(answer) = cluster.answer(&head.method, &path, &body, strategic) {
                    return Ok::<_, Infallible>(answer);
                }
                let request = Request::from_parts(head, Body::from(bytes));
                let answer = inner.send(request).await.expect("the fake answers");
                Ok(answer)
            }
        });
        Client::new(service, "default")
    }

    fn answer(
        &self,
        method: &Method,
        path: &str,
        body: &Value,
        strategic: bool,
    ) -> Option<Response<Body>> {
        let hooked = self
            .hook
            .lock()
            .as_mut()
            .and_then(|hook| hook(method, path));
        if let Some((code, body)) = hooked {
            return Some(reply(code, &body));
        }
        if let Some(document) = discovery(path) {
            return Some(reply(200, &document));
        }
        match *method {
            Method::DELETE if is_collection(path) => Some(self.delete_collection(path, body)),
            Method::DELETE => Some(self.delete(path, body)),
            Method::PATCH => Some(self.patch(path, body, strategic)),
            Method::PUT if path.ends_with("/status") || path.ends_with("/finalize") => {
                Some(self.put_part(path, body))
            }
            Method::POST
                if body["metadata"]["name"].is_null()
                    && body["metadata"]["generateName"].is_string() =>
            {
                Some(self.create_named(path, body))
            }
            Method::POST if path.ends_with("/replicasets") => Some(self.create_set(path, body)),
            Method::PUT if path.contains("/endpointslices/") => Some(self.put_slice(path, body)),
            Method::PUT
                if path.contains("/resourceclaims/")
                    || !body["metadata"]["deletionTimestamp"].is_null() =>
            {
                Some(self.put_settled(path, body))
            }
            _ => None,
        }
    }

    /// Deletes as a user would, with this propagation.
    pub(crate) fn delete_as(&self, path: &str, propagation: &str) {
        self.delete(path, &json!({ "propagationPolicy": propagation }));
    }

    fn delete(&self, path: &str, options: &Value) -> Response<Body> {
        let Some(mut object) = self.api.get(path) else {
            return reply(404, &failure(404, "NotFound"));
        };
        for field in ["uid", "resourceVersion"] {
            let wanted = &options["preconditions"][field];
            if wanted.is_string() && *wanted != object["metadata"][field] {
                return reply(409, &failure(409, "Conflict"));
            }
        }
        let finalizer = match options["propagationPolicy"].as_str() {
            Some("Foreground") => Some("foregroundDeletion"),
            Some("Orphan") => Some("orphan"),
            _ => None,
        };
        let mut finalizers = list(&object["metadata"]["finalizers"]);
        finalizers.extend(finalizer.map(Value::from));
        object["metadata"]["finalizers"] = json!(finalizers);
        let first = object["metadata"]["deletionTimestamp"].is_null();
        if first {
            object["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
        }
        if first || finalizer.is_some() {
            self.settle(path, object.clone());
        }
        reply(200, &object)
    }

    /// Stores the object, unless nothing keeps it.
    fn settle(&self, path: &str, object: Value) {
        let deleting = !object["metadata"]["deletionTimestamp"].is_null();
        let kept = !list(&object["metadata"]["finalizers"]).is_empty()
            || !list(&object["spec"]["finalizers"]).is_empty()
            || object["spec"]["terminationGracePeriodSeconds"].is_number();
        if !deleting || kept {
            self.api.put(path, object);
        } else {
            self.api.delete(path);
        }
    }

    fn delete_collection(&self, path: &str, options: &Value) -> Response<Body> {
        let (start, rest) = path.split_once("/namespaces/").expect("of a namespace");
        let (namespace, plural) = rest.split_once('/').expect("of a namespace");
        for object in self.api.objects(&format!("{start}/{plural}")) {
            if object["metadata"]["namespace"] == namespace {
                let name = object["metadata"]["name"].as_str().expect("has a name");
                self.delete(&format!("{path}/{name}"), options);
            }
        }
        reply(200, &json!({"kind": "Status", "status": "Success"}))
    }

    fn patch(&self, path: &str, patch: &Value, strategic: bool) -> Response<Body> {
        let Some(mut object) = self.api.get(path) else {
            return reply(404, &failure(404, "NotFound"));
        };
        let before = object["spec"].clone();
        for field in ["uid", "resourceVersion"] {
            let wanted = &patch["metadata"][field];
            if wanted.is_string() && *wanted != object["metadata"][field] {
                return reply(409, &failure(409, "Conflict"));
            }
        }
        if strategic {
            let owners = list(&object["metadata"]["ownerReferences"]);
            let elements = list(&patch["metadata"]["ownerReferences"]);
            let owners = owners.into_iter().filter_map(|owner| {
                let element = elements.iter().find(|one| one["uid"] == owner["uid"]);
                match element {
                    Some(element) if element["$patch"] == "delete" => None,
                    Some(element) => Some(element.clone()),
                    None => Some(owner),
                }
            });
            let mut owners: Vec<Value> = owners.collect();
            let fresh = |element: &&Value| element["$patch"].is_null();
            for element in elements.iter().filter(fresh) {
                if !owners.iter().any(|owner| owner["uid"] == element["uid"]) {
                    owners.push(element.clone());
                }
            }
            object["metadata"]["ownerReferences"] = json!(owners);
            let mut finalizers = list(&object["metadata"]["finalizers"]);
            let removed = list(&patch["metadata"]["$deleteFromPrimitiveList/finalizers"]);
            finalizers.retain(|one| !removed.contains(one));
            finalizers.extend(list(&patch["metadata"]["finalizers"]));
            object["metadata"]["finalizers"] = json!(finalizers);
            merge_status(&mut object["status"], &patch["status"]);
            if patch["spec"].is_object() {
                merge(&mut object["spec"], &patch["spec"]);
            }
        } else {
            merge(&mut object, patch);
        }
        let generation = object["metadata"]["generation"].as_i64();
        if let Some(generation) = generation.filter(|_| object["spec"] != before) {
            object["metadata"]["generation"] = json!(generation + 1);
        }
        self.settle(path, object.clone());
        let stored = self.api.get(path).unwrap_or(object);
        reply(200, &stored)
    }

    /// Gives the object a name of its own.
    fn create_named(&self, path: &str, body: &Value) -> Response<Body> {
        let mut object = body.clone();
        let prefix = body["metadata"]["generateName"].as_str().expect("asked");
        let names = (0..).map(|number| format!("{prefix}{number}"));
        let mut paths = names.map(|name| format!("{path}/{name}"));
        let free = paths.find(|path| self.api.get(path).is_none());
        object["metadata"]["generation"] = json!(1);
        reply(201, &self.api.put(&free.expect("without end"), object))
    }

    /// Its generations are counted.
    fn create_set(&self, path: &str, body: &Value) -> Response<Body> {
        let mut object = body.clone();
        object["metadata"]["generation"] = json!(1);
        let name = body["metadata"]["name"].as_str().expect("has a name");
        let path = format!("{path}/{name}");
        match self.api.get(&path) {
            Some(_) => reply(409, &failure(409, "AlreadyExists")),
            None => reply(201, &self.api.put(&path, object)),
        }
    }

    /// Counts the generations, as all objects with a specification do.
    fn put_slice(&self, path: &str, body: &Value) -> Response<Body> {
        let Some(old) = self.api.get(path) else {
            return reply(404, &failure(404, "NotFound"));
        };
        let asked = &body["metadata"]["resourceVersion"];
        if asked.is_string() && *asked != old["metadata"]["resourceVersion"] {
            return reply(409, &failure(409, "Conflict"));
        }
        let (mut new, before) = (body.clone(), &old["metadata"]["generation"]);
        new["metadata"]["generation"] = json!(before.as_i64().unwrap_or(0) + 1);
        reply(200, &self.api.put(path, new))
    }

    /// What is being deleted goes with its last finalizer.
    fn put_settled(&self, path: &str, body: &Value) -> Response<Body> {
        let Some(old) = self.api.get(path) else {
            return reply(404, &failure(404, "NotFound"));
        };
        if body["metadata"]["resourceVersion"] != old["metadata"]["resourceVersion"] {
            return reply(409, &failure(409, "Conflict"));
        }
        self.settle(path, body.clone());
        reply(200, &self.api.get(path).unwrap_or_else(|| body.clone()))
    }

    /// A write of a status, or of a namespace's finalizers. That of a Deployment bears its revision.
    fn put_part(&self, path: &str, body: &Value) -> Response<Body> {
        let (path, part) = path.rsplit_once('/').expect("has a subresource");
        let Some(mut object) = self.api.get(path) else {
            return reply(404, &failure(404, "NotFound"));
        };
        if body["metadata"]["resourceVersion"] != object["metadata"]["resourceVersion"] {
            return reply(409, &failure(409, "Conflict"));
        }
        let field = if part == "status" { "status" } else { "spec" };
        object[field] = body[field].clone();
        if path.contains("/deployments/") {
            object["metadata"]["annotations"] = body["metadata"]["annotations"].clone();
        }
        self.settle(path, object.clone());
        let stored = self.api.get(path).unwrap_or(object);
        reply(200, &stored)
    }
}

/// Conditions by their types.
fn merge_status(status: &mut Value, patch: &Value) {
    let mut rest = patch.clone();
    let Some(fields) = rest.as_object_mut() else {
        return;
    };
    let told = list(&fields.remove("conditions").unwrap_or_default());
    merge(status, &rest);
    if told.is_empty() {
        return;
    }
    let mut conditions = list(&status["conditions"]);
    for one in told {
        let known = conditions
            .iter_mut()
            .find(|known| known["type"] == one["type"]);
        match known {
            Some(known) => merge(known, &one),
            None => conditions.push(one),
        }
    }
    status["conditions"] = json!(conditions);
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

/// `/api/v1/namespaces/NAME/PLURAL` and the like.
fn is_collection(path: &str) -> bool {
    path.split_once("/namespaces/")
        .is_some_and(|(_, rest)| rest.split('/').count() == 2)
}

fn discovery(path: &str) -> Option<Value> {
    let resources = |group_version: &str, served: &[Served]| {
        let each = served.iter().map(|(name, kind, namespaced, verbs)| {
            json!({"name": name, "singularName": "", "kind": kind,
                   "namespaced": namespaced, "verbs": verbs})
        });
        json!({"kind": "APIResourceList", "groupVersion": group_version,
               "resources": each.collect::<Vec<_>>()})
    };
    let version = json!({"groupVersion": "apps/v1", "version": "v1"});
    match path.trim_end_matches('/') {
        "/api" => Some(json!({"versions": ["v1"], "serverAddressByClientCIDRs": []})),
        "/apis" => Some(json!({"groups": [
            {"name": "apps", "versions": [version], "preferredVersion": version},
        ]})),
        "/api/v1" => Some(resources("v1", CORE)),
        "/apis/apps/v1" => Some(resources("apps/v1", APPS)),
        _ => None,
    }
}

fn reply(code: u16, body: &Value) -> Response<Body> {
    Response::builder()
        .status(code)
        .body(Body::from(body.to_string().into_bytes()))
        .expect("a valid status")
}

pub(crate) fn failure(code: u16, reason: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
           "code": code, "reason": reason, "message": reason})
}
