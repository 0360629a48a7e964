//! What is written into claims, by a server that merges what it is told.

use super::api::{self, Answers, merge, refused};
use super::*;
use crate::binding::Unbound;
use crate::framework::Plugin;
use crate::laps::Stage;

/// One claim, and what was written: method, path, status of the answer.
#[derive(Debug, Default)]
struct Server {
    claim: Value,
    /// As many writes are refused as conflicts, each after another writer labelled the claim.
    conflicts: u32,
    log: Vec<String>,
}

impl Server {
    fn bump(&mut self) {
        let version = self.claim["metadata"]["resourceVersion"].as_str().unwrap();
        let version: u64 = version.parse().unwrap();
        self.claim["metadata"]["resourceVersion"] = (version + 1).to_string().into();
    }
}

impl Answers for Server {
    fn answer(&mut self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let path = path.rsplit('/').next().unwrap();
        if method == "PATCH" {
            if self.conflicts > 0 {
                self.conflicts -= 1;
                self.claim["metadata"]["labels"] = json!({"by": "another"});
                self.bump();
            }
            let [asked, known] = [body, &self.claim].map(|it| &it["metadata"]["resourceVersion"]);
            if asked != known {
                self.log.push(format!("{path} 409"));
                return refused(409, "Conflict", "changed");
            }
            self.log.push(format!("{path} 200"));
            merge(&mut self.claim, body);
            self.bump();
        }
        (200, self.claim.clone())
    }
}

type Scene = api::Scene<Server>;

fn scene(status: Value, conflicts: u32) -> Scene {
    let devices = devices(&["a"]);
    let mut shown = claim("c", status);
    shown["metadata"]["resourceVersion"] = "7".into();
    devices.lock().set_claim(&read(shown.clone()));
    let server = Server {
        claim: shown,
        conflicts,
        log: Vec::new(),
    };
    Scene::new(server, devices, named("p", &["c"]))
}

impl Scene {
    fn log(&self) -> String {
        self.server.lock().log.join(", ")
    }

    fn known(&self) -> Arc<ResourceClaim> {
        let key = coracle_client::ObjectKey::new("default", "c");
        Arc::clone(self.devices.lock().claim(&key).unwrap())
    }
}

#[tokio::test]
async fn allocation_and_reservation_are_written_behind_a_finalizer() {
    let scene = scene(json!({}), 0);
    scene.plugin.pre_bind(&scene.pod, "a").await.unwrap();
    assert_eq!(scene.log(), "c 200, status 200");
    let written = scene.server.lock().claim.clone();
    let finalizers = &written["metadata"]["finalizers"];
    assert_eq!(
        *finalizers,
        json!(["resource.kubernetes.io/delete-protection"])
    );
    let status = &written["status"];
    let consumer = json!([{"resource": "pods", "name": "p", "uid": "u-p"}]);
    assert_eq!(status["reservedFor"], consumer);
    let results = &status["allocation"]["devices"]["results"];
    assert_eq!(
        *results,
        json!([{"request": "r", "driver": "d", "pool": "a", "device": "x"}])
    );
    assert!(status["allocation"]["allocationTimestamp"].is_string());
    assert!(!scene.devices.lock().is_under_way("u-c"));
    assert!(claims::is_reserved_for(&scene.known(), &scene.pod));
    assert!(
        scene.plugin.settle(&scene.pod, "a").is_none(),
        "nothing to wait for"
    );
}

#[tokio::test]
async fn what_others_write_meanwhile_is_kept() {
    let scene = scene(json!({}), 2);
    scene.plugin.pre_bind(&scene.pod, "a").await.unwrap();
    assert_eq!(scene.log(), "c 409, c 409, c 200, status 200");
    let written = scene.server.lock().claim.clone();
    assert_eq!(written["metadata"]["labels"]["by"], "another");
    assert!(written["status"]["allocation"].is_object());
}

#[tokio::test]
async fn who_was_faster_is_not_overwritten() {
    let scene = scene(json!({}), 1);
    scene.server.lock().claim["status"] = json!({"allocation": allocated_on("b")});
    let error = scene.plugin.pre_bind(&scene.pod, "a").await.unwrap_err();
    assert_eq!(
        Unbound::at(Stage::PreBind, error).told(),
        "running PreBind plugin \"DynamicResources\": claim default/c got allocated elsewhere in the meantime"
    );
    scene.plugin.unreserve(&scene.pod, "a");
    assert!(!scene.devices.lock().is_under_way("u-c"));
}

#[tokio::test]
async fn another_pod_of_an_allocated_claim_is_added() {
    let other = json!({"resource": "pods", "name": "q", "uid": "u-q"});
    let status = json!({"allocation": allocated_on("a"), "reservedFor": [other]});
    let scene = scene(status, 0);
    scene.plugin.pre_bind(&scene.pod, "a").await.unwrap();
    assert_eq!(scene.log(), "status 200", "it has been allocated before");
    let reserved = scene.server.lock().claim["status"]["reservedFor"].clone();
    assert_eq!(reserved.as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_pod_that_is_not_bound_leaves_its_claims() {
    let scene = scene(json!({}), 0);
    scene.plugin.pre_bind(&scene.pod, "a").await.unwrap();
    scene.plugin.unreserve(&scene.pod, "a");
    let left = async {
        while claims::is_reserved_for(&scene.known(), &scene.pod) {
            tokio::task::yield_now().await;
        }
    };
    let max = std::time::Duration::from_secs(30);
    tokio::time::timeout(max, left).await.unwrap();
    let status = scene.server.lock().claim["status"].clone();
    assert_eq!(status["reservedFor"], json!([]));
    assert!(status["allocation"].is_object(), "the devices stay its own");
}

#[tokio::test(start_paused = true)]
async fn drivers_that_make_devices_ready_are_waited_for() {
    let mut allocation = allocated_on("a");
    allocation["devices"]["results"][0]["bindingConditions"] = json!(["attached"]);
    allocation["devices"]["results"][0]["bindingFailureConditions"] = json!(["broken"]);
    for (told, outcome) in [
        ("attached", Ok(())),
        (
            "broken",
            Err(
                "running PreBind plugin \"DynamicResources\": device binding failed: claim=c, reason=Told, \
                 message=\"by the driver\""
                    .to_owned(),
            ),
        ),
    ] {
        let scene = scene(json!({"allocation": allocation.clone()}), 0);
        scene.plugin.pre_bind(&scene.pod, "a").await.unwrap();
        let settled = scene.plugin.settle(&scene.pod, "a").expect("there is one");
        let tell = async {
            tokio::time::sleep(std::time::Duration::from_secs(60)).await;
            let mut shown = serde_json::to_value(&*scene.known()).unwrap();
            shown["metadata"]["resourceVersion"] = "99".into();
            let condition = json!({"type": told, "status": "True", "reason": "Told",
                "message": "by the driver", "lastTransitionTime": "2030-01-01T00:00:00Z"});
            shown["status"]["devices"] = json!([{"driver": "d", "pool": "a", "device": "x",
                "conditions": [condition]}]);
            scene.devices.lock().set_claim(&read(shown));
        };
        let (settled, ()) = tokio::join!(settled, tell);
        assert_eq!(settled.map_err(|error| Unbound::at(Stage::PreBind, error).told()), outcome);
    }
}
