//! What is on the disk of a Secret, and under which key.

use crate::handler::site::{CONFIG_MAPS, Site, config_map, site};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use std::path::Path;

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const ROTATE: &str = "/coracle/v1/secrets/rotate";
const PLAIN: &str = "hunter2-correct-horse-battery-staple";
/// `PLAIN` as a Secret has it.
const ENCODED: &str = "aHVudGVyMi1jb3JyZWN0LWhvcnNlLWJhdHRlcnktc3RhcGxl";
const OPEN: &str = "a-config-map-is-in-the-open";

fn holds(path: &Path, text: &[u8]) -> bool {
    if path.is_dir() {
        let entries = std::fs::read_dir(path).unwrap();
        return entries
            .into_iter()
            .any(|entry| holds(&entry.unwrap().path(), text));
    }
    let content = std::fs::read(path).unwrap();
    content.windows(text.len()).any(|window| window == text)
}

/// In what the store keeps, its snapshots among it.
fn is_on_disk(site: &Site, text: impl AsRef<[u8]>) -> bool {
    let text = text.as_ref();
    holds(&site.directory.path().join("store"), text)
}

fn keys(site: &Site) -> Vec<String> {
    let text = std::fs::read_to_string(site.directory.path().join("pki/secrets.key")).unwrap();
    text.lines().skip(1).map(str::to_owned).collect()
}

#[tokio::test]
async fn a_secret_is_sealed_through_its_life_and_under_a_new_key_after_a_rotation() {
    let site = site().await;
    let secret = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name },
            "stringData": { "word": PLAIN },
        })
    };
    for name in ["kept", "gone"] {
        site.post(SECRETS, &secret(name)).await.ok();
        let labelled = json!({ "metadata": { "labels": { "a": "b" } } });
        let one = format!("{SECRETS}/{name}");
        site.patch(&one, "merge-patch", &labelled).await.ok();
    }
    site.delete(&format!("{SECRETS}/gone"), &json!({}))
        .await
        .ok();
    site.post(CONFIG_MAPS, &config_map("open", OPEN)).await.ok();
    site.store.write_snapshot().await.unwrap();
    assert!(is_on_disk(&site, OPEN), "the search finds what is there");
    assert!(!is_on_disk(&site, PLAIN) && !is_on_disk(&site, ENCODED));

    let old = keys(&site);
    let (old_id, old_key) = old[0].split_once(' ').unwrap();
    assert!(is_on_disk(&site, old_id), "records name their key");
    let bytes = STANDARD.decode(old_key).unwrap();
    assert!(
        !is_on_disk(&site, old_key) && !is_on_disk(&site, bytes),
        "the key is not kept with what it opens"
    );
    let done = site.post(ROTATE, &json!({})).await.ok();
    assert_eq!(done["snapshots"], 1);
    assert!(
        done["keyFile"]
            .as_str()
            .unwrap()
            .ends_with("pki/secrets.key")
    );
    let new = keys(&site);
    assert!(new.len() == 1 && new != old);
    assert!(
        !is_on_disk(&site, old_id),
        "nothing is left under the old key"
    );
    let kept = site.get(&format!("{SECRETS}/kept")).await.ok();
    assert_eq!(kept["data"]["word"], ENCODED);
    let listed = site.get(SECRETS).await.ok();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    assert!(!is_on_disk(&site, PLAIN) && !is_on_disk(&site, ENCODED));
}
