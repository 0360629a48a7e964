//! Devices behind extended resources: which nodes do, and what is written when one is found.

use super::api::{self, Answers, merge, refused, serving};
use super::*;
use crate::plugins::scene::filter;

const GPU: &str = "example.com/gpu";
const IMPLICIT: &str = "deviceclass.resource.kubernetes.io/any";

/// As `devices`, with a class behind `GPU`.
fn offered(nodes: &[&str]) -> Arc<Mutex<Devices>> {
    let devices = devices(nodes);
    let class = json!({"metadata": {"name": "gpus"}, "spec": {"extendedResourceName": GPU}});
    devices.lock().set_class(&read(class));
    devices
}

fn asking(name: &str, requests: &[(&str, &str)], claims: &[&str]) -> PodInfo {
    let mut pod = Pod::clone(named(name, claims).waiting.as_ref().unwrap());
    let requests: Vec<(&str, Value)> = requests
        .iter()
        .map(|(name, amount)| (*name, json!(amount)))
        .collect();
    let requests: Value = requests
        .into_iter()
        .map(|(name, amount)| (name.to_owned(), amount))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let container = json!({"name": "main", "resources": {"requests": requests}});
    pod.spec.as_mut().unwrap().containers = vec![serde_json::from_value(container).unwrap()];
    PodInfo::new(Arc::new(pod))
}

#[tokio::test]
async fn a_node_has_them_by_its_device_plugin_or_as_devices() {
    let plugin = plugin(&offered(&["a"]), nobody());
    let said = |requests: &[(&str, &str)], nodes: &str| {
        filter(&*plugin, &asking("p", requests, &[]), &world(nodes))
    };
    let nodes = format!("node a\nnode b has={GPU}:1\nnode c");
    let enough = "a fits, b fits, c cannot allocate all claims!";
    assert_eq!(said(&[(GPU, "1")], &nodes), enough);
    assert_eq!(
        said(&[(IMPLICIT, "1")], "node a\nnode c"),
        "a fits, c cannot allocate all claims!"
    );
    let two = "a cannot allocate all claims!, b fits, c cannot allocate all claims!";
    assert_eq!(said(&[(GPU, "2")], &nodes), two, "b is looked at by others");
    assert_eq!(said(&[("example.com/other", "1")], &nodes), "skipped");
    assert_eq!(said(&[(GPU, "0"), ("cpu", "1")], &nodes), "skipped");
    assert_eq!(
        said(
            &[(GPU, "1"), ("example.com/other", "1")],
            "node a\nnode b has=example.com/other:0"
        ),
        "a cannot fit resource!, b cannot allocate all claims!"
    );
}

#[tokio::test]
async fn what_one_pod_gets_another_does_not() {
    let devices = offered(&["a"]);
    devices.lock().set_claim(&read(claim("c", json!({}))));
    let plugin = plugin(&devices, nobody());
    let [first, second] = ["p", "q"].map(|name| asking(name, &[(GPU, "1")], &[]));
    assert_eq!(cycle(&plugin, &first, "node a"), "a");
    plugin.reserve(&first, "a").unwrap();
    assert_eq!(devices.lock().allocations().count(), 1);
    let none = "0/1 nodes are available: 1 cannot allocate all claims. still not schedulable";
    assert_eq!(cycle(&plugin, &second, "node a"), none);
    assert_eq!(cycle(&plugin, &named("r", &["c"]), "node a"), none);
    plugin.unreserve(&first, "a");
    assert_eq!(devices.lock().allocations().count(), 0);
    assert_eq!(cycle(&plugin, &second, "node a"), "a");
}

#[tokio::test]
async fn together_with_claims() {
    let devices = offered(&["a", "b"]);
    let mut more = ResourceSlice::clone(devices.lock().slices().next().unwrap());
    more.spec.devices.as_mut().unwrap().push(Device {
        name: "y".to_owned(),
        ..Device::default()
    });
    devices.lock().set_slice(&Arc::new(more));
    devices.lock().set_claim(&read(claim("c", json!({}))));
    let plugin = plugin(&devices, nobody());
    let pod = asking("p", &[(GPU, "1")], &["c"]);
    let nodes = format!("node a\nnode b\nnode e has={GPU}:1");
    let only = "a fits, b cannot allocate all claims!, e cannot allocate all claims!";
    assert_eq!(filter(&*plugin, &pod, &world(&nodes)), only);
    assert_eq!(cycle(&plugin, &pod, &nodes), "a");
    plugin.reserve(&pod, "a").unwrap();
    assert_eq!(devices.lock().allocations().count(), 2);
    // Where a device plugin gives it there is no claim for it.
    plugin.unreserve(&pod, "a");
    let nodes = format!("node a has={GPU}:1");
    assert_eq!(cycle(&plugin, &pod, &nodes), "a");
    plugin.reserve(&pod, "a").unwrap();
    assert_eq!(devices.lock().allocations().count(), 1);
}

