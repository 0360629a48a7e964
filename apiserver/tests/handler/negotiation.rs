//! Accept headers, failures in each form, compression, methods and paths.

use super::site::{CONFIG_MAPS, Site, config_map, site};
use serde_json::{Value, json};
use std::io::Read;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

async fn one() -> Site {
    let site = site().await;
    site.post(CONFIG_MAPS, &config_map("a", "1")).await.ok();
    site
}

#[tokio::test]
async fn a_failure_comes_in_the_form_that_was_asked_for() {
    let site = one().await;
    let missing = format!("{CONFIG_MAPS}/b");
    let yaml = site.get_as(&missing, "application/yaml").await;
    assert_eq!(
        (yaml.status.as_u16(), &yaml.headers["content-type"]),
        (404, &"application/yaml".parse().unwrap())
    );
    assert!(yaml.body.starts_with(b"apiVersion: v1\ncode: 404\n"));
    let protobuf = site.get_as(&missing, PROTOBUF).await;
    assert_eq!(protobuf.headers["content-type"], PROTOBUF);
    assert_eq!(
        protobuf.failure(),
        "404 NotFound: configmaps \"b\" not found"
    );
    // A table of a failure is a Status.
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    assert_eq!(site.get_as(&missing, table).await.json()["kind"], "Status");
    let refused = site.get_as(&missing, "text/html").await;
    assert_eq!(refused.status, 406);
    assert!(
        refused
            .failure()
            .contains("Available representations: application/json, ")
    );
    let streams = format!("{CONFIG_MAPS}?watch=1");
    let refused = site.get_as(&streams, "application/yaml").await;
    assert!(String::from_utf8_lossy(&refused.body).contains("application/json;stream=watch"));
}

#[tokio::test]
async fn tables_come_in_both_versions_and_with_what_is_asked_for() {
    let site = one().await;
    let accept = |version: &str| format!("application/json;as=Table;v={version};g=meta.k8s.io");
    for version in ["v1", "v1beta1"] {
        for path in [CONFIG_MAPS.to_owned(), format!("{CONFIG_MAPS}/a")] {
            let table = site.get_as(&path, &accept(version)).await.ok();
            let wanted = format!("meta.k8s.io/{version}");
            assert_eq!(table["apiVersion"], wanted);
            assert_eq!(table["rows"][0]["object"]["apiVersion"], wanted);
        }
    }
    let with = async |what: &str| {
        let path = format!("{CONFIG_MAPS}?includeObject={what}");
        site.get_as(&path, &accept("v1")).await
    };
    assert_eq!(with("None").await.ok()["rows"][0]["object"], Value::Null);
    assert_eq!(
        with("Object").await.ok()["rows"][0]["object"]["data"]["key"],
        "1"
    );
    assert_eq!(with("Other").await.status, 400);
    let yaml = "application/yaml;as=Table;v=v1;g=meta.k8s.io";
    assert!(
        site.get_as(CONFIG_MAPS, yaml)
            .await
            .body
            .starts_with(b"apiVersion: meta.k8s.io/v1\n")
    );
    let list = site
        .get(&format!("{CONFIG_MAPS}?includeObject=Other"))
        .await;
    assert_eq!(list.status, 200, "nobody asked for a table");
}

#[tokio::test]
async fn partial_metadata_comes_in_json_and_protobuf() {
    let site = one().await;
    let accept = |form: &str, kind: &str| format!("{form};as={kind};v=v1;g=meta.k8s.io");
    let (single, many) = ("PartialObjectMetadata", "PartialObjectMetadataList");
    let path = format!("{CONFIG_MAPS}/a");
    for form in ["application/json", PROTOBUF] {
        let one = site.get_as(&path, &accept(form, single)).await;
        assert_eq!(one.headers["content-type"], form);
        let one = one.ok();
        assert_eq!(
            (&one["kind"], &one["metadata"]["name"]),
            (&json!(single), &json!("a"))
        );
        assert!(one["data"].is_null());
        let list = site.get_as(CONFIG_MAPS, &accept(form, many)).await.ok();
        assert_eq!(list["kind"], many);
        assert_eq!(list["items"][0]["metadata"], one["metadata"]);
        let wrong = site.get_as(CONFIG_MAPS, &accept(form, single)).await;
        assert_eq!(
            wrong.failure(),
            "406 NotAcceptable: you requested PartialObjectMetadata, but the requested object is \
             a list (*core.ConfigMapList)"
        );
        let wrong = site.get_as(&path, &accept(form, many)).await;
        assert_eq!(wrong.status, 406);
    }
}

