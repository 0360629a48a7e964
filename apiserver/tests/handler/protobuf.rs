//! Bodies and answers in protobuf, as client-go has them by default.

use super::site::{Answer, CONFIG_MAPS, PATIENCE, Site, config_map, site};
use coracle_api::decode::NESTING_MAX;
use coracle_api::protobuf::{decode, encode};
use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

const ACCEPT: &str = "application/vnd.kubernetes.protobuf,application/json";
const TYPE: &str = "application/vnd.kubernetes.protobuf";
const CONFIG_MAP: &str = "io.k8s.api.core.v1.ConfigMap";

async fn ask(site: &Site, method: &str, path: &str, body: Vec<u8>) -> Answer {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", TYPE)
        .header("accept", ACCEPT)
        .body(Full::new(body.into()))
        .unwrap();
    site.send(request).await
}

fn document(answer: &Answer) -> Value {
    assert!(answer.status.is_success(), "{}", answer.failure());
    assert_eq!(answer.headers["content-type"], TYPE);
    decode(&answer.body).unwrap().1
}

#[tokio::test]
async fn an_object_comes_in_and_goes_out() {
    let site = site().await;
    let body = encode(&config_map("a", "1"), "v1", "ConfigMap", CONFIG_MAP).unwrap();
    let made = document(&ask(&site, "POST", CONFIG_MAPS, body).await);
    assert_eq!(made["data"]["key"], "1");
    let path = format!("{CONFIG_MAPS}/a");
    let read = document(&ask(&site, "GET", &path, Vec::new()).await);
    assert_eq!(read, site.get(&path).await.ok());
    assert_eq!(read, made);

    let mut changed = read.clone();
    changed["data"]["key"] = "2".into();
    let body = encode(&changed, "v1", "ConfigMap", CONFIG_MAP).unwrap();
    let changed = document(&ask(&site, "PUT", &path, body).await);
    assert_eq!(changed["data"]["key"], "2");
}

#[tokio::test]
async fn a_list_is_the_same_in_both_forms() {
    let site = site().await;
    for name in ["a", "b"] {
        site.post(CONFIG_MAPS, &config_map(name, "1")).await.ok();
    }
    let path = format!("{CONFIG_MAPS}?limit=1");
    let list = document(&ask(&site, "GET", &path, Vec::new()).await);
    let mut wanted = site.get(&path).await.ok();
    // Items of a list do not say again what they are.
    for item in wanted["items"].as_array_mut().unwrap() {
        item.as_object_mut().unwrap().remove("apiVersion");
        item.as_object_mut().unwrap().remove("kind");
    }
    assert_eq!(list, wanted);
}

#[tokio::test]
async fn deletions_take_their_options() {
    let site = site().await;
    site.post(CONFIG_MAPS, &config_map("a", "1")).await.ok();
    let path = format!("{CONFIG_MAPS}/a");
    let options = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
    let body = |uid: &str| {
        let value = json!({ "preconditions": { "uid": uid } });
        encode(&value, "v1", "DeleteOptions", options).unwrap()
    };
    let refused = ask(&site, "DELETE", &path, body("other")).await;
    assert_eq!(refused.status, 409, "{}", refused.failure());
    let uid = site.get(&path).await.ok()["metadata"]["uid"].clone();
    let done = ask(&site, "DELETE", &path, body(uid.as_str().unwrap())).await;
    assert!(done.status.is_success(), "{}", done.failure());
}

#[tokio::test]
async fn what_cannot_be_read_is_a_bad_request() {
    let site = site().await;
    let answer = ask(&site, "POST", CONFIG_MAPS, b"{}".to_vec()).await;
    assert_eq!(
        answer.failure(),
        "400 BadRequest: the object provided is unrecognized (must be of type ConfigMap): provided \
         data does not appear to be a protobuf message, expected prefix [107 56 115 0] ({})"
    );
    let pod = encode(&json!({}), "v1", "Pod", "io.k8s.api.core.v1.Pod").unwrap();
    let answer = ask(&site, "POST", CONFIG_MAPS, pod).await;
    assert_eq!(answer.status, 400, "{}", answer.failure());
    let answer = site
        .ask("POST", CONFIG_MAPS, "text/plain", b"a".to_vec())
        .await;
    assert_eq!(answer.status, 415, "{}", answer.failure());
}