use k8s_openapi::api::resource::v1::{Device, ResourceSlice};

fn made_for(pod: &str, name: &str) -> Value {
    let mut claim = claim(name, json!({}));
    claim["metadata"]["annotations"] =
        json!({"resource.kubernetes.io/extended-resource-claim": "true"});
    claim["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "Pod",
        "name": pod, "uid": format!("u-{pod}"), "controller": true}]);
    claim
}

#[tokio::test]
async fn a_claim_of_an_attempt_before_goes_first() {
    let devices = offered(&["a"]);
    let plugin = plugin(&devices, nobody());
    let stale = made_for("p", "p-extended-resources-x1");
    devices.lock().set_claim(&read(stale.clone()));
    let pod = asking("p", &[(GPU, "1")], &[]);
    assert_eq!(
        cycle(&plugin, &pod, "node a"),
        "0/1 nodes are available: 1 cannot schedule extended resource claim. deletion of \
         ResourceClaim completed deletes default/p-extended-resources-x1"
    );
    let gone = WorldChange::ResourceClaimGone(read(stale));
    let other = asking("q", &[(GPU, "1")], &[]);
    assert!(plugin.can_help(&gone, &pod) && !plugin.can_help(&gone, &other));
    assert_eq!(
        cycle(&plugin, &other, "node a"),
        "a",
        "it is another's, and has nothing"
    );
}

#[tokio::test]
async fn the_end_of_a_pod_that_may_have_had_devices_helps() {
    let plugin = plugin(&offered(&[]), nobody());
    let pod = asking("p", &[(GPU, "1")], &[]);
    let gone = |requests: &[(&str, &str)]| {
        let pod = Arc::new(asking("q", requests, &[]));
        WorldChange::PodGone(pod)
    };
    assert!(plugin.can_help(&gone(&[(IMPLICIT, "1")]), &pod));
    assert!(!plugin.can_help(&gone(&[("example.com/other", "1")]), &pod));
}

/// What is there beside the pod, and what was asked of it: method, kind, part, code.
#[derive(Debug, Default)]
struct Server {
    claim: Value,
    pod: Value,
    version: u64,
    /// Whose writes fail.
    refuses: &'static str,
    log: Vec<String>,
}

impl Answers for Server {
    fn answer(&mut self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let path = path.rsplit("/default/").next().unwrap();
        let line = format!("{method} {path}");
        if !self.refuses.is_empty() && line.contains(self.refuses) {
            self.log.push(format!("{line} 500"));
            return refused(500, "InternalError", "broken");
        }
        self.log.push(line);
        self.version += 1;
        let known = match path.starts_with("pods/") {
            true => &mut self.pod,
            false => &mut self.claim,
        };
        match method {
            "POST" => {
                *known = body.clone();
                let base = body["metadata"]["generateName"].as_str().unwrap();
                known["metadata"]["name"] = format!("{base}x1").into();
                known["metadata"]["uid"] = "u-made".into();
            }
            "PATCH" => merge(known, body),
            "DELETE" => {
                assert!(
                    known["metadata"]["finalizers"]
                        .as_array()
                        .is_none_or(Vec::is_empty)
                );
                return (200, std::mem::take(known));
            }
            _ => {}
        }
        known["metadata"]["resourceVersion"] = self.version.to_string().into();
        (200, known.clone())
    }
}

type Scene = api::Scene<Server>;

fn scene(refuses: &'static str) -> Scene {
    let pod = asking("p", &[(GPU, "1"), ("cpu", "1")], &[]);
    let server = Server {
        pod: serde_json::to_value(&**pod.waiting.as_ref().unwrap()).unwrap(),
        refuses,
        ..Server::default()
    };
    Scene::new(server, offered(&["a"]), pod)
}

const CLAIM: &str = "p-extended-resources-x1";

