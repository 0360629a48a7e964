//! What is told of pods, and that all pages are read.

use super::*;
use http::{Request as Asked, Response};
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::json;
use std::convert::Infallible;
use std::sync::Arc;

/// Serves the pages one after another, and keeps which query asked for each.
fn client(pages: Vec<Value>) -> (Client, Arc<Mutex<Vec<String>>>) {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let queries = Arc::clone(&asked);
    let pages = Arc::new(Mutex::new(pages.into_iter()));
    let service = tower::service_fn(move |request: Asked<Body>| {
        let query = request.uri().query().unwrap_or_default().to_owned();
        queries.lock().push(query);
        let page = pages.lock().next().expect("no page is asked for in vain");
        let response = Response::new(Body::from(page.to_string().into_bytes()));
        async move { Ok::<_, Infallible>(response) }
    });
    (Client::new(service, "default"), asked)
}

fn page(next: &str, items: &[Value]) -> Value {
    json!({"kind": "PodList", "apiVersion": "v1", "metadata": {"continue": next}, "items": items})
}

fn pod(name: &str, spec: &Value) -> Value {
    json!({"metadata": {"namespace": "ns", "name": name}, "spec": spec})
}

async fn lines(items: &[Value]) -> Vec<String> {
    let text = pod_resources(&client(vec![page("", items)]).0)
        .await
        .unwrap();
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    samples.map(str::to_owned).collect()
}

#[tokio::test]
async fn each_resource_of_a_pod_is_told_with_its_unit() {
    let whole = json!({
        "nodeName": "n", "priority": 7, "schedulerName": "s", "overhead": {"cpu": "50m"},
        "containers": [{"name": "a", "resources": {
            "requests": {"cpu": "100m", "memory": "64Mi", "example.com/gpu": "2"},
            "limits": {"memory": "128Mi", "hugepages-2Mi": "4Mi", "example.com/gpu": "2"},
        }}],
    });
    let of = |family: &str, resource: &str, unit: &str, value: &str| {
        format!(
            "kube_pod_resource_{family}{{namespace=\"ns\",node=\"n\",pod=\"p\",priority=\"7\",\
             resource=\"{resource}\",scheduler=\"s\",unit=\"{unit}\"}} {value}"
        )
    };
    assert_eq!(
        lines(&[pod("p", &whole)]).await,
        [
            of("limit", "example.com/gpu", "", "2"),
            of("limit", "hugepages-2Mi", "bytes", "4.194304e+06"),
            of("limit", "memory", "bytes", "1.34217728e+08"),
            of("request", "cpu", "cores", "0.15"),
            of("request", "example.com/gpu", "", "2"),
            of("request", "memory", "bytes", "6.7108864e+07"),
        ]
    );
}

#[tokio::test]
async fn init_containers_and_the_pod_as_a_whole_count_as_they_do_for_nodes() {
    let asks = |cpu: &str| json!({"requests": {"cpu": cpu}, "limits": {"cpu": cpu}});
    let sums = json!({
        "containers": [{"name": "a", "resources": asks("1")}, {"name": "b", "resources": asks("1")}],
        "initContainers": [
            {"name": "side", "restartPolicy": "Always", "resources": asks("500m")},
            {"name": "init", "resources": asks("3")},
        ],
    });
    let mut of_pod = sums.clone();
    of_pod["resources"] = json!({"requests": {"cpu": "5"}});
    of_pod["overhead"] = json!({"cpu": "250m", "memory": "0"});
    let values = lines(&[pod("sums", &sums), pod("whole", &of_pod)]).await;
    let values: Vec<_> = values
        .iter()
        .map(|line| (line.contains("_limit{"), line.rsplit(' ').next().unwrap()))
        .collect();
    assert_eq!(
        values,
        [
            (true, "3.5"),
            (true, "3.75"),
            (false, "3.5"),
            (false, "5.25")
        ]
    );
}

#[tokio::test]
async fn all_pages_are_read_and_families_without_samples_left_out() {
    let asks = json!({"containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}]});
    let pages = vec![
        page(
            "more",
            &[
                pod("a", &asks),
                pod("idle", &json!({"containers": [{"name": "a"}]})),
            ],
        ),
        page("", &[pod("b", &asks)]),
    ];
    let (client, asked) = client(pages);
    let text = pod_resources(&client).await.unwrap();
    assert_eq!(text.matches("# TYPE").count(), 1);
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(text.contains("pod=\"a\",priority=\"\"") && text.contains("pod=\"b\""));
    let asked = asked.lock();
    assert_eq!(asked.len(), 2);
    assert!(asked.iter().all(|query| query.contains("limit=500")));
    assert!(!asked[0].contains("continue=") && asked[1].contains("continue=more"));
}
