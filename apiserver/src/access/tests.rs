//! Rules count once they are loaded.

use super::*;
use crate::authenticate::User;
use crate::bootstrap;
use crate::request_info::RequestInfo;
use crate::view::partition;
use coracle_store::{Change, Config, Durability, Expect, Stamped, Write};

async fn write_bootstrap_roles(store: &Store) {
    for object in bootstrap::objects() {
        let plural = bootstrap::plural(&object);
        let write = Write {
            partition: partition("rbac.authorization.k8s.io", plural).into(),
            key: object.key().to_string().into(),
            change: Change::Put(Stamped {
                value: serde_json::to_vec(object.root()).unwrap(),
                revision_at: None,
            }),
            expect: Expect::Absent,
            durability: Durability::Lazy,
        };
        store.commit(write).await.unwrap();
    }
}

#[tokio::test]
async fn rules_count_once_they_are_loaded() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(Config::new(directory.path().join("store"))).unwrap();
    let now = "2026-06-01T00:00:00Z".parse().unwrap();
    let shutdown = CancellationToken::new();
    let access = Access::open(
        &directory.path().join("pki"),
        ServerNames::default(),
        &Settings::default(),
        store.clone(),
        now,
        admission::Settings::default(),
        shutdown.clone(),
    )
    .unwrap();
    write_bootstrap_roles(&store).await;
    let version = RequestInfo {
        verb: "get".into(),
        path: "/version".into(),
        ..RequestInfo::default()
    };
    let jane = User::named("jane");
    assert!(!access.authorizer.authorize(&jane, &version).is_allowed());
    access.load();
    assert!(access.authorizer.authorize(&jane, &version).is_allowed());
    let running = access.run(move || now, shutdown.clone());
    shutdown.cancel();
    running.await;
    store.close().await;
}
