//! A driver in this process is asked for volumes, and says what a test wants it to.

use super::messages::*;
use super::{Csi, Driver, Publication, Registered, Wanted, published, versions};
use crate::grpc::testing::{Call, Reply, Server, serve};
use crate::grpc::{Code, Endpoint};
use crate::volumes::{Found, OfDriver};
use coracle_client::connect;
use k8s_openapi::api::core::v1::{PersistentVolume, Pod};
use parking_lot::Mutex;
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What was asked, and what is to be answered by the method's name.
#[derive(Default)]
struct Script {
    asked: Mutex<Vec<String>>,
    refusals: Mutex<BTreeMap<&'static str, Code>>,
    stages_nothing: AtomicBool,
}

impl Script {
    fn answer(&self, call: &Call) -> Reply {
        let method = call.path.strip_prefix("/csi.v1.Node/").unwrap();
        if method != "NodeGetCapabilities" {
            self.asked.lock().push(method.to_owned());
        }
        if let Some(code) = self.refusals.lock().get(method) {
            return Reply::status(*code, "no");
        }
        match method {
            "NodeGetCapabilities" if self.stages_nothing.load(Ordering::Relaxed) => {
                Reply::message(&NodeGetCapabilitiesResponse::default())
            }
            "NodeGetCapabilities" => Reply::message(&NodeGetCapabilitiesResponse {
                capabilities: vec![NodeServiceCapability {
                    rpc: Some(Rpc {
                        kind: STAGE_UNSTAGE_VOLUME,
                    }),
                }],
            }),
            // A driver makes the place and takes it away.
            "NodePublishVolume" => {
                let question: NodePublishVolumeRequest = call.read();
                let staged = PathBuf::from(question.staging_target_path);
                assert!(staged.is_dir(), "{staged:?}");
                fs::create_dir_all(question.target_path).unwrap();
                Reply::message(&Nothing {})
            }
            "NodeUnpublishVolume" => {
                let question: NodeUnpublishVolumeRequest = call.read();
                let _ = fs::remove_dir(question.target_path);
                Reply::message(&Nothing {})
            }
            _ => Reply::message(&Nothing {}),
        }
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock())
    }
}

struct Scene {
    root: tempfile::TempDir,
    script: Arc<Script>,
    csi: Csi,
    pod: Pod,
    wanted: Wanted,
    driver: Driver,
    _server: Server,
}

impl Scene {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let script = Arc::new(Script::default());
        let socket = root.path().join("csi.sock");
        let talking = script.clone();
        let server = serve(&socket, move |call| talking.answer(&call));
        let (trust, nobody) = (connect::Trust::Anybody, connect::Identity::anonymous());
        let endpoint = connect::Endpoint::new("https://127.0.0.1:1", trust, nobody).unwrap();
        let client = connect::client(&endpoint);
        let csi = Csi::new(client, "n", root.path(), root.path());
        let registered = Registered {
            channel: Csi::channel(Endpoint::Unix(socket)),
            version: versions::highest(&["1.0.0".to_owned()]).unwrap(),
        };
        csi.drivers.lock().insert("d".to_owned(), registered);
        let volume: PersistentVolume = serde_json::from_value(json!({
            "metadata": {"name": "pv"},
            "spec": {"csi": {"driver": "d", "volumeHandle": "h"}},
        }))
        .unwrap();
        Self {
            root,
            script,
            csi,
            pod: serde_json::from_value(json!({"metadata": {"uid": "u"}})).unwrap(),
            wanted: Wanted::of_volume(&volume, false).unwrap(),
            driver: Driver::new("d", None),
            _server: server,
        }
    }

    fn directory(&self) -> PathBuf {
        self.root.path().join("pods/u")
    }

    fn staged(&self) -> PathBuf {
        self.csi.staged_place(&self.wanted, "u")
    }

    fn found(&self) -> (Found, OfDriver) {
        let driver = self.wanted.of_driver(false);
        let found = Found {
            name: "pv".to_owned(),
            path: self
                .csi
                .published_place(&self.wanted, &self.directory(), "u"),
            is_device: self.wanted.is_block,
            driver: Some(driver.clone()),
            ..Found::default()
        };
        (found, driver)
    }

    async fn stage(&self) -> Result<(), String> {
        let none = BTreeMap::new();
        let staged = self.csi.stage(&self.wanted, "u", None, &none).await;
        staged.map_err(|refusal| format!("{} : {}", refusal.step, refusal.why))
    }

    async fn publish(&self) -> Result<(), String> {
        let directory = self.directory();
        let publication = Publication {
            pod: &self.pod,
            pod_directory: &directory,
            wanted: &self.wanted,
            driver: &self.driver,
            owner: None,
            context: BTreeMap::new(),
            tokens: BTreeMap::new(),
            is_again: false,
        };
        let published = self.csi.publish(&publication).await;
        published.map_err(|refusal| format!("{} : {}", refusal.step, refusal.why))
    }

    async fn unpublish(&self) -> Result<(), String> {
        let (found, driver) = self.found();
        let directory = self.directory();
        self.csi.unpublish("u", &directory, &found, &driver).await
    }

    async fn unstage(&self) -> Result<(), String> {
        let (found, driver) = self.found();
        self.csi.unstage("u", &found, &driver).await
    }

    fn refuse(&self, method: &'static str, code: Code) {
        self.script.refusals.lock().insert(method, code);
    }
}

