//! A server of webhooks in this process, over TLS, that answers as a test wants and keeps what it
//! was asked.

use super::site::{PATIENCE, Site};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::{OwnedRwLockWriteGuard, RwLock};
use tokio_rustls::TlsAcceptor;

/// What a webhook does with the request of a review: the response without its uid, or nothing.
pub type Act = fn(&str, &Value) -> Option<Value>;

pub struct Hooks {
    pub port: u16,
    ca_bundle: String,
    seen: Arc<Mutex<Vec<(String, Value)>>>,
    gate: Gate,
}

/// Whoever writes keeps all answers back.
type Gate = Arc<RwLock<()>>;

const MARKER: &str = "/marker";

/// The response to a review, for a path.
fn respond(act: Act, path: &str, review: &Value) -> Option<Value> {
    let mut response = match path {
        MARKER => json!({ "allowed": true }),
        path => act(path, &review["request"])?,
    };
    response["uid"] = review["request"]["uid"].clone();
    Some(json!({
        "kind": review["kind"], "apiVersion": review["apiVersion"], "response": response,
    }))
}

impl Hooks {
    pub async fn start(act: Act) -> Self {
        let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        let signing_key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&signing_key).unwrap();
        let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key.into())
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let hooks = Self {
            port: listener.local_addr().unwrap().port(),
            ca_bundle: STANDARD.encode(certificate.pem()),
            seen: Arc::default(),
            gate: Gate::default(),
        };
        let seen = Arc::clone(&hooks.seen);
        let gate = Arc::clone(&hooks.gate);
        tokio::spawn(async move {
            let acceptor = TlsAcceptor::from(Arc::new(tls));
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, seen) = (acceptor.clone(), Arc::clone(&seen));
                let gate = Arc::clone(&gate);
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else {
                        return;
                    };
                    let service = service_fn(move |request| {
                        answer(request, act, seen.clone(), Arc::clone(&gate))
                    });
                    let served = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service);
                    drop(served.await);
                });
            }
        });
        hooks
    }

    /// A webhook of the server, with rules as `OPERATIONS GROUP RESOURCES`.
    pub fn webhook(&self, path: &str, rules: &str) -> Value {
        let mut words = rules.split(' ').map(|word| word.split(','));
        let mut next = || words.next().unwrap().collect::<Vec<_>>();
        let rule = json!({
            "operations": next(), "apiGroups": next(), "apiVersions": ["*"], "resources": next(),
        });
        json!({
            "name": format!("{}.example.com", path.trim_matches('/')),
            "clientConfig": {
                "url": format!("https://localhost:{}{path}", self.port),
                "caBundle": self.ca_bundle,
            },
            "rules": [rule], "sideEffects": "None", "admissionReviewVersions": ["v1"],
        })
    }

    /// Creates a configuration (`Mutating` or `Validating`) and waits until it is in effect.
    pub async fn register(&self, site: &Site, does: &str, name: &str, webhooks: Vec<Value>) {
        let mut marker = self.webhook(MARKER, "CREATE  configmaps");
        marker["objectSelector"] = json!({ "matchLabels": { "marker": name } });
        // First: it is asked whatever the others say.
        let webhooks: Vec<Value> = [marker].into_iter().chain(webhooks).collect();
        let configuration = json!({ "metadata": { "name": name }, "webhooks": webhooks });
        site.post(&path(does), &configuration).await.ok();
        let labels = json!({ "marker": name });
        let map = json!({ "metadata": { "name": "marker", "labels": labels } });
        let trial = "/api/v1/namespaces/kube-public/configmaps?dryRun=All";
        let is_marked = |(path, request): &(String, Value)| {
            path == MARKER && request["object"]["metadata"]["labels"]["marker"] == name
        };
        let asked = async {
            while !self.seen.lock().iter().any(is_marked) {
                site.post(trial, &map).await;
                tokio::task::yield_now().await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, asked).await;
        waited.unwrap_or_else(|_| panic!("{name} is not in effect"));
    }

    /// Creates a configuration of one webhook that stops everything, and waits until it does.
    pub async fn register_all(&self, site: &Site, does: &str, name: &str, webhook: Value) {
        let configuration = json!({ "metadata": { "name": name }, "webhooks": [webhook] });
        site.post(&path(does), &configuration).await.ok();
        let map = json!({ "metadata": { "name": "marker" } });
        let trial = "/api/v1/namespaces/kube-public/configmaps?dryRun=All";
        let asked = async {
            while site.post(trial, &map).await.status.is_success() {
                tokio::task::yield_now().await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, asked).await;
        waited.unwrap_or_else(|_| panic!("{name} is not in effect"));
    }

    /// Keeps back what is asked from now on, until this is dropped.
    pub async fn hold(&self) -> OwnedRwLockWriteGuard<()> {
        Arc::clone(&self.gate).write_owned().await
    }

    /// Waits until a webhook was asked so often.
    pub async fn until_asked(&self, path: &str, count: usize) {
        let asked = async {
            while self.seen(path).len() < count {
                tokio::task::yield_now().await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, asked).await;
        waited.unwrap_or_else(|_| panic!("{path} is not asked {count} times"));
    }

    /// The requests that a webhook was asked about.
    pub fn seen(&self, path: &str) -> Vec<Value> {
        let seen = self.seen.lock();
        let of_path = seen.iter().filter(|(own, _)| own == path);
        of_path.map(|(_, request)| request.clone()).collect()
    }
}

/// Where configurations are.
pub fn path(does: &str) -> String {
    let plural = format!("{}webhookconfigurations", does.to_lowercase());
    format!("/apis/admissionregistration.k8s.io/v1/{plural}")
}

/// A response with a JSON patch.
pub fn patch(operations: Value) -> Option<Value> {
    let patch = STANDARD.encode(operations.to_string());
    Some(json!({ "allowed": true, "patchType": "JSONPatch", "patch": patch }))
}

async fn answer(
    request: Request<Incoming>,
    act: Act,
    seen: Arc<Mutex<Vec<(String, Value)>>>,
    gate: Gate,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    let path = parts.uri.path().to_owned();
    seen.lock().push((path.clone(), review["request"].clone()));
    if path == "/never" {
        std::future::pending::<()>().await;
    }
    drop(gate.read().await);
    let mut response = Response::new(Full::default());
    match respond(act, &path, &review) {
        Some(review) => *response.body_mut() = Full::new(review.to_string().into()),
        None => *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR,
    }
    Ok(response)
}
