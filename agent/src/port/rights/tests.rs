//! Rights by path and method.

use super::*;

#[test]
fn a_path_asks_for_its_own_right() {
    for (path, rights) in [
        ("/metrics", &["metrics"][..]),
        ("/metrics/cadvisor", &["metrics"]),
        ("/metricsx", &["proxy"]),
        ("/stats/summary", &["stats"]),
        ("/pods", &["pods", "proxy"]),
        ("/runningpods/", &["pods", "proxy"]),
        ("/healthz/ping", &["healthz", "proxy"]),
        ("/containerLogs/a/b/c", &["proxy"]),
        ("//metrics", &["proxy"]),
        ("/", &["proxy"]),
    ] {
        let right = Right::of(&Method::GET, path);
        assert_eq!((right.verb, right.subresources), ("get", rights), "{path}");
    }
    assert_eq!(Right::of(&Method::HEAD, "/pods").verb, "");
}

#[test]
fn who_may_only_read_runs_nothing() {
    for path in [
        "/exec/a/b/c",
        "/attach/a/b/c",
        "/portForward/a/b",
        "/run/a/b/c",
    ] {
        for method in [Method::GET, Method::POST] {
            assert_eq!(Right::of(&method, path).verb, "create", "{path}");
        }
    }
}