#[tokio::test(start_paused = true)]
async fn a_claim_is_made_allocated_and_named_in_the_pod() {
    let scene = scene("");
    scene.plugin.pre_bind(&scene.pod, "a").await.unwrap();
    let said = scene.server.lock().log.join("\n");
    assert_eq!(
        said,
        format!(
            "POST resourceclaims\nPATCH resourceclaims/{CLAIM}\n\
             PATCH resourceclaims/{CLAIM}/status\nPATCH pods/p/status"
        )
    );
    let [made, pod] = {
        let server = scene.server.lock();
        [server.claim.clone(), server.pod.clone()]
    };
    let mark = &made["metadata"]["annotations"]["resource.kubernetes.io/extended-resource-claim"];
    assert_eq!(*mark, json!("true"));
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u-p",
        "controller": true});
    assert_eq!(made["metadata"]["ownerReferences"], json!([owner]));
    let exactly = json!({"deviceClassName": "gpus", "allocationMode": "ExactCount", "count": 1});
    let request = json!({"name": "container-0-request-1", "exactly": exactly});
    assert_eq!(made["spec"]["devices"]["requests"], json!([request]));
    let consumer = json!({"resource": "pods", "name": "p", "uid": "u-p"});
    assert_eq!(made["status"]["reservedFor"], json!([consumer]));
    let result = &made["status"]["allocation"]["devices"]["results"][0];
    assert_eq!(result["request"], "container-0-request-1");
    let mapping = json!({"containerName": "main", "resourceName": GPU,
        "requestName": "container-0-request-1"});
    assert_eq!(
        pod["status"]["extendedResourceClaimStatus"],
        json!({"requestMappings": [mapping], "resourceClaimName": CLAIM})
    );
    let counted = scene.plugin.writer.made.by_status();
    assert_eq!(counted, [("success", 1), ("failure", 0)]);

    // Until the watch shows the claim, its devices are kept by what is known of it here.
    assert!(scene.devices.lock().is_under_way("u-made"));
    let settled = scene.plugin.settle(&scene.pod, "a").expect("it waits");
    let show = async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        let mut first = made.clone();
        first["status"] = Value::Null;
        first["metadata"]["resourceVersion"] = "1".into();
        scene.devices.lock().set_claim(&read(first));
    };
    let began = tokio::time::Instant::now();
    let (settled, ()) = tokio::join!(settled, show);
    settled.unwrap();
    assert_eq!(began.elapsed(), Duration::from_secs(60));
    let devices = scene.devices.lock();
    assert!(!devices.is_under_way("u-made"));
    assert_eq!(devices.allocations().count(), 1, "as the API answered");
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_never_shown_is_not_waited_for_for_long() {
    let scene = scene("");
    scene.plugin.pre_bind(&scene.pod, "a").await.unwrap();
    let settled = scene.plugin.settle(&scene.pod, "a").expect("it waits");
    let began = tokio::time::Instant::now();
    settled.await.unwrap();
    assert_eq!(began.elapsed(), Duration::from_secs(120));
    assert_eq!(scene.devices.lock().allocations().count(), 0);
}

/// All that was asked of the server once nothing more comes.
async fn log(scene: &Scene, last: &str) -> String {
    let done = async {
        while scene
            .server
            .lock()
            .log
            .last()
            .is_none_or(|line| !line.starts_with(last))
        {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), done)
        .await
        .unwrap();
    scene.server.lock().log.join(", ")
}

#[tokio::test]
async fn what_was_made_goes_with_the_reservation() {
    let scene = scene("pods/p/status");
    let error = scene.plugin.pre_bind(&scene.pod, "a").await.unwrap_err();
    assert_eq!(error.to_string(), "DynamicResources failed");
    assert_eq!(scene.devices.lock().allocations().count(), 1);
    scene.plugin.unreserve(&scene.pod, "a");
    assert_eq!(scene.devices.lock().allocations().count(), 0);
    let claim = format!("resourceclaims/{CLAIM}");
    assert_eq!(
        log(&scene, "DELETE").await,
        format!(
            "POST resourceclaims, PATCH {claim}, PATCH {claim}/status, PATCH pods/p/status 500, \
             PATCH {claim}, DELETE {claim}"
        )
    );
    assert_eq!(scene.server.lock().claim, Value::Null);
}

#[tokio::test]
async fn what_could_not_be_made_leaves_nothing() {
    let scene = scene("POST");
    scene.plugin.pre_bind(&scene.pod, "a").await.unwrap_err();
    let counted = scene.plugin.writer.made.by_status();
    assert_eq!(counted, [("success", 0), ("failure", 1)]);
    scene.plugin.unreserve(&scene.pod, "a");
    assert_eq!(scene.devices.lock().allocations().count(), 0);
    assert_eq!(scene.server.lock().log, ["POST resourceclaims 500"]);
}

#[tokio::test]
async fn a_stale_claim_is_deleted_behind_its_finalizer() {
    let mut stale = made_for("p", CLAIM);
    stale["metadata"]["finalizers"] = json!(["resource.kubernetes.io/delete-protection"]);
    let server = Arc::new(Mutex::new(Server {
        claim: stale.clone(),
        ..Server::default()
    }));
    let client = serving(&server);
    let release = Release::Claim(read(stale));
    super::super::release(&client, &release).await.unwrap();
    let claim = format!("resourceclaims/{CLAIM}");
    let said = server.lock().log.join(", ");
    assert_eq!(said, format!("PATCH {claim}, DELETE {claim}"));
}