fn has_nothing(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err()
}

#[tokio::test]
async fn a_volume_is_made_and_undone_in_order_and_leaves_nothing() {
    let scene = Scene::new();
    scene.stage().await.unwrap();
    scene.stage().await.unwrap();
    scene.publish().await.unwrap();
    let kept = fs::read_to_string(scene.staged().parent().unwrap().join("vol_data.json"));
    assert_eq!(
        kept.unwrap(),
        "{\"driverName\":\"d\",\"volumeHandle\":\"h\"}\n"
    );
    assert_eq!(published(&scene.directory()).len(), 1);
    assert_eq!(
        scene.script.asked(),
        ["NodeStageVolume", "NodePublishVolume"],
        "it is staged once"
    );
    for _ in 0..2 {
        scene.unpublish().await.unwrap();
        scene.unstage().await.unwrap();
    }
    assert_eq!(
        scene.script.asked(),
        ["NodeUnpublishVolume", "NodeUnstageVolume"]
    );
    assert!(has_nothing(scene.staged().parent().unwrap()));
    assert!(has_nothing(
        &scene.directory().join("volumes/kubernetes.io~csi/pv")
    ));
}

#[tokio::test]
async fn an_operation_that_failed_is_not_undone() {
    let scene = Scene::new();
    scene.refuse("NodeStageVolume", Code::INTERNAL);
    assert_eq!(
        scene.stage().await.unwrap_err(),
        "MountVolume.MountDevice failed : rpc error: code = Internal desc = no"
    );
    assert!(has_nothing(scene.staged().parent().unwrap()));
    scene.unstage().await.unwrap();
    assert_eq!(scene.script.asked(), ["NodeStageVolume"]);
}

#[tokio::test]
async fn an_operation_that_may_go_on_is_undone() {
    let scene = Scene::new();
    scene.refuse("NodeStageVolume", Code::ABORTED);
    scene.stage().await.unwrap_err();
    scene.unstage().await.unwrap();
    assert_eq!(
        scene.script.asked(),
        ["NodeStageVolume", "NodeUnstageVolume"]
    );
    scene.script.refusals.lock().clear();
    scene.stage().await.unwrap();
    scene.refuse("NodePublishVolume", Code::UNAVAILABLE);
    assert_eq!(
        scene.publish().await.unwrap_err(),
        "MountVolume.SetUp failed : rpc error: code = Unavailable desc = no"
    );
    assert_eq!(published(&scene.directory()).len(), 1);
    scene.script.asked();
    scene.unpublish().await.unwrap();
    assert_eq!(scene.script.asked(), ["NodeUnpublishVolume"]);
    assert!(published(&scene.directory()).is_empty());
}

