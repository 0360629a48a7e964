//! What is written, and what is waited for.

use super::*;
use crate::binding::Unbound;
use crate::laps::Stage;
use std::convert::Infallible;
use std::time::Duration;

/// A client that nobody answers.
pub(super) fn nobody() -> Client {
    let service = tower::service_fn(|_: http::Request<kube::client::Body>| {
        std::future::ready(Err::<http::Response<kube::client::Body>, _>(
            std::io::Error::other("nobody answers"),
        ))
    });
    Client::new(service, "default")
}

type Written = Arc<Mutex<Vec<(String, Value)>>>;

/// Takes what is written, and shows it again with a new version.
fn taking() -> (Client, Written) {
    let written = Written::default();
    let told = Arc::clone(&written);
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let told = Arc::clone(&told);
        async move {
            let (head, body) = request.into_parts();
            let bytes = body.collect_bytes().await.unwrap();
            let mut value: Value = serde_json::from_slice(&bytes).unwrap();
            value["metadata"]["resourceVersion"] = json!("2");
            let path = format!("{} {}", head.method, head.uri.path());
            told.lock().push((path, value.clone()));
            let answer = kube::client::Body::from(value.to_string().into_bytes());
            Ok::<_, Infallible>(http::Response::new(answer))
        }
    });
    (Client::new(service, "default"), written)
}

/// Binds in a task; what came of it once the task ends.
async fn begin(scene: &Scene, client: Client) -> tokio::task::JoinHandle<Result<(), String>> {
    let (plugin, pod) = (scene.plugin(client), scene.pod());
    scene.cache.lock().assume(Arc::new(scene.pod()), "a");
    plugin.reserve(&pod, "a").unwrap();
    plugin.pre_bind(&pod, "a").await.unwrap();
    tokio::spawn(async move {
        let settled = plugin
            .settle(&pod, "a")
            .expect("there is something to wait for");
        settled
            .await
            .map_err(|error| Unbound::at(Stage::PreBind, error).told())
    })
}

fn show_claim(scene: &Scene, version: &str, words: &[&str]) {
    let mut value = claim("data", words);
    value["metadata"]["resourceVersion"] = json!(version);
    scene.volumes.lock().set_claim(&read(value));
}

#[tokio::test(start_paused = true)]
async fn a_volume_is_taken_and_the_binder_waited_for() {
    let scene = Scene::of("claim data\nclass late\nvolume x\nnode a");
    let (client, written) = taking();
    let waiting = begin(&scene, client).await;
    let (path, mut shown) = written.lock()[0].clone();
    assert_eq!(path, "PUT /api/v1/persistentvolumes/x");
    assert_eq!(shown["spec"]["claimRef"]["uid"], "u-data");
    assert!(!waiting.is_finished());
    shown["status"]["phase"] = json!("Bound");
    scene.volumes.lock().set_volume(&read(shown));
    show_claim(&scene, "2", &["volume=x"]);
    assert_eq!(waiting.await.unwrap(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_told_its_node_and_the_provisioner_waited_for() {
    let scene = Scene::of("claim data\nclass late by=p\nnode a");
    let (client, written) = taking();
    let waiting = begin(&scene, client).await;
    let (path, shown) = written.lock()[0].clone();
    assert_eq!(
        path,
        "PUT /api/v1/namespaces/default/persistentvolumeclaims/data"
    );
    assert_eq!(shown["metadata"]["annotations"][SELECTED_NODE], "a");
    show_claim(&scene, "2", &["node=a"]);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(!waiting.is_finished());
    scene
        .volumes
        .lock()
        .set_volume(&read(volume("v", &["on=a"])));
    show_claim(&scene, "3", &["node=a", "volume=v"]);
    assert_eq!(waiting.await.unwrap(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_provisioner_that_cannot_sends_the_pod_elsewhere() {
    let scene = Scene::of("claim data\nclass late by=p\nnode a");
    let waiting = begin(&scene, taking().0).await;
    show_claim(&scene, "2", &["node=a"]);
    show_claim(&scene, "3", &[]);
    let why = r#"running PreBind plugin "VolumeBinding": binding volumes: provisioning failed for PVC "data""#;
    assert_eq!(waiting.await.unwrap(), Err(why.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_ever_or_for_a_pod_that_is_gone() {
    let scene = Scene::of("claim data\nclass late by=p\nnode a");
    let waiting = begin(&scene, taking().0).await;
    let why = r#"running PreBind plugin "VolumeBinding": binding volumes: timed out"#;
    assert_eq!(waiting.await.unwrap(), Err(why.to_owned()));

    let waiting = begin(&scene, taking().0).await;
    scene.cache.lock().remove_pod("pod-uid");
    let why =
        r#"running PreBind plugin "VolumeBinding": binding volumes: pod does not exist any more"#;
    assert_eq!(waiting.await.unwrap(), Err(why.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_is_out_of_reach_is_no_good() {
    let scene = Scene::of("claim data\nclass late by=p\nnode a");
    let waiting = begin(&scene, taking().0).await;
    scene
        .volumes
        .lock()
        .set_volume(&read(volume("v", &["on=b"])));
    show_claim(&scene, "2", &["node=a", "volume=v"]);
    let why = r#"running PreBind plugin "VolumeBinding": binding volumes: pv "v" node affinity doesn't match node "a""#;
    assert_eq!(waiting.await.unwrap(), Err(why.to_owned()));
}