#[tokio::test]
async fn large_answers_are_compressed_for_whoever_takes_it() {
    let site = site().await;
    for place in 0..150 {
        let object = config_map(&format!("n{place:03}"), &"x".repeat(1000));
        site.post(CONFIG_MAPS, &object).await.ok();
    }
    let gzip = [("accept-encoding", "deflate, gzip")];
    let plain = site.get(CONFIG_MAPS).await;
    assert!(!plain.headers.contains_key("content-encoding"));
    let packed = site.get_with(CONFIG_MAPS, &gzip).await;
    assert_eq!(packed.headers["content-encoding"], "gzip");
    assert_eq!(packed.headers["vary"], "Accept-Encoding");
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(&packed.body[..])
        .read_to_end(&mut text)
        .unwrap();
    assert_eq!(text, plain.body);
    assert!(packed.body.len() * 10 < text.len());
    let small = site
        .get_with(&format!("{CONFIG_MAPS}?limit=5"), &gzip)
        .await;
    assert!(!small.headers.contains_key("content-encoding"));
    let documents = site.get_with("/openapi/v2", &gzip).await;
    assert_eq!(documents.headers["content-encoding"], "gzip");
}

#[tokio::test]
async fn people_get_their_json_indented() {
    let site = one().await;
    let path = format!("{CONFIG_MAPS}/a");
    let plain = site.get(&path).await;
    assert!(
        plain
            .body
            .starts_with(b"{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":")
    );
    let asked = site.get(&format!("{path}?pretty=true")).await;
    assert!(asked.body.starts_with(b"{\n  \"kind\": \"ConfigMap\","));
    assert_eq!(asked.json(), plain.json());
    let curl = [("user-agent", "curl/8.0")];
    let curl = site.get_with(&path, &curl).await;
    assert_eq!(curl.body, asked.body);
    let no = [("user-agent", "curl/8.0")];
    let no = site.get_with(&format!("{path}?pretty=false"), &no).await;
    assert_eq!(no.body, plain.body);
    assert_eq!(plain.headers["cache-control"], "no-cache, private");
    assert_eq!(plain.headers["audit-id"].len(), 36);
    let own = site.get_with(&path, &[("audit-id", "mine")]).await;
    assert_eq!(own.headers["audit-id"], "mine");
}

#[tokio::test]
async fn methods_and_paths_that_nothing_serves() {
    let site = one().await;
    let named = format!("{CONFIG_MAPS}/a");
    for (method, path) in [
        ("HEAD", CONFIG_MAPS),
        ("OPTIONS", CONFIG_MAPS),
        ("PUT", CONFIG_MAPS),
        ("POST", &named),
        ("FOO", &named),
    ] {
        let answer = site
            .ask(method, path, "application/json", b"{}".to_vec())
            .await;
        assert_eq!(
            answer.failure(),
            "405 MethodNotAllowed: the server does not allow this method on the requested resource",
            "{method} {path}"
        );
    }
    for path in [
        "/api/v1/foos",
        "/apis/apps/v9/deployments",
        "/api/v1/namespaces/default/nodes",
        "/api/v1/namespaces/default/namespaces/x",
        "/api/v1/configmaps/a",
        "/api/v2",
    ] {
        assert_eq!(
            site.get(path).await.failure(),
            "404 NotFound: the server could not find the requested resource",
            "{path}"
        );
    }
    for path in ["/foo", "/apis/foo", "/apis/foo/v1"] {
        let answer = site.get(path).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.body[..]),
            (404, &b"404 page not found\n"[..])
        );
        assert_eq!(answer.headers["content-type"], "text/plain; charset=utf-8");
    }
    assert_eq!(site.get("/api/v1/namespaces/default").await.status, 200);
    assert_eq!(
        site.get("/api/v1/namespaces/default/status").await.status,
        200
    );
    let slashes = site.get(&format!("{CONFIG_MAPS}/")).await;
    assert_eq!(slashes.ok()["kind"], "ConfigMapList");
    let timeout = site.get(&format!("{named}?timeout=x")).await;
    assert_eq!(
        timeout.failure(),
        "400 BadRequest: invalid timeout specified in the request URL - time: invalid duration \
         \"x\""
    );
    assert_eq!(
        site.get(&format!("{named}?timeout=1m30s")).await.status,
        200
    );
    assert_eq!(site.get(&format!("{named}?export=true")).await.status, 400);
    let future = site.get(&format!("{named}?resourceVersion=99999999")).await;
    assert_eq!(future.status, 504);
    assert_eq!(
        site.get(&format!("{named}?resourceVersion=0")).await.status,
        200
    );
}

