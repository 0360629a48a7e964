//! Other servers in discovery, what they are told of users, and whether they can answer.

use super::check::{self, Available};
mod passed; // A server that listens, behind a node.

use super::*;
use crate::query::Query;
use crate::view::tests::Objects;
use coracle_api::object::Object;
use expect_test::expect;
use http::{HeaderMap, Method};
use serde_json::{Value, json};

fn api_service(version: &str, spec: Value) -> Object {
    let mut all = json!({ "group": "shop.example.test", "version": version });
    for (name, value) in spec.as_object().unwrap() {
        all[name] = value.clone();
    }
    let name = format!("{version}.shop.example.test");
    let object = json!({ "metadata": { "name": name }, "spec": all });
    Object::from_value(object).unwrap()
}

fn remote(version: &str, priority: i64) -> Arc<Remote> {
    let service = json!({ "namespace": "shop", "name": "api", "port": 443 });
    let spec = json!({ "service": service, "versionPriority": priority });
    Arc::new(Remote::of(&api_service(version, spec), None).unwrap())
}

#[test]
fn what_has_no_service_is_this_servers_own() {
    assert!(Remote::of(&api_service("v1", json!({})), None).is_none());
    let remote = remote("v1", 1);
    assert_eq!(remote.authority(), "api.shop.svc:443");
    assert!(!remote.is_available);
}

#[test]
fn what_this_server_has_is_not_handed_away() {
    let of = |group: &str, version: &str| {
        let service = json!({ "namespace": "shop", "name": "api", "port": 443 });
        let spec = json!({ "group": group, "version": version, "service": service });
        let object = json!({ "metadata": { "name": "x" }, "spec": spec });
        Remote::of(&Object::from_value(object).unwrap(), None).is_some()
    };
    assert!(!of("apps", "v1") && !of("", "v1") && !of("apiregistration.k8s.io", "v1"));
    assert!(of("apps", "v9") && of("metrics.k8s.io", "v1beta1"));
}

#[test]
fn what_a_server_told_outlives_changes_of_its_object() {
    let first = remote("v1", 1);
    first.tell(|told| {
        told.resources = Some(json!({}));
        told.checked = Some(tokio::time::Instant::now());
    });
    let service = json!({ "namespace": "shop", "name": "api", "port": 443 });
    let spec = |priority: u8| json!({ "service": service, "versionPriority": priority });
    let same = Remote::of(&api_service("v1", spec(1)), Some(&first)).unwrap();
    assert!(same.told().checked.is_some());
    // What it asks for is another thing now: it is to be looked at.
    let other = Remote::of(&api_service("v1", spec(2)), Some(&first)).unwrap();
    assert!(other.told().checked.is_none() && other.told().resources.is_some());
}