/// An agent that starts anew knows nothing but what is on disk, and drivers come after it.
#[tokio::test]
async fn a_driver_that_is_away_is_waited_for() {
    let scene = Scene::new();
    scene.stage().await.unwrap();
    scene.publish().await.unwrap();
    let known = scene.csi.drivers.lock().remove("d").unwrap();
    let missing = "driver name d not found in the list of registered CSI drivers";
    assert_eq!(
        scene.unpublish().await.unwrap_err(),
        format!("kubernetes.io/csi: Unmounter.TearDownAt failed to get CSI client: {missing}")
    );
    scene.csi.staged.lock().clear();
    assert_eq!(
        scene.stage().await.unwrap_err(),
        format!(
            "MountVolume.MountDevice failed : kubernetes.io/csi: attacher.MountDevice failed to \
             create newCsiDriverClient: {missing}"
        )
    );
    scene.csi.drivers.lock().insert("d".to_owned(), known);
    scene.unpublish().await.unwrap();
    scene.unstage().await.unwrap();
    assert!(has_nothing(scene.staged().parent().unwrap()));
}

/// What is published again, or told of its size, is only what is there.
#[tokio::test]
async fn a_volume_is_published_until_it_is_undone() {
    let mut scene = Scene::new();
    let is_published = |scene: &Scene| {
        let (found, directory) = (scene.found().0, scene.directory());
        scene.csi.is_published("u", &directory, &found)
    };
    for is_block in [false, true] {
        scene.wanted.is_block = is_block;
        assert!(!is_published(&scene));
        scene.stage().await.unwrap();
        assert!(!is_published(&scene), "it is staged alone");
        scene.publish().await.unwrap();
        assert!(is_published(&scene));
        scene.unpublish().await.unwrap();
        assert!(!is_published(&scene));
        scene.unstage().await.unwrap();
    }
}

#[tokio::test]
async fn a_volume_that_no_driver_stages_is_forgotten_too() {
    let scene = Scene::new();
    scene.script.stages_nothing.store(true, Ordering::Relaxed);
    scene.stage().await.unwrap();
    scene.unstage().await.unwrap();
    assert!(scene.csi.staged.lock().is_empty());
}

/// Two pods of one volume: what is staged for one is not unstaged while the other unpublishes.
#[tokio::test]
async fn a_volume_is_undone_in_its_turn() {
    let scene = Scene::new();
    let turn = scene.csi.turn("d", "h").await;
    let mut unpublished = std::pin::pin!(scene.unpublish());
    let waits = futures::poll!(unpublished.as_mut());
    assert!(waits.is_pending(), "another works at it");
    drop(turn);
    unpublished.await.unwrap();
}

/// As an update of a driver leaves it: the new one is there before the old one's socket goes.
#[tokio::test]
async fn a_driver_that_goes_does_not_take_its_successor_along() {
    let scene = Scene::new();
    let old = scene.csi.drivers.lock()["d"].channel.clone();
    let new = Registered {
        channel: Csi::channel(Endpoint::Unix(scene.root.path().join("new.sock"))),
        version: versions::highest(&["1.1.0".to_owned()]).unwrap(),
    };
    scene.csi.drivers.lock().insert("d".to_owned(), new.clone());
    assert!(!scene.csi.forget("d", &old));
    assert!(scene.csi.drivers.lock().contains_key("d"));
    assert!(scene.csi.forget("d", &new.channel));
    assert!(scene.csi.drivers.lock().is_empty());
}

/// An agent was killed while it wrote: that must not keep the place from being removed.
#[tokio::test]
async fn what_a_writer_left_unfinished_goes_with_the_volume() {
    let mut scene = Scene::new();
    for is_block in [false, true] {
        scene.wanted.is_block = is_block;
        scene.stage().await.unwrap();
        let record = match is_block {
            true => super::places::device(scene.root.path(), "pv", "u").data,
            false => scene.staged().parent().unwrap().to_owned(),
        };
        fs::write(record.join(".vol_data.json.1"), "{").unwrap();
        scene.unstage().await.unwrap();
        assert!(has_nothing(&record));
    }
}