/// A body says what it is in its Content-Type, and of which kind it is in itself.
#[tokio::test]
async fn bodies_of_the_wrong_format_or_kind() {
    let site = one().await;
    let ask = async |kind: &str, body: &str| {
        let answer = site.ask("POST", CONFIG_MAPS, kind, body.into()).await;
        answer.failure()
    };
    let formats = "415 UnsupportedMediaType: the body of the request was in an unknown format - \
                   accepted media types include: application/json, application/yaml, \
                   application/vnd.kubernetes.protobuf";
    for kind in [
        "text/yaml",
        "application/x-yaml",
        "*/*",
        "application/json;q",
        "foo",
    ] {
        assert_eq!(ask(kind, "{}").await, formats, "{kind}");
    }
    let unrecognized = "400 BadRequest: the object provided is unrecognized (must be of type \
                        ConfigMap):";
    assert_eq!(
        ask("application/vnd.kubernetes.protobuf", "{\"kind\":1}").await,
        format!(
            "{unrecognized} provided data does not appear to be a protobuf message, expected \
             prefix [107 56 115 0] ({{\"kind\":1}})"
        )
    );
    assert_eq!(
        ask("application/yaml", "{\"kind\":\"ConfigMap\"").await,
        format!(
            "{unrecognized} yaml: line 1: did not find expected ',' or '}}' \
             ({{\"kind\":\"ConfigMap\")"
        )
    );
    assert_eq!(
        ask("application/json", r#"{"apiVersion":"a/b/c"}"#).await,
        format!(
            "{unrecognized} unexpected GroupVersion string: a/b/c ({{\"apiVersion\":\"a/b/c\"}})"
        )
    );
    assert_eq!(
        ask("application/json", r#"{"apiVersion":"v1","kind":"Secret"}"#).await,
        "400 BadRequest: Secret in version \"v1\" cannot be handled as a ConfigMap: converting \
         (v1.Secret) to (core.ConfigMap): unknown conversion"
    );
    let named = format!("{CONFIG_MAPS}/a");
    let merge = "application/merge-patch+json";
    let patched = site
        .ask("PATCH", &named, merge, br#"{"kind":"Foo"}"#.to_vec())
        .await;
    assert_eq!(patched.status, 422);
    assert!(patched.failure().ends_with(
        ": no kind \"Foo\" is registered for version \"v1\" in scheme \
         \"pkg/api/legacyscheme/scheme.go:30\""
    ));
    let both = format!("{merge}, application/json");
    let both = site.ask("PATCH", &named, &both, b"{}".to_vec()).await;
    assert!(
        both.failure()
            .ends_with("application/strategic-merge-patch+json, application/apply-patch+yaml")
    );
    let strategic = "application/strategic-merge-patch+json";
    let wrong = site
        .ask("PATCH", &named, strategic, br#"{"data":{"x":5}}"#.to_vec())
        .await;
    assert_eq!(
        wrong.failure(),
        "422 Invalid:  \"\" is invalid: patch: Invalid value: \"map[data:map[x:5]]\": cannot convert \
         int64 to string"
    );
}

/// Documents with a route are for what the route produces, the others for what can be made.
#[tokio::test]
async fn documents_are_of_the_types_that_upstream_has_them_in() {
    let site = site().await;
    let ask = async |path: &str, accept: &str| {
        let answer = site.get_as(path, accept).await;
        let code = answer.status.as_u16();
        let message = answer.json()["message"].as_str().unwrap_or("").to_owned();
        (code, message)
    };
    let route = |types: &str| format!("406: Not Acceptable\n\nAvailable representations: {types}");
    let all = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
    for (path, types) in [
        ("/version", "application/json"),
        ("/.well-known/openid-configuration", "application/json"),
        ("/openid/v1/jwks", "application/jwk-set+json"),
        ("/api", all),
        ("/apis/apps/v1", all),
    ] {
        assert_eq!(
            ask(path, "application/*").await,
            (406, route(types)),
            "{path}"
        );
        assert_eq!(ask(path, "text/html,*/*;q=0.1").await.0, 200, "{path}");
    }
    let log = "/api/v1/namespaces/default/pods/none/log";
    let refused = (406, route(&format!("text/plain, {all}")));
    assert_eq!(ask(log, "text/html").await, refused);
    // A failure could not be told.
    assert_eq!(ask(log, "text/plain").await.0, 406);
    assert_eq!(ask(log, "text/plain, */*").await.0, 404);
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    for path in ["/apis", "/apis/apps"] {
        assert_eq!(ask(path, "application/*").await.0, 200, "{path}");
        let refused = (
            406,
            format!("only the following media types are accepted: {all}"),
        );
        assert_eq!(ask(path, "text/html").await, refused, "{path}");
        assert_eq!(ask(path, table).await, refused, "{path}");
    }
}
