//! What comes of claims, classes and slices, and who wakes.

use super::*;
use crate::framework::{Profile, Profiles, SharedPlugin};
use crate::plugins::dynamic_resources::{Args, DynamicResources};
use crate::pod_info::PodInfo;
use crate::queue::Queue;
use crate::views::Views;
use coracle_client::Client;
use coracle_client::clock::Clock;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn read<K: DeserializeOwned>(value: Value) -> Arc<K> {
    Arc::new(serde_json::from_value(value).expect("an object"))
}

fn claim(name: &str, status: Value) -> Arc<ResourceClaim> {
    let metadata = json!({"name": name, "namespace": "default", "uid": name});
    read(json!({"metadata": metadata, "spec": {}, "status": status}))
}

/// One pod, whose claim is there, waits for devices.
async fn world() -> World {
    let service = tower::service_fn(|_: http::Request<kube::client::Body>| {
        let error = std::io::Error::other("nobody answers");
        std::future::ready(Err::<http::Response<kube::client::Body>, _>(error))
    });
    let views = Views::default();
    let plugin: SharedPlugin = Arc::new(DynamicResources::new(
        Client::new(service, "default"),
        &views,
        Clock::system(),
        Args::default(),
    ));
    let profiles = Profiles::new([Profile::new("default-scheduler", vec![(plugin, 1)])]);
    let queue = Queue::of(profiles.clone(), crate::queue::Backoff::default());
    let world = World {
        views,
        queue: Arc::new(queue),
        profiles,
    };
    world.resource_claim(&Change::Added(claim("own", json!({}))));
    let pod = read(
        json!({"metadata": {"name": "p", "namespace": "default", "uid": "p"},
        "spec": {"containers": [],
            "resourceClaims": [{"name": "c", "resourceClaimName": "own"}]}}),
    );
    world.queue.set(Arc::new(PodInfo::new(pod)), Instant::now());
    let attempt = world.queue.next().await;
    let plugins = vec!["DynamicResources"];
    world.queue.unschedulable(&attempt, plugins, Instant::now());
    world
}

fn waits(world: &World) -> bool {
    world.queue.depth().unschedulable == 1
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_claim_that_has_devices_wakes_who_waits_for_some() {
    let world = world().await;
    let without = claim("other", json!({}));
    world.resource_claim(&Change::Added(Arc::clone(&without)));
    world.resource_claim(&Change::Deleted(without));
    assert!(waits(&world), "it had nothing");
    let with = claim("other", json!({"allocation": {}}));
    world.resource_claim(&Change::Added(Arc::clone(&with)));
    assert!(waits(&world), "another one got something");
    assert_eq!(world.views.devices.lock().allocations().count(), 1);
    world.resource_claim(&Change::Deleted(with));
    assert_eq!(world.views.devices.lock().allocations().count(), 0);
    assert!(!waits(&world));
}

#[tokio::test(start_paused = true)]
async fn a_slice_or_a_class_that_comes_wakes_and_one_that_goes_does_not() {
    let slice: Arc<ResourceSlice> = read(json!({"metadata": {"name": "s"}, "spec": {"driver": "d",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}}));
    let class: Arc<DeviceClass> = read(json!({"metadata": {"name": "k"}, "spec": {}}));
    let world = world().await;
    world.resource_slice(&Change::Deleted(Arc::clone(&slice)));
    world.device_class(&Change::Deleted(Arc::clone(&class)));
    assert!(waits(&world));
    world.resource_slice(&Change::Added(Arc::clone(&slice)));
    assert!(!waits(&world));
    assert_eq!(world.views.devices.lock().slices().count(), 1);
    world.resource_slice(&Change::Deleted(slice));
    assert_eq!(world.views.devices.lock().slices().count(), 0);

    let world = self::world().await;
    world.device_class(&Change::Added(Arc::clone(&class)));
    assert!(!waits(&world));
    assert!(world.views.devices.lock().class("k").is_some());
    world.device_class(&Change::Deleted(class));
    assert!(world.views.devices.lock().class("k").is_none());
}
