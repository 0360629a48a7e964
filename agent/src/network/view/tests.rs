//! What readers see and hear of changes.

use super::*;
use crate::network::view::tables::Tables;
use serde_json::json;

fn service(address: &str) -> Service {
    let object = json!({
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"clusterIP": address, "ports": [{"port": 80}]},
    });
    decode::service(&serde_json::from_value(object).unwrap())
}

fn slice(service: &str, addresses: &[&str]) -> (Key, Slice) {
    let endpoints: Vec<_> = addresses
        .iter()
        .map(|address| json!({"addresses": [address]}))
        .collect();
    let object = json!({
        "metadata": {
            "name": "one", "namespace": "shop", "labels": {"kubernetes.io/service-name": service},
        },
        "addressType": "IPv4", "ports": [], "endpoints": endpoints,
    });
    decode::slice(&serde_json::from_value(object).unwrap()).unwrap()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn texts(keys: impl IntoIterator<Item = Key>) -> Vec<String> {
    keys.into_iter().map(|key| key.to_string()).collect()
}

#[test]
fn what_shows_nothing_new_changes_nothing() {
    let mut tables = Tables::default();
    let key = key("shop", "web");
    assert_eq!(
        tables.set_service(&key, Some(service("10.43.0.5"))).len(),
        1
    );
    assert!(
        tables
            .set_service(&key, Some(service("10.43.0.5")))
            .is_empty()
    );
    assert_eq!(
        tables
            .set_slice("shop/one", Some(slice("web", &["10.42.0.1"])))
            .len(),
        1
    );
    assert!(
        tables
            .set_slice("shop/one", Some(slice("web", &["10.42.0.1"])))
            .is_empty()
    );
    assert!(tables.set_slice("shop/two", None).is_empty());
    assert!(
        tables
            .set_service(&super::key("shop", "no"), None)
            .is_empty()
    );
    assert!(tables.get("shop/no").is_none());
}

#[test]
fn addresses_lead_back_as_long_as_they_are_there() {
    let mut tables = Tables::default();
    let key = key("shop", "web");
    tables.set_service(&key, Some(service("10.43.0.5")));
    assert_eq!(tables.service_at(ip("10.43.0.5")), Some(key.clone()));
    tables.set_service(&key, Some(service("10.43.0.6")));
    assert_eq!(tables.service_at(ip("10.43.0.5")), None);
    let with = |tables: &Tables, address| texts(tables.services_of_endpoint(ip(address)));
    tables.set_slice("shop/one", Some(slice("web", &["10.42.0.1", "10.42.0.2"])));
    let mut second = slice("web", &["10.42.0.2", "10.42.0.3"]);
    second.1.name = "two".into();
    tables.set_slice("shop/two", Some(second));
    assert_eq!(with(&tables, "10.42.0.2"), ["shop/web"]);
    tables.set_slice("shop/one", Some(slice("web", &["10.42.0.4"])));
    // The second slice has it still.
    assert_eq!(with(&tables, "10.42.0.2"), ["shop/web"]);
    assert!(with(&tables, "10.42.0.1").is_empty());
    tables.set_slice("shop/two", None);
    assert!(with(&tables, "10.42.0.2").is_empty());
    assert_eq!(with(&tables, "10.42.0.4"), ["shop/web"]);
}

#[test]
fn a_slice_may_go_over_to_another_service() {
    let mut tables = Tables::default();
    tables.set_slice("shop/one", Some(slice("web", &["10.42.0.1"])));
    let changed = tables.set_slice("shop/one", Some(slice("other", &["10.42.0.1"])));
    assert_eq!(texts(changed), ["shop/web", "shop/other"]);
    assert!(tables.get("shop/web").is_none());
    assert_eq!(
        texts(tables.services_of_endpoint(ip("10.42.0.1"))),
        ["shop/other"]
    );
}

#[test]
fn a_whole_list_takes_away_what_it_does_not_show() {
    let mut tables = Tables::default();
    for name in ["a", "b"] {
        tables.set_service(&key("shop", name), Some(service("10.43.0.5")));
    }
    tables.set_slice("shop/one", Some(slice("b", &["10.42.0.1"])));
    let gone = tables.retain_services(&HashSet::from([key("shop", "a")]));
    assert_eq!(texts(gone), ["shop/b"]);
    // Its slice is known still.
    assert!(tables.get("shop/b").unwrap().service.is_none());
    assert_eq!(texts(tables.retain_slices(&HashSet::new())), ["shop/b"]);
    assert!(tables.get("shop/b").is_none());
}

#[test]
fn namespaces_that_begin_alike_are_two() {
    let mut tables = Tables::default();
    for namespace in ["shop", "shop-2", "sho"] {
        tables.set_service(&key(namespace, "web"), Some(service("10.43.0.5")));
    }
    assert_eq!(tables.in_namespace("shop").count(), 1);
}

#[tokio::test]
async fn a_reader_hears_of_all_that_is_there_and_then_of_changes() {
    let view = View::new();
    view.change(|tables| tables.set_service(&key("shop", "web"), Some(service("10.43.0.5"))));
    let mut reader = view.subscribe();
    assert_eq!(texts(reader.changed().await), ["shop/web"]);
    let waiting = tokio::spawn(async move {
        let keys = reader.changed().await;
        (reader, keys)
    });
    tokio::task::yield_now().await;
    let (one, two) = (slice("a", &["10.42.0.1"]), slice("b", &["10.42.0.2"]));
    view.change(|tables| tables.set_slice("shop/one", Some(one)));
    let (mut reader, keys) = waiting.await.unwrap();
    assert_eq!(texts(keys), ["shop/a"]);
    // Not read in between: both at one time.
    view.change(|tables| tables.set_slice("shop/two", Some(two)));
    view.forget("shop/web");
    assert_eq!(texts(reader.changed().await), ["shop/b", "shop/web"]);
    assert!(reader.take().is_empty());
}

#[tokio::test]
async fn it_is_told_where_it_is_from() {
    let view = View::new();
    assert!(!view.has_services());
    view.reach(Origin::Server);
    view.reach(Origin::Disk);
    assert_eq!(view.known().await, Origin::Server);
}
