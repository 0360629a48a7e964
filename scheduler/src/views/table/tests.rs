//! A table follows lists and changes.

use super::*;
use crate::selector::Labels;
use k8s_openapi::api::core::v1::Service;
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};

fn service(namespace: &str, name: &str, selector: Option<&str>) -> Service {
    let selector = selector.map(|app| json!({ "app": app }));
    serde_json::from_value(json!({
        "metadata": { "namespace": namespace, "name": name }, "spec": { "selector": selector },
    }))
    .unwrap()
}

fn seen(table: &Table<Labels>, namespace: &str) -> Vec<String> {
    let mut seen = Vec::new();
    table.each_in(namespace, |labels| seen.push(labels["app"].clone()));
    seen
}

#[test]
fn a_new_list_takes_the_place_of_what_was_known() {
    let table = Table::default();
    let told = Arc::new(AtomicBool::new(false));
    let tell = Arc::clone(&told);
    let mut keeper = Keeper {
        table: table.clone(),
        part: |service: Service| service.spec?.selector,
        listed: BTreeMap::new(),
        ready: Some(Box::new(move || tell.store(true, Ordering::Relaxed))),
    };
    keeper.apply(Event::Init);
    keeper.apply(Event::InitApply(service("a", "one", Some("1"))));
    keeper.apply(Event::InitApply(service("b", "two", Some("2"))));
    keeper.apply(Event::InitApply(service("a", "none", None)));
    assert!(seen(&table, "a").is_empty() && !told.load(Ordering::Relaxed));
    keeper.apply(Event::InitDone);
    assert!(told.load(Ordering::Relaxed));
    assert_eq!([seen(&table, "a"), seen(&table, "b")], [["1"], ["2"]]);
    keeper.apply(Event::Apply(service("a", "three", Some("3"))));
    keeper.apply(Event::Delete(service("b", "two", None)));
    assert_eq!(seen(&table, "a"), ["1", "3"]);
    assert!(seen(&table, "b").is_empty());
    keeper.apply(Event::Apply(service("a", "one", None)));
    assert_eq!(seen(&table, "a"), ["3"], "it selects nobody any more");
    keeper.apply(Event::Init);
    keeper.apply(Event::InitDone);
    assert!(seen(&table, "a").is_empty());
}
