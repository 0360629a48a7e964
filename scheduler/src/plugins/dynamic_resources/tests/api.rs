//! An API server that answers as a test says, and a pod that is on its way to a node beside it.

use super::*;
use std::convert::Infallible;

pub(super) trait Answers: Send + 'static {
    /// Status and body.
    fn answer(&mut self, method: &str, path: &str, body: &Value) -> (u16, Value);
}

pub(super) fn serving<S: Answers>(server: &Arc<Mutex<S>>) -> Client {
    let server = Arc::clone(server);
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let server = Arc::clone(&server);
        async move {
            let (head, body) = request.into_parts();
            let bytes = body.collect_bytes().await.unwrap();
            let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
            let (method, path) = (head.method.as_str(), head.uri.path());
            let (code, value) = server.lock().answer(method, path, &body);
            let answer = kube::client::Body::from(value.to_string().into_bytes());
            let answer = http::Response::builder().status(code).body(answer);
            Ok::<_, Infallible>(answer.unwrap())
        }
    });
    Client::new(service, "default")
}

pub(super) fn refused(code: u16, reason: &str, message: &str) -> (u16, Value) {
    let status = json!({"kind": "Status", "status": "Failure", "code": code,
        "reason": reason, "message": message, "metadata": {}});
    (code, status)
}

pub(super) fn merge(into: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *into = patch.clone();
        return;
    };
    for (key, value) in patch {
        match value {
            Value::Null => drop(into.as_object_mut().map(|into| into.remove(key))),
            value => {
                if !into.is_object() {
                    *into = json!({});
                }
                merge(&mut into[key], value);
            }
        }
    }
}

pub(super) struct Scene<S> {
    pub server: Arc<Mutex<S>>,
    pub devices: Arc<Mutex<Devices>>,
    pub plugin: Arc<DynamicResources>,
    pub pod: PodInfo,
}

impl<S: Answers> Scene<S> {
    /// The pod is on its way to node `a`.
    pub fn new(server: S, devices: Arc<Mutex<Devices>>, pod: PodInfo) -> Self {
        let server = Arc::new(Mutex::new(server));
        let plugin = plugin(&devices, serving(&server));
        assert_eq!(cycle(&plugin, &pod, "node a"), "a");
        plugin.reserve(&pod, "a").unwrap();
        Self {
            server,
            devices,
            plugin,
            pod,
        }
    }
}