#[tokio::test]
async fn a_watch_is_frames_with_a_length() {
    let site = site().await;
    let made = site.post(CONFIG_MAPS, &config_map("a", "1")).await.ok();
    let query = "watch=1&sendInitialEvents=true&allowWatchBookmarks=true\
                 &resourceVersionMatch=NotOlderThan";
    let path = format!("{CONFIG_MAPS}?{query}");
    let request = Request::get(path).header("accept", ACCEPT);
    let response = site.open(request.body(Full::default()).unwrap()).await;
    let content_type = &response.headers()["content-type"];
    assert_eq!(
        content_type,
        "application/vnd.kubernetes.protobuf;stream=watch"
    );

    let mut body = response.into_body();
    let mut read = Vec::new();
    let mut next = async || loop {
        if let Some(head) = read.first_chunk::<4>() {
            let end = 4 + u32::from_be_bytes(*head) as usize;
            if read.len() >= end {
                let frame: Vec<u8> = read.drain(..end).skip(4).collect();
                return watch_event(&frame);
            }
        }
        let data = tokio::time::timeout(PATIENCE, body.frame()).await.unwrap();
        read.extend_from_slice(&data.unwrap().unwrap().into_data().unwrap());
    };
    let mut seen = Vec::new();
    loop {
        let event = next().await;
        if event["type"] == "BOOKMARK" {
            let end = &event["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"];
            assert_eq!(end, "true");
            break;
        }
        seen.push(event);
    }
    let ours = seen
        .iter()
        .find(|event| event["object"]["metadata"]["name"] == "a");
    assert_eq!(ours.unwrap()["object"], made);
    assert_eq!(ours.unwrap()["type"], "ADDED");
    site.post(CONFIG_MAPS, &config_map("b", "1")).await.ok();
    assert_eq!(next().await["object"]["metadata"]["name"], "b");
}

/// The decoder takes documents: an event of a stream goes without the envelope, so add one.
fn watch_event(event: &[u8]) -> Value {
    let mut document = b"k8s\0\x0a\x10\x0a\x02v1\x12\x0aWatchEvent\x12".to_vec();
    let mut length = event.len();
    while length >= 0x80 {
        document.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    document.push(length as u8);
    document.extend_from_slice(event);
    decode(&document).unwrap().1
}

const REVISIONS: &str = "/apis/apps/v1/namespaces/default/controllerrevisions";

fn revision(name: &str, levels: usize) -> Value {
    let data = (0..levels).fold(json!(1), |inside, _| json!({ "a": inside }));
    json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": { "name": name },
        "data": data, "revision": 1,
    })
}

/// One object that nests deeper than a reader takes would end every list and watch of its kind.
#[tokio::test]
async fn what_nests_too_deep_is_refused_in_every_form() {
    let site = site().await;
    let name = "io.k8s.api.apps.v1.ControllerRevision";
    let form = |value: &Value| encode(value, "apps/v1", "ControllerRevision", name).unwrap();
    let deepest = NESTING_MAX - 1;
    let why = format!(
        "400 BadRequest: ControllerRevision in version \"v1\" cannot be handled as a \
         ControllerRevision: it nests deeper than {NESTING_MAX} levels"
    );
    for levels in [deepest + 1, 126] {
        let deep = revision("deep", levels);
        assert_eq!(
            ask(&site, "POST", REVISIONS, form(&deep)).await.failure(),
            why
        );
        if levels == deepest + 1 {
            assert_eq!(site.post(REVISIONS, &deep).await.failure(), why);
        }
    }
    let yaml = revision("deep", deepest + 1).to_string().into_bytes();
    let refused = site.ask("POST", REVISIONS, "application/yaml", yaml).await;
    assert_eq!(refused.failure(), why);
    document(&ask(&site, "POST", REVISIONS, form(&revision("a", deepest))).await);
    for (kind, refusal) in [
        ("application/apply-patch+yaml", why.as_str()),
        ("application/merge-patch+json", "422 Invalid"),
        ("application/strategic-merge-patch+json", "422 Invalid"),
    ] {
        for (name, levels) in [("a", deepest + 1), ("a", 120), ("new", deepest + 1)] {
            let is_new = name == "new";
            if is_new && !kind.contains("apply") {
                continue;
            }
            let query = if kind.contains("apply") {
                "?fieldManager=m&force=true"
            } else {
                ""
            };
            let path = format!("{REVISIONS}/{name}{query}");
            let deep = revision(name, levels).to_string().into_bytes();
            let refused = site.ask("PATCH", &path, kind, deep).await.failure();
            assert!(refused.starts_with(refusal), "{kind} {refused}");
        }
    }
    let deep =
        json!([{ "op": "add", "path": "/data", "value": revision("a", deepest + 1)["data"] }]);
    let path = format!("{REVISIONS}/a");
    let deep = deep.to_string().into_bytes();
    let refused = site
        .ask("PATCH", &path, "application/json-patch+json", deep)
        .await;
    assert!(
        refused.failure().starts_with("422 Invalid"),
        "{}",
        refused.failure()
    );
    site.post(REVISIONS, &revision("b", deepest)).await.ok();
    let list = site.get(REVISIONS).await.ok();
    assert_eq!(list["items"].as_array().unwrap().len(), 2);
    let path = format!("{REVISIONS}/a");
    let mut changed = site.get(&path).await.ok();
    changed["revision"] = 2.into();
    document(&ask(&site, "PUT", &path, form(&changed)).await);
    let gone = site.ask("DELETE", &path, "", Vec::new()).await;
    assert!(gone.status.is_success(), "{}", gone.failure());
}