#[test]
fn the_path_is_the_one_that_was_decided_about() {
    let told = |text: &str| {
        let uri: Uri = text.parse().unwrap();
        let query = Query::parse(uri.query().unwrap_or(""));
        let info = RequestInfo::of(&Method::GET, &uri, &query);
        target(&info, uri.query()).map(|uri| uri.to_string())
    };
    expect![[r#"
        Some("/apis/g/v1/carts/a/b?watch=1&x=%2F")
        Some("/apis/g/v1/carts/%C3%BC%20%3F")
        None
        None"#]]
    .assert_eq(
        &[
            "/apis/g/v1/carts%2Fa/b?watch=1&x=%2F",
            "/apis/g/v1/carts/%c3%bc%20%3f",
            "/apis/g/v1/carts/../secrets",
            "/apis/g/v1/carts/%2e%2E/secrets",
        ]
        .map(|text| format!("{:?}", told(text)))
        .join("\n"),
    );
}

#[test]
fn documents_are_where_the_index_says() {
    let index = |url: &str| json!({ "paths": { "apis/g/v1": { "serverRelativeURL": url } } });
    let found = |url: &str| documents::schema_in(&index(url), "g/v1");
    let good = "/openapi/v3/apis/g/v1?hash=12";
    assert_eq!(found(good), Some(good.to_owned()));
    assert_eq!(found("/openapi/v3/apis/other/v1?hash=12"), None);
    assert_eq!(found("https://elsewhere/openapi/v3/apis/g/v1"), None);
    let remotes = [remote("v1", 1)];
    remotes[0].tell(|told| told.schema = Some("/u".to_owned()));
    let mut all = json!({ "paths": {} });
    documents::add_schemas(&mut all, &remotes);
    assert_eq!(
        all["paths"]["apis/shop.example.test/v1"]["serverRelativeURL"],
        "/u"
    );
}

#[test]
fn groups_of_others_stand_beside_ours() {
    let remotes = [remote("v2", 2), remote("v1", 1)];
    let mut list = json!({ "groups": [{ "name": "apps" }] });
    documents::add_groups(&mut list, &remotes);
    expect![[r#"{"groups":[{"name":"apps"},{"name":"shop.example.test","preferredVersion":{"groupVersion":"shop.example.test/v2","version":"v2"},"versions":[{"groupVersion":"shop.example.test/v2","version":"v2"},{"groupVersion":"shop.example.test/v1","version":"v1"}]}]}"#]]
        .assert_eq(&list.to_string());
    let own = json!({ "name": "apps" });
    assert_eq!(
        documents::group(Some(own.clone()), "apps", &remotes),
        Some(own)
    );
    assert_eq!(documents::group(None, "none", &remotes), None);
    let theirs = documents::group(None, "shop.example.test", &remotes).unwrap();
    assert_eq!(theirs["kind"], "APIGroup");
    assert_eq!(theirs["versions"].as_array().unwrap().len(), 2);
}

#[test]
fn resources_of_others_are_as_they_told_them() {
    let remotes = [remote("v1", 1)];
    let list = json!({ "resources": [
        { "name": "carts", "singularName": "cart", "namespaced": true, "kind": "Cart",
          "verbs": ["get", 1, "list"], "shortNames": ["ct", {}] },
        { "name": "carts/status", "kind": "Cart", "verbs": ["get"] },
        { "name": "carts/scale", "kind": "Scale", "group": "autoscaling", "version": "v1",
          "verbs": ["get"] },
    ] });
    remotes[0].tell(|told| told.resources = Some(list));
    let mut all = json!({ "items": [] });
    documents::add_aggregated(&mut all, &remotes);
    let version = &all["items"][0]["versions"][0];
    // It does not answer now.
    assert_eq!(version["freshness"], "Stale");
    let cart = json!({ "group": "shop.example.test", "version": "v1", "kind": "Cart" });
    assert_eq!(
        version["resources"],
        json!([{
            "resource": "carts", "responseKind": cart, "scope": "Namespaced",
            "singularResource": "cart", "verbs": ["get", "list"], "shortNames": ["ct"],
            "subresources": [
                { "subresource": "status", "responseKind": cart, "verbs": ["get"] },
                {
                    "subresource": "scale", "verbs": ["get"],
                    "responseKind": { "group": "autoscaling", "version": "v1", "kind": "Scale" },
                },
            ],
        }])
    );
}

#[test]
fn users_are_named_by_this_server_alone() {
    let mut map = HeaderMap::new();
    map.insert("x-remote-user", "root".parse().unwrap());
    map.insert("x-remote-extra-a", "b".parse().unwrap());
    map.insert("accept", "x".parse().unwrap());
    let mut user = User::named("jane");
    user.groups = vec!["a".to_owned(), "b".to_owned()];
    user.extra
        .insert("example.com/key".to_owned(), vec!["v".to_owned()]);
    headers::put_user(&mut map, &user);
    let mut shown: Vec<String> = map
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect();
    shown.sort();
    assert_eq!(
        shown,
        [
            "accept: x",
            "x-remote-extra-example.com%2fkey: v",
            "x-remote-group: a",
            "x-remote-group: b",
            "x-remote-user: jane",
        ]
    );
}

#[test]
fn what_keeps_a_server_from_answering_is_told_in_upstreams_words() {
    let remote = remote("v1", 1);
    let view = Objects::new([]);
    let told = || match check::of_service(view.as_ref(), &remote) {
        Ok(()) => "fine".to_owned(),
        Err(Available {
            reason, message, ..
        }) => format!("{reason}: {message}"),
    };
    expect![[r#"ServiceNotFound: service/api in "shop" is not present"#]].assert_eq(&told());
    let service = |port: u16| {
        json!({
            "metadata": { "name": "api", "namespace": "shop" },
            "spec": { "type": "ClusterIP", "ports": [{ "name": "https", "port": port }] },
        })
    };
    view.put("services", service(80));
    expect![[r#"ServicePortError: service/api in "shop" is not listening on port 443"#]]
        .assert_eq(&told());
    let view = Objects::new([("services", service(443))]);
    let told = || match check::of_service(view.as_ref(), &remote) {
        Ok(()) => "fine".to_owned(),
        Err(Available {
            reason, message, ..
        }) => format!("{reason}: {message}"),
    };
    expect![[r#"EndpointsNotFound: cannot find endpointslices for service/api in "shop""#]]
        .assert_eq(&told());
    let slice = |name: &str, ready: bool| {
        json!({
            "metadata": {
                "name": name, "namespace": "shop",
                "labels": { "kubernetes.io/service-name": "api" },
            },
            "ports": [{ "name": "https", "port": 8443 }],
            "endpoints": [{ "addresses": ["10.0.0.1"], "conditions": { "ready": ready } }],
        })
    };
    view.put("endpointslices", slice("a", false));
    expect![[r#"MissingEndpoints: endpointslices for service/api in "shop" have no addresses with port name "https""#]]
        .assert_eq(&told());
    view.put("endpointslices", slice("b", true));
    expect!["fine"].assert_eq(&told());
}

#[test]
fn a_condition_is_written_when_it_changes_and_keeps_its_time() {
    let object = api_service("v1", json!({}));
    let first = Available::passed().put(&object, "T1").unwrap();
    assert!(check::is_available(&first));
    assert_eq!(Available::passed().put(&first, "T2"), None);
    let broken = Available::undiscovered("gone".to_owned());
    let second = broken.put(&first, "T2").unwrap();
    let other = Available::undiscovered("still gone".to_owned());
    let mut third = other.put(&second, "T3").unwrap();
    expect![[r#"[{"lastTransitionTime":"T2","message":"still gone","reason":"FailedDiscoveryCheck","status":"False","type":"Available"}]"#]]
        .assert_eq(&Value::from(third.list(&["status", "conditions"])).to_string());
    // Conditions of others stay where they are.
    let mut conditions = third.list(&["status", "conditions"]).to_vec();
    conditions.push(json!({ "type": "Other" }));
    third.set(&["status", "conditions"], conditions.into());
    let fourth = Available::passed().put(&third, "T4").unwrap();
    let conditions = fourth.list(&["status", "conditions"]);
    assert_eq!(
        (&conditions[0]["status"], &conditions[1]["type"]),
        (&json!("True"), &json!("Other"))
    );
}
