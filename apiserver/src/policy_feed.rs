//! `GET /coracle/v1/policy`: what nodes need for NetworkPolicy, for as long as a watch lives.
//!
//! Pods' labels, addresses and named ports, and nothing else of them: nodes have no right to read
//! pods of other nodes. Namespaces and pods are told of while a policy exists. A node that falls
//! behind, or for which history is gone, is told all of it again.

use crate::request_info::RequestInfo;
use crate::tunnel::{Body, BoxError};
use crate::verbs::watch::LIFE_SECONDS;
use crate::view::{decode, partition};
use bytes::Bytes;
use coracle_api::json;
use coracle_api::object::Object;
use coracle_api::pod_spec::resources::is_sidecar;
pub use coracle_api::policy_feed::PATH;
use coracle_api::policy_feed::{NamedPort, Pod, Told};
use coracle_store::{Event, EventKind, Revision, Snapshot, Store, Watch, WatchClosed};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// What waits for a node that reads slowly; then its task waits, and the store drops its watch.
const PIECES_MAX: usize = 4;
/// A list is sent in pieces of about this size.
const PIECE_BYTES: usize = 32 << 10;
/// Events of one piece.
const EVENTS_MAX: usize = 256;

pub fn is_asked(method: &Method, info: &RequestInfo) -> bool {
    method == Method::GET && is_path(info)
}

pub fn is_path(info: &RequestInfo) -> bool {
    !info.is_resource_request && info.path == PATH
}

/// A task tells, until the node is gone, the store closes, `shutdown`, or its life is over: whether
/// a node may listen is asked at its beginning.
pub fn follow(store: Store, shutdown: CancellationToken) -> Response<Body> {
    let (sender, receiver) = mpsc::channel(PIECES_MAX);
    let life = Duration::from_secs(rand::random_range(LIFE_SECONDS));
    tokio::spawn(async move {
        let feed = Feed { store, sender };
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = feed.sender.closed() => {}
            () = tokio::time::sleep(life) => {}
            _ = feed.run() => {}
        }
    });
    let frames = futures::stream::unfold(receiver, |mut receiver| async {
        let piece: Bytes = receiver.recv().await?;
        Some((Ok::<_, BoxError>(Frame::data(piece)), receiver))
    });
    let mut response = Response::new(BodyExt::boxed_unsync(StreamBody::new(frames)));
    let json = HeaderValue::from_static("application/x-ndjson");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

/// Why nothing more is told.
#[derive(Debug)]
enum End {
    NodeGone,
    StoreClosed,
}

/// Why all is told again.
enum Again {
    /// The first policy came, or the last one went.
    Other,
    Lost,
}

struct Feed {
    store: Store,
    sender: mpsc::Sender<Bytes>,
}

/// A kind that is told of.
#[derive(Clone, Copy)]
enum Kind {
    Policies,
    Namespaces,
    Pods,
}

impl Kind {
    fn partition(self) -> String {
        match self {
            Self::Policies => partition("networking.k8s.io", "networkpolicies"),
            Self::Namespaces => partition("", "namespaces"),
            Self::Pods => partition("", "pods"),
        }
    }

    /// The object's new state; None when it is gone.
    fn told(self, key: &str, object: Option<&Object>) -> Told {
        let (namespace, name) = key.split_once('/').unwrap_or(("", key));
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        match self {
            Self::Policies => Told::Policy {
                namespace,
                name,
                spec: object.map(|object| {
                    let spec = object.get(&["spec"]).cloned();
                    spec.unwrap_or_else(|| Value::Object(Map::new()))
                }),
            },
            Self::Namespaces => Told::Namespace {
                name,
                labels: object.map(labels),
            },
            Self::Pods => Told::Pod {
                namespace,
                name,
                pod: object.and_then(pod),
            },
        }
    }
}

impl Feed {
    async fn run(&self) -> End {
        loop {
            match self.all_then_changes().await {
                Ok(Again::Other) => {}
                Ok(Again::Lost) => tracing::debug!("a node is told all of policies again"),
                Err(end) => return end,
            }
        }
    }

    async fn all_then_changes(&self) -> Result<Again, End> {
        let mut piece = Piece::default();
        piece.say(&Told::Begin);
        let snapshot = self.store.snapshot(&Kind::Policies.partition());
        let mut policies: BTreeSet<Arc<str>> =
            snapshot.iter().map(|(key, _)| Arc::clone(key)).collect();
        let Some(mut of_policies) = self.list(Kind::Policies, snapshot, &mut piece).await? else {
            return Ok(Again::Lost);
        };
        let mut others = None;
        if !policies.is_empty() {
            let namespaces = self.list_newest(Kind::Namespaces, &mut piece).await?;
            let pods = self.list_newest(Kind::Pods, &mut piece).await?;
            let (Some(namespaces), Some(pods)) = (namespaces, pods) else {
                return Ok(Again::Lost);
            };
            others = Some((namespaces, pods));
        }
        piece.say(&Told::Listed);
        self.send(piece).await?;
        let had_any = !policies.is_empty();
        loop {
            let mut piece = Piece::default();
            let kind = match &mut others {
                None => {
                    of_policies.ready().await;
                    Kind::Policies
                }
                Some((of_namespaces, of_pods)) => tokio::select! {
                    () = of_policies.ready() => Kind::Policies,
                    () = of_namespaces.ready() => Kind::Namespaces,
                    () = of_pods.ready() => Kind::Pods,
                },
            };
            let taken = match (kind, &mut others) {
                (Kind::Namespaces, Some((watch, _))) => piece.changes(kind, watch, None),
                (Kind::Pods, Some((_, watch))) => piece.changes(kind, watch, None),
                _ => piece.changes(kind, &mut of_policies, Some(&mut policies)),
            };
            match taken {
                Ok(()) => {}
                Err(WatchClosed::StoreClosed) => return Err(End::StoreClosed),
                Err(_) => return Ok(Again::Lost),
            }
            if policies.is_empty() == had_any {
                return Ok(Again::Other);
            }
            self.send(piece).await?;
        }
    }

