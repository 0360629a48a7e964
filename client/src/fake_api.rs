//! For tests: just enough of an API server, in memory, to list, watch and write against.
//!
//! It can break watches, forget history and refuse requests, which a real one does when it
//! likes. It validates nothing: what the real server does is shown by the whole-binary tests.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::Client;

#[derive(Clone)]
pub(crate) struct FakeApi {
    shared: Arc<Shared>,
}

struct Shared {
    world: Mutex<World>,
    /// The number of changes, and how often the watches were broken.
    changed: watch::Sender<(usize, u64)>,
}

#[derive(Default)]
struct World {
    objects: BTreeMap<Address, Value>,
    /// Revision, collection, type and object of each change.
    history: Vec<(u64, String, &'static str, Value)>,
    revision: u64,
    compacted: u64,
    refuse: Vec<u16>,
    watches_end_at_once: bool,
    requests: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Address {
    collection: String,
    namespace: String,
    name: String,
}

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

impl FakeApi {
    pub(crate) fn new() -> Self {
        let world = Mutex::new(World {
            revision: 100,
            ..World::default()
        });
        Self {
            shared: Arc::new(Shared {
                world,
                changed: watch::Sender::new((0, 0)),
            }),
        }
    }

    pub(crate) fn client(&self) -> Client {
        let api = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let api = api.clone();
            async move { Ok::<_, Infallible>(api.answer(request).await) }
        });
        Client::new(service, "default")
    }

    /// Creates or replaces the object at a path such as `/api/v1/namespaces/default/pods/web`.
    pub(crate) fn put(&self, path: &str, object: Value) -> Value {
        let (address, _) = parse(path);
        let mut world = self.shared.world.lock();
        let stored = world.put(address, object);
        drop(world);
        self.publish();
        stored
    }

    pub(crate) fn delete(&self, path: &str) {
        let (address, _) = parse(path);
        self.shared.world.lock().delete(&address);
        self.publish();
    }

    pub(crate) fn get(&self, path: &str) -> Option<Value> {
        self.shared
            .world
            .lock()
            .objects
            .get(&parse(path).0)
            .cloned()
    }

    pub(crate) fn objects(&self, collection: &str) -> Vec<Value> {
        let world = self.shared.world.lock();
        let matching = world
            .objects
            .iter()
            .filter(|(at, _)| at.collection == collection);
        matching.map(|(_, object)| object.clone()).collect()
    }

    /// Type and name of each change in a collection so far.
    #[allow(dead_code)] // For loops.
    pub(crate) fn changes(&self, collection: &str) -> Vec<(&'static str, String)> {
        let world = self.shared.world.lock();
        let those = world.history.iter().filter(|(_, of, ..)| of == collection);
        let told = those.map(|(_, _, kind, object)| {
            let name = object["metadata"]["name"].as_str().unwrap_or("");
            (*kind, name.to_owned())
        });
        told.collect()
    }

    /// Collection and object of all there is.
    #[allow(dead_code)] // For loops.
    pub(crate) fn everything(&self) -> Vec<(String, Value)> {
        let world = self.shared.world.lock();
        let all = world.objects.iter();
        all.map(|(at, object)| (at.collection.clone(), object.clone()))
            .collect()
    }

    /// Collection, type and object of each change so far.
    #[allow(dead_code)] // For loops.
    pub(crate) fn history(&self) -> Vec<(String, &'static str, Value)> {
        let world = self.shared.world.lock();
        let all = world.history.iter().cloned();
        all.map(|(_, collection, kind, object)| (collection, kind, object))
            .collect()
    }

    /// Ends every watch under way.
    pub(crate) fn break_watches(&self) {
        self.shared.changed.send_modify(|(_, breaks)| *breaks += 1);
    }

    /// Forgets history: a watch can only start from here.
    pub(crate) fn compact(&self) {
        let mut world = self.shared.world.lock();
        world.compacted = world.revision;
    }

