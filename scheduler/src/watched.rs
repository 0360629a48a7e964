//! The world as informers keep it: cache, queue and what plugins see beside them.

use crate::events::{self, DeviceKinds, Storage, World};
use crate::framework::Profiles;
use crate::plugins::registry::Plan;
use crate::queue::{Backoff, Queue};
use crate::views::Views;
use coracle_client::Client;
use coracle_client::informer::Informers;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The world as the API server shows it, for as long as this is kept.
pub struct Watched {
    pub world: World,
    _informers: Informers,
}

/// `None` when it is stopped before everything was read.
pub async fn watch(
    plans: &[Plan],
    backoff: Backoff,
    views: Views,
    client: &Client,
    stop: &CancellationToken,
) -> Option<Watched> {
    let profiles = Profiles::new(plans.iter().map(|plan| plan.build(client, &views)));
    let world = World {
        views,
        queue: Arc::new(Queue::of(profiles.clone(), backoff)),
        profiles,
    };
    let informers = Informers::new(client.clone(), stop.clone());
    let nodes = events::keep_nodes(&world, &informers, stop);
    let storage = Storage::new(&informers);
    let devices = DeviceKinds::new(&informers);
    let tables = events::keep_tables(&world.views, &informers, stop);
    let budgets = informers.get::<PodDisruptionBudget>();
    if !nodes.await
        || !storage.synced().await
        || !devices.synced().await
        || !tables.synced(stop).await
        || !events::synced(&budgets).await
    {
        return None;
    }
    events::follow_budgets(&world, &budgets);
    storage.follow(&world);
    devices.follow(&world);
    // Last: whether a pod may queue depends on the rest.
    if !events::keep_pods(&world, &informers, stop).await {
        return None;
    }
    Some(Watched {
        world,
        _informers: informers,
    })
}
