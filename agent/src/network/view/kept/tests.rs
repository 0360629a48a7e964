//! What is on the disk, and what a damaged file does.

use super::*;
use serde_json::json;
use std::collections::HashSet;
use std::time::Duration;

fn view() -> View {
    let services = serde_json::from_value(json!([
        {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"clusterIP": "10.43.0.5", "ports": [{"port": 80}]}},
    ]));
    let slices = serde_json::from_value(json!([{
        "metadata": {
            "name": "web-1", "namespace": "shop", "labels": {"kubernetes.io/service-name": "web"},
        },
        "addressType": "IPv4", "ports": [{"port": 8080}],
        "endpoints": [{"addresses": ["10.42.0.1"], "nodeName": "a"}],
    }]));
    let (services, slices): (Vec<_>, Vec<_>) = (services.unwrap(), slices.unwrap());
    View::of(&services, &slices, &["shop", "default"])
}

#[test]
fn what_was_written_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("services");
    write(&view(), &path).unwrap();
    let read = View::new();
    assert_eq!(read.origin(), Origin::Nothing);
    drop(Keeper::open(read.clone(), path));
    assert_eq!(read.origin(), Origin::Disk);
    let (before, after) = (
        view().get("shop/web").unwrap(),
        read.get("shop/web").unwrap(),
    );
    assert_eq!(
        (before.service, before.slices),
        (after.service, after.slices)
    );
    assert!(read.has_namespace("default") && !read.has_namespace("other"));
    assert_eq!(
        read.services_of_endpoint("10.42.0.1".parse().unwrap())
            .len(),
        1
    );
}

#[test]
fn a_file_that_cannot_be_trusted_is_none() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("services");
    write(&view(), &path).unwrap();
    let good = std::fs::read(&path).unwrap();
    for place in [0, 12, good.len() / 2, good.len() - 6] {
        let mut bad = good.clone();
        bad[place] ^= 0x55;
        std::fs::write(&path, &bad).unwrap();
        let view = View::new();
        drop(Keeper::open(view.clone(), path.clone()));
        assert_eq!(view.origin(), Origin::Nothing, "byte {place}");
        assert!(view.all().is_empty());
    }
    for length in [0, 10, good.len() - 1] {
        std::fs::write(&path, &good[..length]).unwrap();
        let view = View::new();
        drop(Keeper::open(view.clone(), path.clone()));
        assert_eq!(view.origin(), Origin::Nothing, "{length} bytes");
    }
}

#[tokio::test(start_paused = true)]
async fn changes_are_written_together_and_at_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("services");
    let view = View::new();
    let keeper = Keeper::open(view.clone(), path.clone());
    let stop = CancellationToken::new();
    let task = tokio::spawn(keeper.run(stop.clone()));
    tokio::task::yield_now().await;
    let service = self::view().get("shop/web").unwrap().service.unwrap();
    view.change(|tables| tables.set_service(&"shop/web".into(), Some((*service).clone())));
    tokio::time::sleep(PAUSE_MIN / 2).await;
    assert!(!path.exists());
    stop.cancel();
    task.await.unwrap();
    assert!(load(&path).unwrap().is_some());
}

#[tokio::test]
async fn what_came_right_before_the_stop_is_written() {
    let directory = tempfile::tempdir().unwrap();
    for round in 0..50 {
        let path = directory.path().join(round.to_string());
        let view = View::new();
        let keeper = Keeper::open(view.clone(), path.clone());
        view.set_namespace("shop", true);
        let stop = CancellationToken::new();
        stop.cancel();
        keeper.run(stop).await;
        assert!(load(&path).unwrap().is_some(), "round {round}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_written_is_written_later() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("later/services");
    let view = View::new();
    let keeper = Keeper::open(view.clone(), path.clone());
    view.set_namespace("shop", true);
    let stop = CancellationToken::new();
    let task = tokio::spawn(keeper.run(stop.clone()));
    tokio::time::sleep(2 * PAUSE_MIN).await;
    std::fs::create_dir(path.parent().unwrap()).unwrap();
    let begun = tokio::time::Instant::now();
    while !path.exists() {
        assert!(begun.elapsed() < 2 * PAUSE_MAX);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    stop.cancel();
    task.await.unwrap();
}

/// Names of pods are asked for in them, also where there are no Services.
#[tokio::test(start_paused = true)]
async fn a_namespace_alone_is_written_too() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("services");
    let view = View::new();
    let keeper = Keeper::open(view.clone(), path.clone());
    view.set_namespace("shop", true);
    let stop = CancellationToken::new();
    let task = tokio::spawn(keeper.run(stop.clone()));
    let written = |namespaces: &'static [&'static str]| {
        let path = path.clone();
        async move {
            let end = tokio::time::Instant::now() + 2 * PAUSE_MIN;
            while load(&path)
                .unwrap()
                .is_none_or(|it| it.namespaces != namespaces)
            {
                assert!(tokio::time::Instant::now() < end, "{namespaces:?}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    };
    written(&["shop"]).await;
    view.retain_namespaces(&HashSet::new());
    written(&[]).await;
    // What is known already is not written again.
    std::fs::remove_file(&path).unwrap();
    view.set_namespace("shop", false);
    stop.cancel();
    task.await.unwrap();
    assert!(!path.exists());
}
