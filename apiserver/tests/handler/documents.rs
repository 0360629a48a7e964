//! Discovery, OpenAPI, health, version, metrics.

use super::site::site;
use http::Request;
use http_body_util::Full;

const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

#[tokio::test]
async fn discovery_comes_in_both_forms_and_is_fetched_once() {
    let site = site().await;
    assert_eq!(site.get("/api").await.ok()["versions"][0], "v1");
    assert_eq!(site.get("/apis").await.ok()["kind"], "APIGroupList");
    assert_eq!(site.get("/apis/apps").await.ok()["kind"], "APIGroup");
    assert_eq!(site.get("/api/v1").await.ok()["kind"], "APIResourceList");
    assert_eq!(
        site.get("/apis/apps/v1").await.ok()["groupVersion"],
        "apps/v1"
    );
    assert_eq!(site.get("/apis/apps/v9").await.status, 404);
    let first = site.get_as("/apis", AGGREGATED).await;
    let tag = first.headers["etag"].clone();
    assert_eq!(first.ok()["kind"], "APIGroupDiscoveryList");
    let again = Request::get("/apis")
        .header("accept", AGGREGATED)
        .header("if-none-match", tag);
    let again = site.send(again.body(Full::default()).unwrap()).await;
    assert_eq!(again.status, 304);
    assert!(again.body.is_empty());
}

#[tokio::test]
async fn openapi_documents_are_where_the_index_says() {
    let site = site().await;
    let index = site.get("/openapi/v3").await.ok();
    let url = index["paths"]["apis/apps/v1"]["serverRelativeURL"]
        .as_str()
        .unwrap();
    let document = site.get(url).await;
    assert_eq!(document.headers["cache-control"], "public, immutable");
    let schemas = &document.ok()["components"]["schemas"];
    assert!(schemas["io.k8s.api.apps.v1.Deployment"].is_object());
    let old = site.get("/openapi/v3/apis/apps/v1?hash=old").await;
    assert_eq!(old.status, 301);
    assert_eq!(old.headers["location"], url);
    assert_eq!(site.get("/openapi/v2").await.ok()["swagger"], "2.0");
    assert_eq!(site.get_as("/openapi/v2", "text/html").await.status, 406);
    let protobuf = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf";
    let document = site.get_as(url, protobuf).await;
    assert_eq!(document.headers["content-type"], protobuf.replace('@', "."));
    assert_eq!(document.headers["vary"], "Accept");
}

/// Discovery comes in every form, and tells in which version things are stored.
#[tokio::test]
async fn discovery_documents_are_negotiated() {
    let site = site().await;
    let list = site.get("/api/v1").await.ok();
    let resources = list["resources"].as_array().unwrap();
    let pods = resources.iter().find(|one| one["name"] == "pods").unwrap();
    assert_eq!(pods["storageVersionHash"], "xPOwRZ+Yhw8=");
    let yaml = site.get_as("/apis/apps", "application/yaml").await;
    assert!(
        yaml.body
            .starts_with(b"apiVersion: v1\nkind: APIGroup\nname: apps\n")
    );
    assert_eq!(site.get_as("/apis", "text/html").await.status, 406);
    let protobuf = AGGREGATED.replace("json;", "vnd.kubernetes.protobuf;");
    let document = site.get_as("/apis", &protobuf).await;
    assert!(document.body.starts_with(b"k8s\0"));
    assert_eq!(document.headers["cache-control"], "public");
    assert_eq!(
        document.headers["content-type"],
        protobuf.split(',').next().unwrap()
    );
}

/// What has a route of upstream's router is for one method and takes a slash behind; the rest is
/// for any method and no other path.
#[tokio::test]
async fn methods_and_slashes_of_documents() {
    let site = site().await;
    let code = async |method: &str, path: &str| {
        let answer = site.ask(method, path, "", Vec::new()).await;
        answer.status.as_u16()
    };
    for path in [
        "/version",
        "/api",
        "/api/v1",
        "/apis/apps/v1",
        "/apis/apiregistration.k8s.io",
        "/openid/v1/jwks",
    ] {
        let slashed = format!("{path}/");
        for (method, expected) in [("GET", 200), ("HEAD", 405), ("OPTIONS", 405), ("POST", 405)] {
            assert_eq!(code(method, path).await, expected, "{method} {path}");
            assert_eq!(code(method, &slashed).await, expected, "{method} {slashed}");
        }
    }
    for path in [
        "/",
        "/index.html",
        "/apis",
        "/apis/",
        "/apis/apps",
        "/apis/apps/",
    ] {
        for method in ["GET", "HEAD", "OPTIONS", "POST"] {
            assert_eq!(code(method, path).await, 200, "{method} {path}");
        }
    }
    for path in [
        "/livez/ping",
        "/metrics",
        "/metrics/slis",
        "/openapi/v2",
        "/openapi/v3",
    ] {
        let slashed = format!("{path}/");
        for method in ["GET", "HEAD", "OPTIONS", "POST"] {
            assert_eq!(code(method, path).await, 200, "{method} {path}");
            assert_eq!(code(method, &slashed).await, 404, "{method} {slashed}");
        }
    }
    let refused = site.ask("POST", "/version", "", Vec::new()).await;
    assert_eq!(
        refused.failure(),
        "405 MethodNotAllowed: the server does not allow this method on the requested resource"
    );
    let none = site.get("/openapi/v3/apis/none/v1").await;
    assert_eq!((none.status.as_u16(), none.body.len()), (404, 0));
}

#[tokio::test]
async fn health_version_and_metrics_are_served() {
    let site = site().await;
    let version = site.get("/version").await.ok();
    assert_eq!(
        (&version["major"], &version["minor"]),
        (&"1".into(), &"36".into())
    );
    assert_eq!(site.get("/livez/ping").await.body, "ok");
    // Nobody serves yet in this test.
    let ready = site.get("/readyz").await;
    assert_eq!(ready.status, 500);
    let text = String::from_utf8_lossy(&ready.body).into_owned();
    assert!(text.contains("[-]poststarthook/rbac/bootstrap-roles failed: reason withheld\n"));
    assert!(text.ends_with("readyz check failed\n"));
    let excluded = "/readyz?verbose&exclude=poststarthook/rbac/bootstrap-roles\
                    &exclude=poststarthook/scheduling/bootstrap-system-priority-classes\
                    &exclude=poststarthook/priority-and-fairness-config-producer";
    assert_eq!(site.get(excluded).await.status, 200);
    let metrics = site.get("/metrics").await;
    let text = String::from_utf8_lossy(&metrics.body).into_owned();
    assert!(text.contains("\napiserver_storage_objects{resource=\"namespaces\"} 4\n"));
    assert!(
        site.get("/coracle/v1/ca")
            .await
            .body
            .starts_with(b"-----BEGIN CERTIFICATE-----")
    );
    assert_eq!(
        site.ask("POST", "/version", "", Vec::new()).await.status,
        405
    );
    let index = site.get("/").await.ok();
    let paths = index["paths"].as_array().unwrap();
    assert!(paths.contains(&"/apis/apps/v1".into()));
    assert!(paths.contains(&"/readyz/shutdown".into()));
}