    /// Answers the next requests with these codes.
    pub(crate) fn refuse(&self, codes: &[u16]) {
        self.shared.world.lock().refuse.extend(codes.iter().rev());
    }

    /// From now on every watch is accepted and ends with no event.
    pub(crate) fn end_watches_at_once(&self) {
        self.shared.world.lock().watches_end_at_once = true;
        self.break_watches();
    }

    /// Method (or `WATCH`) and path of every request so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.shared.world.lock().requests.clone()
    }

    fn publish(&self) {
        let count = self.shared.world.lock().history.len();
        self.shared
            .changed
            .send_modify(|(changes, _)| *changes = count);
    }

    async fn answer(&self, request: Request<Body>) -> Answer {
        let (head, body) = request.into_parts();
        let body = body
            .collect()
            .await
            .expect("a request body is in memory")
            .to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
        let path = head.uri.path().to_owned();
        let query = head.uri.query().unwrap_or("").to_owned();
        {
            let mut world = self.shared.world.lock();
            let watches = query.contains("watch=true");
            let verb = if watches {
                "WATCH"
            } else {
                head.method.as_str()
            };
            world.requests.push(format!("{verb} {path}"));
            if let Some(code) = world.refuse.pop() {
                return failure(code, "Refused");
            }
        }
        if query.contains("watch=true") {
            return self.watch(&path, &query);
        }
        let answer = self
            .shared
            .world
            .lock()
            .write_or_read(&head.method, &path, body);
        self.publish();
        answer
    }

    fn watch(&self, path: &str, query: &str) -> Answer {
        let (scope, _) = parse(path);
        let after = query
            .split('&')
            .find_map(|pair| pair.strip_prefix("resourceVersion="));
        let after: u64 = after.and_then(|text| text.parse().ok()).unwrap_or(0);
        if after < self.shared.world.lock().compacted {
            let status = status_body(410, "Expired");
            let line = format!("{}\n", json!({"type": "ERROR", "object": status}));
            return respond(200, Full::from(line).boxed_unsync());
        }
        if self.shared.world.lock().watches_end_at_once {
            return respond(200, Full::default().boxed_unsync());
        }
        let changes = self.shared.changed.subscribe();
        let start = changes.borrow().1;
        let state = (self.shared.clone(), changes, 0_usize);
        let lines = stream::unfold(state, move |(shared, mut changes, from)| {
            let scope = scope.clone();
            async move {
                if changes.borrow_and_update().1 != start {
                    return None;
                }
                let (text, next) = {
                    let world = shared.world.lock();
                    (world.lines(&scope, from, after), world.history.len())
                };
                if text.is_empty() {
                    changes.changed().await.ok()?;
                }
                Some((text, (shared, changes, next)))
            }
        });
        let frames = lines.map(|text| Ok(Frame::data(Bytes::from(text))));
        respond(200, BodyExt::boxed_unsync(StreamBody::new(frames)))
    }
}

impl World {
    fn put(&mut self, address: Address, mut object: Value) -> Value {
        self.revision += 1;
        let old = self.objects.get(&address);
        let kind = if old.is_some() { "MODIFIED" } else { "ADDED" };
        let meta = &mut object["metadata"];
        meta["name"] = json!(address.name);
        if !address.namespace.is_empty() {
            meta["namespace"] = json!(address.namespace);
        }
        if meta.get("uid").is_none() {
            let old_uid = old.map(|old| old["metadata"]["uid"].clone());
            meta["uid"] = old_uid.unwrap_or_else(|| json!(format!("uid-{}", self.revision)));
        }
        meta["resourceVersion"] = json!(self.revision.to_string());
        self.history.push((
            self.revision,
            address.collection.clone(),
            kind,
            object.clone(),
        ));
        self.objects.insert(address, object.clone());
        object
    }

    fn delete(&mut self, address: &Address) -> Option<Value> {
        let mut object = self.objects.remove(address)?;
        self.revision += 1;
        object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        let collection = address.collection.clone();
        self.history
            .push((self.revision, collection, "DELETED", object.clone()));
        Some(object)
    }

