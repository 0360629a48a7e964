use super::Backends;
use coracle_client::ObjectKey;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use serde_json::{Value, json};

fn slice(name: &str, service: &str, endpoints: &Value) -> EndpointSlice {
    serde_json::from_value(json!({
        "metadata": {
            "name": name, "namespace": "default",
            "labels": { "kubernetes.io/service-name": service },
        },
        "addressType": "IPv4",
        "endpoints": endpoints,
    }))
    .unwrap()
}

fn of(backends: &Backends, service: &str) -> Vec<String> {
    let key = ObjectKey::new("default", service);
    let all = backends.by_service();
    all.get(&key).into_iter().flatten().cloned().collect()
}

#[test]
fn nodes_of_ready_endpoints_are_known_by_service() {
    let mut backends = Backends::default();
    let endpoints = json!([
        { "addresses": ["10.0.0.1"], "nodeName": "a", "conditions": { "ready": true } },
        { "addresses": ["10.0.0.2"], "nodeName": "b", "conditions": { "ready": false } },
        { "addresses": ["10.0.0.3"], "nodeName": "c" },
        { "addresses": ["10.0.0.4"] },
    ]);
    assert!(backends.set(&slice("web-1", "web", &endpoints)));
    assert!(
        !backends.set(&slice("web-1", "web", &endpoints)),
        "nothing new"
    );
    let more = json!([{ "addresses": ["10.0.0.5"], "nodeName": "d" }]);
    assert!(backends.set(&slice("web-2", "web", &more)));
    assert!(backends.set(&slice("db-1", "db", &more)));
    assert_eq!(of(&backends, "web"), ["a", "c", "d"]);
    assert_eq!(of(&backends, "db"), ["d"]);
    // A slice of another Service, one without ready endpoints, and one that goes.
    assert!(backends.set(&slice("web-2", "db", &more)));
    assert_eq!(of(&backends, "web"), ["a", "c"]);
    assert!(backends.set(&slice("web-1", "web", &json!([]))));
    assert!(!backends.remove(&slice("web-1", "web", &json!([]))));
    assert!(of(&backends, "web").is_empty());
    assert!(backends.remove(&slice("db-1", "db", &more)));
    assert!(backends.remove(&slice("web-2", "db", &more)));
    assert!(of(&backends, "db").is_empty());
}