    async fn list_newest(&self, kind: Kind, piece: &mut Piece) -> Result<Option<Watch>, End> {
        let snapshot = self.store.snapshot(&kind.partition());
        self.list(kind, snapshot, piece).await
    }

    /// Tells of all in it, and watches from there on. None when history is not there.
    async fn list(
        &self,
        kind: Kind,
        snapshot: Snapshot,
        piece: &mut Piece,
    ) -> Result<Option<Watch>, End> {
        let from: Revision = snapshot.revision();
        let mut last: Arc<str> = Arc::from("");
        loop {
            let mut is_full = false;
            for (key, entry) in snapshot.range_from(&last.clone(), "") {
                last = Arc::clone(key);
                let object = decode(&entry.value);
                let told = kind.told(key, object.as_ref());
                if !matches!(told, Told::Pod { pod: None, .. }) {
                    piece.say(&told);
                }
                is_full = piece.0.len() >= PIECE_BYTES;
                if is_full {
                    break;
                }
            }
            if !is_full {
                break;
            }
            self.send(std::mem::take(piece)).await?;
        }
        Ok(self.store.watch(&kind.partition(), from).ok())
    }

    async fn send(&self, piece: Piece) -> Result<(), End> {
        if piece.0.is_empty() {
            return Ok(());
        }
        let sent = self.sender.send(piece.0.into()).await;
        sent.map_err(|_| End::NodeGone)
    }
}

/// Lines that are sent together.
#[derive(Default)]
struct Piece(Vec<u8>);

impl Piece {
    fn say(&mut self, told: &Told) {
        serde_json::to_writer(&mut self.0, told).expect("what is told is plain JSON");
        self.0.push(b'\n');
    }

    /// What came in. `there` is kept in step with it.
    fn changes(
        &mut self,
        kind: Kind,
        watch: &mut Watch,
        mut there: Option<&mut BTreeSet<Arc<str>>>,
    ) -> Result<(), WatchClosed> {
        for event in watch.take(EVENTS_MAX)? {
            let is_gone = event.kind == EventKind::Deleted;
            match &mut there {
                Some(there) if is_gone => _ = there.remove(&event.key),
                Some(there) => _ = there.insert(Arc::clone(&event.key)),
                None => {}
            }
            self.change(kind, &event, is_gone);
        }
        Ok(())
    }

    /// Most of what happens to a pod changes nothing of what is told of it.
    fn change(&mut self, kind: Kind, event: &Event, is_gone: bool) {
        let now = decode(&event.value).filter(|_| !is_gone);
        let told = kind.told(&event.key, now.as_ref());
        let before = event.previous.as_ref();
        let before = before.and_then(|entry| decode(&entry.value));
        let is_new = match (&before, kind) {
            (None, Kind::Pods) => !matches!(told, Told::Pod { pod: None, .. }),
            (None, _) => true,
            (Some(before), _) => kind.told(&event.key, Some(before)) != told,
        };
        if is_new {
            self.say(&told);
        }
    }
}

fn labels(object: &Object) -> std::collections::BTreeMap<String, String> {
    let labels = object.labels();
    labels
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// None for what has no address of its own.
fn pod(object: &Object) -> Option<Pod> {
    let is_done = matches!(object.str(&["status", "phase"]), "Succeeded" | "Failed");
    if is_done || object.bool(&["spec", "hostNetwork"]) {
        return None;
    }
    let addresses = object.list(&["status", "podIPs"]).iter();
    let addresses = addresses.filter_map(|one| one.get("ip")?.as_str()?.parse().ok());
    let addresses: Vec<_> = addresses.collect();
    if addresses.is_empty() {
        return None;
    }
    let lasting = object.list(&["spec", "initContainers"]).iter();
    let lasting = lasting.filter(|one| is_sidecar(one));
    let containers = lasting.chain(object.list(&["spec", "containers"]));
    let ports = containers.flat_map(|one| json::list(one, "ports"));
    Some(Pod {
        uid: object.uid().to_owned(),
        labels: labels(object),
        addresses,
        ports: ports.filter_map(named_port).collect(),
    })
}

fn named_port(port: &Value) -> Option<NamedPort> {
    let (name, protocol) = (json::text(port, "name"), json::text(port, "protocol"));
    NamedPort::new(name, protocol, json::int(port, "containerPort")?)
}

#[cfg(test)]
mod tests;