    fn lines(&self, scope: &Address, from: usize, after: u64) -> String {
        let changes = self.history[from..]
            .iter()
            .filter(|(revision, collection, _, object)| {
                *revision > after && *collection == scope.collection && in_scope(scope, object)
            });
        changes
            .map(|(_, _, kind, object)| format!("{}\n", json!({"type": kind, "object": object})))
            .collect()
    }

    fn write_or_read(&mut self, method: &Method, path: &str, body: Value) -> Answer {
        let (mut address, named) = parse(path);
        match *method {
            Method::GET if !named => {
                let items: Vec<&Value> = self
                    .objects
                    .iter()
                    .filter(|(at, object)| {
                        at.collection == address.collection && in_scope(&address, object)
                    })
                    .map(|(_, object)| object)
                    .collect();
                let meta = json!({"resourceVersion": self.revision.to_string()});
                json_answer(200, &json!({"metadata": meta, "items": items}))
            }
            Method::GET => match self.objects.get(&address) {
                Some(object) => json_answer(200, object),
                None => failure(404, "NotFound"),
            },
            Method::POST => {
                body["metadata"]["name"]
                    .as_str()
                    .unwrap_or("")
                    .clone_into(&mut address.name);
                if self.objects.contains_key(&address) {
                    return failure(409, "AlreadyExists");
                }
                json_answer(201, &self.put(address, body))
            }
            Method::PUT | Method::PATCH => {
                let Some(old) = self.objects.get(&address) else {
                    return failure(404, "NotFound");
                };
                let asked = &body["metadata"]["resourceVersion"];
                if asked.is_string() && *asked != old["metadata"]["resourceVersion"] {
                    return failure(409, "Conflict");
                }
                let mut new = old.clone();
                if *method == Method::PUT {
                    new = body
                } else {
                    merge(&mut new, &body)
                }
                json_answer(200, &self.put(address, new))
            }
            _ => match self.delete(&address) {
                Some(object) => json_answer(200, &object),
                None => failure(404, "NotFound"),
            },
        }
    }
}

pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    for (key, value) in patch {
        if value.is_null() {
            target.as_object_mut().map(|map| map.remove(key));
        } else {
            merge(&mut target[key], value);
        }
    }
}

fn in_scope(scope: &Address, object: &Value) -> bool {
    scope.namespace.is_empty() || object["metadata"]["namespace"] == json!(scope.namespace)
}

/// The address a path names, and whether it names one object.
fn parse(path: &str) -> (Address, bool) {
    let mut steps = path.trim_matches('/').split('/');
    let mut prefix: Vec<&str> = steps.by_ref().take(2).collect();
    if prefix[0] == "apis" {
        prefix.extend(steps.next());
    }
    let rest: Vec<&str> = steps.collect();
    let (namespace, rest) = match rest.as_slice() {
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
        all => ("", all),
    };
    let collection = format!("/{}/{}", prefix.join("/"), rest[0]);
    let name = rest.get(1).copied().unwrap_or("");
    let address = Address {
        collection,
        namespace: namespace.into(),
        name: name.into(),
    };
    (address, !name.is_empty())
}

fn respond(code: u16, body: UnsyncBoxBody<Bytes, Infallible>) -> Answer {
    Response::builder()
        .status(code)
        .body(body)
        .expect("a valid status")
}

fn json_answer(code: u16, value: &Value) -> Answer {
    respond(code, Full::from(value.to_string()).boxed_unsync())
}

fn status_body(code: u16, reason: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "code": code, "reason": reason, "message": reason,
    })
}

fn failure(code: u16, reason: &str) -> Answer {
    json_answer(code, &status_body(code, reason))
}

/// Waits until the predicate holds; paused time runs on meanwhile.
pub(crate) async fn eventually(what: &str, check: impl Fn() -> bool) {
    let work = async {
        while !check() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let limit = Duration::from_secs(300);
    assert!(
        tokio::time::timeout(limit, work).await.is_ok(),
        "never: {what}"
    );
}
