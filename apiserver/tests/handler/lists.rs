//! Pages, selectors, revisions.

use super::site::{CONFIG_MAPS, Site, config_map, site};
use serde_json::Value;

async fn five() -> Site {
    let site = site().await;
    for name in ["a", "b", "c", "d", "e"] {
        let mut one = config_map(name, "1");
        one["metadata"]["labels"] = serde_json::json!({ "odd": (name != "b").to_string() });
        site.post(CONFIG_MAPS, &one).await.ok();
    }
    site
}

fn names(list: &Value) -> String {
    let items = list["items"].as_array().unwrap().iter();
    let names = items.map(|item| item["metadata"]["name"].as_str().unwrap());
    names.collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn pages_show_the_state_of_the_first() {
    let site = five().await;
    let first = site.get(&format!("{CONFIG_MAPS}?limit=2")).await.ok();
    assert_eq!(first["kind"], "ConfigMapList");
    assert_eq!(names(&first), "a b");
    assert_eq!(first["metadata"]["remainingItemCount"], 3);
    site.delete(&format!("{CONFIG_MAPS}/c"), &Value::Null)
        .await
        .ok();
    site.post(CONFIG_MAPS, &config_map("f", "1")).await.ok();
    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = format!("{CONFIG_MAPS}?limit=3&continue={token}");
    let second = site.get(&second).await.ok();
    assert_eq!(names(&second), "c d e");
    assert!(second["metadata"]["continue"].is_null());
    assert_eq!(
        second["metadata"]["resourceVersion"],
        first["metadata"]["resourceVersion"]
    );
    let bad = site.get(&format!("{CONFIG_MAPS}?limit=3&continue=x")).await;
    assert_eq!(bad.status, 400);
}

#[tokio::test]
async fn selectors_choose() {
    let site = five().await;
    let by = |selector: &str| format!("{CONFIG_MAPS}?{selector}");
    let chosen = site.get(&by("labelSelector=odd%3Dfalse")).await.ok();
    assert_eq!(names(&chosen), "b");
    let chosen = site.get(&by("fieldSelector=metadata.name%3Dc")).await.ok();
    assert_eq!(names(&chosen), "c");
    let chosen = site
        .get("/api/v1/configmaps?fieldSelector=metadata.name%3Dd")
        .await
        .ok();
    assert_eq!(names(&chosen), "d");
    assert_eq!(
        site.get(&by("fieldSelector=data.key%3D1")).await.status,
        400
    );
    assert_eq!(site.get(&by("labelSelector=a%3D%3D%3Db")).await.status, 400);
}

#[tokio::test]
async fn a_revision_means_what_the_match_says() {
    let site = five().await;
    let list = site.get(CONFIG_MAPS).await.ok();
    let revision = list["metadata"]["resourceVersion"].as_str().unwrap();
    site.delete(&format!("{CONFIG_MAPS}/a"), &Value::Null)
        .await
        .ok();
    let at =
        |how: &str| format!("{CONFIG_MAPS}?resourceVersion={revision}&resourceVersionMatch={how}");
    assert_eq!(names(&site.get(&at("Exact")).await.ok()), "a b c d e");
    assert_eq!(names(&site.get(&at("NotOlderThan")).await.ok()), "b c d e");
    let future = site
        .get(&format!("{CONFIG_MAPS}?resourceVersion=999999"))
        .await;
    assert_eq!(future.status, 504);
    let text = "resourceVersion=x";
    assert_eq!(site.get(&format!("{CONFIG_MAPS}?{text}")).await.status, 400);
    let without = format!("{CONFIG_MAPS}?resourceVersionMatch=Exact");
    assert_eq!(
        site.get(&without).await.failure(),
        "422 Invalid: ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: \
         resourceVersionMatch is forbidden unless resourceVersion is provided"
    );
}
