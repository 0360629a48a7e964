//! Everything that discovery serves, by every method, and every path beside it: refused to whoever
//! was given nothing, whether they have a name or not, also inside of this process.

use crate::handler::site::{Site, site};
use bytes::Bytes;
use coracle_apiserver::authenticate::User;
use http::header::X_CONTENT_TYPE_OPTIONS;
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use std::collections::BTreeSet;
use tower::ServiceExt;

const METHODS: [&str; 8] = [
    "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE",
];

/// No browser is to guess what a refusal is.
const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");

/// `system:public-info-viewer`, and the CA, which those who join check by its hash.
const OPEN_TO_ALL: [&str; 6] = [
    "/coracle/v1/ca",
    "/healthz",
    "/livez",
    "/readyz",
    "/version",
    "/version/",
];
/// `system:discovery`, which everybody with a name may read.
const OPEN_TO_USERS: [&str; 4] = ["/api", "/apis", "/openapi", "/openapi/"];
/// `system:discovery`, whatever is below.
const OPEN_BELOW: [&str; 3] = ["/api/", "/apis/", "/openapi/"];
/// `system:basic-user`: questions about oneself.
const OPEN_CREATES: [&str; 3] = [
    "/apis/authentication.k8s.io/v1/selfsubjectreviews",
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
];

/// Paths beside resources that no index names.
const HIDDEN: [&str; 17] = [
    "/",
    "/metrics/slis",
    "/healthz/ping",
    "/livez/ping",
    "/readyz/ping",
    "/readyz/",
    "/debug/api_priority_and_fairness/dump_priority_levels",
    "/debug/api_priority_and_fairness/dump_queues",
    "/debug/api_priority_and_fairness/dump_requests",
    "/debug/pprof/profile",
    "/logs/",
    "/coracle/v1/ca/",
    "/coracle/v1/nodes/n1/tunnel",
    "/coracle/v1/policy",
    "/coracle/v1/secrets/rotate",
    "/coracle/v1/snapshot",
    "/nowhere",
];

fn is_open(user: &User, method: &str, path: &str) -> bool {
    let has_name = !user.is_anonymous();
    match method {
        "GET" => {
            OPEN_TO_ALL.contains(&path)
                || has_name
                    && (OPEN_TO_USERS.contains(&path)
                        || is_discovery(path)
                        || path.starts_with("/openapi/"))
        }
        // With a name it is authorized as well, and no method of what is there.
        "POST" => has_name && OPEN_CREATES.contains(&path.trim_end_matches("/some")),
        _ => false,
    }
}

/// `/api/v1`, `/apis/apps`, `/apis/apps/v1`: below these are resources.
fn is_discovery(path: &str) -> bool {
    let depth = path.trim_matches('/').split('/').count();
    OPEN_BELOW.iter().any(|below| path.starts_with(below))
        && (path.starts_with("/api/") && depth == 2 || path.starts_with("/apis/") && depth <= 3)
}

/// Each group version with what it serves.
async fn served(site: &Site) -> Vec<(String, Vec<Value>)> {
    let mut roots = vec!["/api/v1".to_owned()];
    let groups = site.get("/apis").await.ok();
    for group in groups["groups"].as_array().unwrap() {
        for version in group["versions"].as_array().unwrap() {
            roots.push(format!(
                "/apis/{}",
                version["groupVersion"].as_str().unwrap()
            ));
        }
    }
    let mut all = Vec::new();
    for root in roots {
        let list = site.get(&root).await.ok();
        all.push((root, list["resources"].as_array().unwrap().clone()));
    }
    all
}

/// Where a resource or a subresource of it is, in a namespace and out of it.
fn places(root: &str, resource: &Value) -> Vec<String> {
    let name = resource["name"].as_str().unwrap();
    let scope = match resource["namespaced"].as_bool().unwrap() {
        true => format!("{root}/namespaces/default"),
        false => root.to_owned(),
    };
    let mut paths = match name.split_once('/') {
        Some((plural, subresource)) => vec![
            format!("{scope}/{plural}/some/{subresource}"),
            format!("{scope}/{plural}/some/{subresource}/more"),
        ],
        None => vec![
            format!("{scope}/{name}"),
            format!("{scope}/{name}?watch=true"),
            format!("{scope}/{name}?fieldSelector=metadata.name%3Dsome"),
            format!("{scope}/{name}/some"),
        ],
    };
    if !name.contains('/') {
        paths.push(format!("{root}/{name}"));
        paths.push(format!("{root}/watch/{name}"));
    }
    paths
}

