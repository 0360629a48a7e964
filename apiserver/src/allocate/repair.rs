//! Brings IPAddress objects in line with the Services: a lost one is made anew, one that no Service
//! has is deleted. At the start, when one is deleted, and now and then.

use super::{Allocator, GROUP, PLURAL, objects};
use crate::registry::Registry;
use crate::view::View;
use coracle_api::object::Object;
use coracle_api::timestamp::format_time;
use coracle_store::{EventKind, Store, Watch};
use jiff::{SignedDuration, Timestamp};
use std::collections::HashSet;
use std::net::IpAddr;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Upstream's interval.
const EVERY: Duration = Duration::from_secs(180);
/// The Service of an address this young may be about to be written by another server.
const GRACE: SignedDuration = SignedDuration::from_secs(60);

/// Runs until `stop`, or until the store closes.
pub async fn run(
    allocator: &Allocator,
    registry: &Registry,
    clock: impl Fn() -> Timestamp + Send,
    stop: CancellationToken,
) {
    let mut again = tokio::time::interval(EVERY);
    loop {
        let Some(mut watch) = watch(&registry.store) else {
            return;
        };
        pass(allocator, registry, clock()).await;
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = again.tick() => break,
                event = watch.next() => match event {
                    Ok(event) if event.kind != EventKind::Deleted => {}
                    _ => break,
                },
            }
        }
    }
}

fn watch(store: &Store) -> Option<Watch> {
    let partition = crate::view::partition(objects::GROUP, objects::ADDRESSES);
    let newest = store.snapshot(&partition).revision();
    store.watch(&partition, newest).ok()
}

/// One look at all Services and all addresses. Nobody chooses an address meanwhile.
pub async fn pass(allocator: &Allocator, registry: &Registry, now: Timestamp) {
    let mut hold = allocator.hold().await;
    hold.taken.follow(&registry.store);
    let known: HashSet<String> = objects::addresses(&registry.store)
        .iter()
        .map(|address| address.name().to_owned())
        .collect();
    let lost: Vec<(String, IpAddr)> = hold
        .taken
        .0
        .iter()
        .flat_map(|(key, share)| share.addresses.iter().map(move |one| (key.clone(), *one)))
        .filter(|(_, address)| !known.contains(&address.to_string()))
        .collect();
    for (key, address) in lost {
        let (namespace, name) = key.split_once('/').unwrap_or(("", &key));
        let mut service = Object::new("v1", "Service");
        service.set(&["metadata", "namespace"], namespace.into());
        service.set(&["metadata", "name"], name.into());
        let made = objects::create(registry, &service, address, &format_time(now)).await;
        match made {
            Ok(()) => tracing::info!(service = key, %address, "a lost address was written down"),
            Err(error) => tracing::warn!(service = key, %address, %error, "an address is lost"),
        }
    }
    for orphan in orphans(&registry.store, now) {
        let Ok(address) = orphan.name().parse::<IpAddr>() else {
            continue;
        };
        let (namespace, name) = objects::parent(&orphan).unwrap_or_default();
        let mut service = Object::new("v1", "Service");
        service.set(&["metadata", "namespace"], namespace.into());
        service.set(&["metadata", "name"], name.into());
        objects::delete(registry, &service, &[address]).await;
        tracing::info!(%address, "an address that no Service has was freed");
    }
}

/// Addresses made for Services that do not have them.
fn orphans(store: &Store, now: Timestamp) -> Vec<Object> {
    let is_orphan = |address: &Object| {
        let created = address.str(&["metadata", "creationTimestamp"]);
        let is_old = created
            .parse::<Timestamp>()
            .is_ok_and(|created| now.duration_since(created) > GRACE);
        if !is_old || !objects::is_ours(address) {
            return false;
        }
        let Some((namespace, name)) = objects::parent(address) else {
            return false;
        };
        let service = store.get(GROUP, PLURAL, namespace, name);
        !service.is_some_and(|service| {
            let own = address.name();
            service
                .list(&["spec", "clusterIPs"])
                .iter()
                .any(|one| one == own)
        })
    };
    objects::addresses(store)
        .into_iter()
        .filter(is_orphan)
        .collect()
}
