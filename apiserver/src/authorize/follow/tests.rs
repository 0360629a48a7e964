//! Decisions follow the roles that are written.

use super::*;
use crate::authenticate::User;
use crate::request_info::RequestInfo;
use crate::view::View;
use coracle_api::object::Object;
use coracle_store::{Change, Config, Durability, Expect, Stamped, Write};
use serde_json::{Value, json};
use std::time::Duration;

async fn commit(store: &Store, partition: &str, value: Value, delete: bool) {
    let object = Object::from_value(value).unwrap();
    let stamped = Stamped {
        value: serde_json::to_vec(object.root()).unwrap(),
        revision_at: None,
    };
    let write = Write {
        partition: partition.into(),
        key: object.key().to_string().into(),
        change: if delete {
            Change::Delete(stamped)
        } else {
            Change::Put(stamped)
        },
        expect: Expect::Any,
        durability: Durability::Lazy,
    };
    store.commit(write).await.unwrap();
}

fn role() -> Value {
    json!({
        "metadata": { "name": "reader" },
        "rules": [{ "verbs": ["list"], "apiGroups": [""], "resources": ["secrets"] }],
    })
}

fn binding(user: &str) -> Value {
    json!({
        "metadata": { "name": user, "namespace": "web" },
        "roleRef": { "kind": "ClusterRole", "name": "reader" },
        "subjects": [{ "kind": "User", "name": user }],
    })
}

fn may(authorizer: &Authorizer, user: &str) -> bool {
    let info = RequestInfo {
        verb: "list".into(),
        resource: "secrets".into(),
        namespace: "web".into(),
        is_resource_request: true,
        ..RequestInfo::default()
    };
    authorizer.authorize(&User::named(user), &info).is_allowed()
}

async fn until(what: &str, mut predicate: impl FnMut() -> bool) {
    for _ in 0..1000 {
        if predicate() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("never: {what}");
}

const ROLES: &str = "rbac.authorization.k8s.io/clusterroles";
const BINDINGS: &str = "rbac.authorization.k8s.io/rolebindings";

#[tokio::test]
async fn decisions_follow_what_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(Config::new(directory.path())).unwrap();
    commit(&store, ROLES, role(), false).await;
    commit(&store, BINDINGS, binding("early"), false).await;
    let authorizer = Arc::new(Authorizer::new(Arc::new(store.clone())));
    let loaded = load(&store, &authorizer);
    assert!(
        may(&authorizer, "early"),
        "loaded before anything is served"
    );
    let shutdown = CancellationToken::new();
    let task = tokio::spawn(follow(
        store.clone(),
        Arc::clone(&authorizer),
        loaded,
        shutdown.clone(),
    ));
    commit(&store, BINDINGS, binding("late"), false).await;
    until("granted", || may(&authorizer, "late")).await;
    commit(&store, BINDINGS, binding("early"), true).await;
    until("taken away", || !may(&authorizer, "early")).await;
    commit(&store, ROLES, role(), true).await;
    until("without the role", || !may(&authorizer, "late")).await;
    shutdown.cancel();
    task.await.unwrap();
    store.close().await;
}

#[tokio::test]
async fn a_reload_forgets_what_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(Config::new(directory.path())).unwrap();
    commit(&store, ROLES, role(), false).await;
    commit(&store, BINDINGS, binding("jane"), false).await;
    let authorizer = Authorizer::new(Arc::new(store.clone()));
    let mut loaded = load(&store, &authorizer);
    commit(&store, BINDINGS, binding("jane"), true).await;
    commit(&store, BINDINGS, binding("joe"), false).await;
    for followed in &mut loaded {
        followed.reload(&store, &authorizer);
    }
    assert!(!may(&authorizer, "jane"));
    assert!(may(&authorizer, "joe"));
    store.close().await;
}

#[tokio::test]
async fn the_store_is_a_view() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(Config::new(directory.path())).unwrap();
    for (namespace, name) in [("a", "x"), ("a", "y"), ("ab", "x")] {
        let map = json!({ "metadata": { "namespace": namespace, "name": name } });
        commit(&store, "/configmaps", map, false).await;
    }
    let view: &dyn View = &store;
    assert_eq!(view.get("", "configmaps", "a", "y").unwrap().name(), "y");
    assert!(view.get("", "configmaps", "a", "z").is_none());
    assert_eq!(view.list("", "configmaps", Some("a")).len(), 2);
    assert_eq!(view.list("", "configmaps", None).len(), 3);
    store.close().await;
}

const PODS: &str = "/pods";

fn pod(node: Option<&str>) -> Value {
    let mut pod = json!({
        "metadata": { "name": "p", "namespace": "web", "uid": "1" },
        "spec": { "volumes": [{ "secret": { "secretName": "s" } }] },
    });
    if let Some(node) = node {
        pod["spec"]["nodeName"] = node.into();
    }
    pod
}

/// A node may read what its pods refer to: from when they are bound, until they are gone.
#[tokio::test]
async fn pods_lead_somewhere_while_they_have_a_node() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(Config::new(directory.path())).unwrap();
    commit(&store, PODS, pod(None), false).await;
    let authorizer = Authorizer::new(Arc::new(store.clone()));
    let mut followed = load(&store, &authorizer);
    let pods = followed
        .iter_mut()
        .find(|one| one.plural == "pods")
        .unwrap();
    let reads = || {
        let node = User {
            groups: vec!["system:nodes".into()],
            ..User::named("system:node:n")
        };
        let info = RequestInfo {
            verb: "get".into(),
            resource: "secrets".into(),
            namespace: "web".into(),
            name: "s".into(),
            is_resource_request: true,
            ..RequestInfo::default()
        };
        authorizer.authorize(&node, &info).is_allowed()
    };
    assert!(!reads() && pods.keys.is_empty(), "no node's");
    for (object, is_gone, may_read) in [
        (pod(Some("n")), false, true),
        (pod(Some("n")), true, false),
        (pod(None), false, false),
        (pod(Some("n")), false, true),
        (pod(None), false, false),
    ] {
        commit(&store, PODS, object, is_gone).await;
        pods.reload(&store, &authorizer);
        assert_eq!(reads(), may_read);
    }
}