async fn answer(
    site: &Site,
    user: &User,
    method: &str,
    path: &str,
) -> (StatusCode, HeaderMap, Bytes) {
    let kind = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", kind)
        .body(Full::new(Bytes::from_static(b"{}")))
        .unwrap();
    let response = site.acting_as(user.clone()).oneshot(request).await.unwrap();
    let (head, body) = response.into_parts();
    // The body of what is open may never end.
    let body = match head.status {
        StatusCode::FORBIDDEN => body.collect().await.unwrap().to_bytes(),
        _ => Bytes::new(),
    };
    (head.status, head.headers, body)
}

/// Every path, refused or open as it should be; returns how many requests were refused.
async fn walk(site: &Site, paths: &BTreeSet<String>) -> usize {
    let (mut refused, mut wrong) = (0, Vec::new());
    for user in [User::anonymous(), User::named("jane")] {
        for path in paths {
            let plain = path.split('?').next().unwrap();
            for method in METHODS {
                let (status, headers, body) = answer(site, &user, method, path).await;
                let is_refused = status == StatusCode::FORBIDDEN
                    && headers.get(X_CONTENT_TYPE_OPTIONS) == Some(&NOSNIFF)
                    && (method == "HEAD"
                        || serde_json::from_slice::<Value>(&body)
                            .is_ok_and(|status| status["reason"] == "Forbidden"));
                if is_refused == is_open(&user, method, plain) {
                    wrong.push(format!("{} {method} {path}: {status}", user.name));
                }
                refused += usize::from(is_refused);
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    refused
}

#[tokio::test]
async fn no_resource_answers_whoever_was_given_nothing() {
    let site = site().await;
    let served = served(&site).await;
    let mut paths = BTreeSet::new();
    for (root, resources) in &served {
        assert!(!resources.is_empty(), "{root}");
        for resource in resources {
            paths.extend(places(root, resource));
        }
    }
    assert!(paths.len() > 400, "{} paths", paths.len());
    let refused = walk(&site, &paths).await;
    // Every method of every path, twice, but for the questions about oneself.
    let questions = |path: &&String| OPEN_CREATES.iter().any(|open| path.starts_with(open));
    let open = paths.iter().filter(questions).count();
    assert_eq!(open, OPEN_CREATES.len() * 4);
    assert_eq!(refused, paths.len() * METHODS.len() * 2 - open);
}

#[tokio::test]
async fn no_path_beside_resources_answers_but_those_that_are_public() {
    let site = site().await;
    let index = site.get("/").await.ok();
    let named = index["paths"].as_array().unwrap().iter();
    let mut paths: BTreeSet<String> = named
        .map(|path| path.as_str().unwrap().to_owned())
        .collect();
    assert!(paths.len() > 30, "{paths:?}");
    paths.extend(
        OPEN_TO_ALL
            .iter()
            .chain(&HIDDEN)
            .map(|path| (*path).to_owned()),
    );
    assert!(walk(&site, &paths).await > paths.len() * METHODS.len());
}

#[tokio::test]
async fn parts_of_this_process_are_asked_like_anybody() {
    let site = site().await;
    let account = |name: &str| format!("system:serviceaccount:kube-system:{name}");
    let cases = [
        (
            account("deployment-controller"),
            "/apis/apps/v1/deployments",
            true,
        ),
        (account("deployment-controller"), "/api/v1/secrets", false),
        (
            account("clusterrole-aggregation-controller"),
            "/api/v1/pods",
            false,
        ),
        (account("namespace-controller"), "/api/v1/namespaces", true),
        ("system:kube-scheduler".to_owned(), "/api/v1/pods", true),
        ("system:kube-scheduler".to_owned(), "/api/v1/secrets", false),
        (
            "system:kube-controller-manager".to_owned(),
            "/api/v1/configmaps",
            true,
        ),
    ];
    for (user, path, is_allowed) in cases {
        let (status, _, _) = answer(&site, &User::named(&user), "GET", path).await;
        let expected = match is_allowed {
            true => StatusCode::OK,
            false => StatusCode::FORBIDDEN,
        };
        assert_eq!(status, expected, "{user} {path}");
    }
}

#[tokio::test]
async fn whoever_may_not_act_as_another_is_told_so_in_the_form_of_refusals() {
    let site = site().await;
    let asked = [
        ("impersonate-user", "root", StatusCode::FORBIDDEN),
        ("impersonate-group", "dev", StatusCode::BAD_REQUEST),
    ];
    for (header, value, expected) in asked {
        let request = Request::get("/api")
            .header(header, value)
            .body(Full::new(Bytes::new()))
            .unwrap();
        let service = site.acting_as(User::named("jane"));
        let response = service.oneshot(request).await.unwrap();
        assert_eq!(response.status(), expected);
        assert_eq!(
            response.headers().get(X_CONTENT_TYPE_OPTIONS),
            Some(&NOSNIFF)
        );
    }
}
