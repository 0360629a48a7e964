//! Paths and methods that are there and those that are not, as upstream's router has them.

use super::*;
use http::Request;

fn row(info: &RequestInfo) -> Option<&'static Resource> {
    coracle_api::catalogue::find(&info.group, &info.version, &info.resource)
}

fn answer(method: &str, path: &str, kind: &str) -> String {
    let request = Request::builder().method(method).uri(path);
    let request = request.header("content-type", kind).body(()).unwrap();
    let (parts, ()) = request.into_parts();
    let info = RequestInfo::parse(&parts.method, &parts.uri);
    match find(row(&info), &parts, &info) {
        Ok((row, None)) => row.plural.to_owned(),
        Ok((row, Some(subresource))) => format!("{}/{}", row.plural, subresource.name),
        Err(status) => status.code.to_string(),
    }
}

#[test]
fn paths_have_their_methods() {
    let named = "/api/v1/namespaces/a/pods/b";
    for (methods, path, expected) in [
        ("GET POST DELETE", "/api/v1/namespaces/a/pods", "pods"),
        ("PUT PATCH HEAD OPTIONS", "/api/v1/namespaces/a/pods", "405"),
        ("GET PUT PATCH DELETE", named, "pods"),
        ("POST HEAD", named, "405"),
        ("GET", "/api/v1/pods", "pods"),
        ("GET", "/api/v1/namespaces//pods/", "pods"),
        ("POST DELETE", "/api/v1/pods", "405"),
        ("GET PUT", "/api/v1/pods/b", "404"),
        ("GET", "/api/v1/namespaces/a/nodes", "404"),
        ("GET", "/api/v1/namespaces/a", "namespaces"),
        (
            "GET PUT PATCH",
            "/api/v1/namespaces/a/status",
            "namespaces/status",
        ),
        (
            "PUT",
            "/api/v1/namespaces/a/finalize",
            "namespaces/finalize",
        ),
        ("GET", "/api/v1/namespaces/a/finalize", "405"),
        ("DELETE", "/api/v1/namespaces", "405"),
        ("GET", "/api/v1/namespaces/a/namespaces/b", "404"),
        ("POST", "/api/v1/namespaces/a/bindings", "bindings"),
        ("GET", "/api/v1/namespaces/a/bindings", "405"),
        ("POST GET", "/api/v1/bindings", "404"),
        ("GET", "/api/v1/namespaces/a/bindings/b", "404"),
        (
            "GET",
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            "405",
        ),
        (
            "GET",
            "/apis/authorization.k8s.io/v1/subjectaccessreviews/a",
            "404",
        ),
    ] {
        for method in methods.split(' ') {
            let found = answer(method, path, "application/merge-patch+json");
            assert_eq!(found, expected, "{method} {path}");
        }
    }
}

#[test]
fn subresources_and_watches_have_theirs() {
    let named = "/api/v1/namespaces/a/pods/b";
    for (methods, path, expected) in [
        ("GET PUT PATCH", "/status", "pods/status"),
        ("POST DELETE", "/status", "405"),
        ("GET", "/status/more", "404"),
        ("GET", "/nothing", "404"),
        ("GET", "/log", "pods/log"),
        ("POST HEAD", "/log", "405"),
        ("GET", "/log/more", "404"),
        ("GET POST", "/exec", "pods/exec"),
        ("PUT", "/exec", "405"),
        ("POST", "/eviction", "pods/eviction"),
        ("GET", "/eviction", "405"),
        (
            "GET POST PUT PATCH DELETE HEAD OPTIONS",
            "/proxy",
            "pods/proxy",
        ),
        ("GET OPTIONS", "/proxy/and/more", "pods/proxy"),
    ] {
        for method in methods.split(' ') {
            let found = answer(
                method,
                &format!("{named}{path}"),
                "application/merge-patch+json",
            );
            assert_eq!(found, expected, "{method} {path}");
        }
    }
    for (method, path, expected) in [
        ("GET", "/api/v1/watch/pods", "pods"),
        ("GET", "/api/v1/watch/namespaces/a/pods/b", "pods"),
        ("POST", "/api/v1/watch/pods", "405"),
        ("GET", "/api/v1/watch/pods/b", "404"),
        ("GET", "/api/v1/watch/namespaces/a/pods/b/status", "404"),
        ("GET", "/api/v1/watch/componentstatuses", "404"),
    ] {
        assert_eq!(answer(method, path, ""), expected, "{method} {path}");
    }
}

#[test]
fn patches_are_of_a_kind() {
    let path = "/api/v1/namespaces/a/pods/b";
    for (kind, expected) in [
        ("application/json-patch+json", "pods"),
        ("application/merge-patch+json; charset=utf-8", "pods"),
        ("text/plain, application/apply-patch+yaml", "pods"),
        ("application/json", "415"),
        ("application/apply-patch+cbor", "415"),
        ("", "415"),
    ] {
        assert_eq!(answer("PATCH", path, kind), expected, "{kind}");
    }
    assert_eq!(answer("PATCH", "/api/v1/namespaces/a/pods", "x"), "405");
    let proxied = format!("{path}/proxy");
    assert_eq!(answer("PATCH", &proxied, "text/plain"), "pods/proxy");
}

#[test]
fn a_path_without_its_group_is_no_path_of_the_core_group() {
    for (method, path) in [
        ("GET", "/apis//v1/nodes"),
        ("PUT", "/apis//v1/nodes/status"),
        ("PUT", "/apis//v1/namespaces/finalize"),
        ("GET", "/apis//v1/namespaces/a/pods/b"),
    ] {
        assert_eq!(answer(method, path, ""), "404", "{method} {path}");
        let info = RequestInfo::parse(&method.parse().unwrap(), &path.parse().unwrap());
        assert!(!has_group(&Kinds::default(), &info), "{path}");
    }
}
