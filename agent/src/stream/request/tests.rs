//! Paths and queries.

use super::{Metrics, Query, Route, route};

#[test]
fn routes_are_the_kubelets() {
    let of = |path: &str| route(&path.parse().unwrap());
    assert_eq!(of("/healthz"), Some(Route::Health(String::new())));
    assert_eq!(of("/healthz/ping"), Some(Route::Health("ping".into())));
    assert_eq!(of("/runningpods/"), Some(Route::RunningPods));
    assert_eq!(
        of("/metrics/cadvisor"),
        Some(Route::Metrics(Metrics::Cadvisor))
    );
    assert_eq!(of("/logs/"), Some(Route::NodeLogs(String::new())));
    assert_eq!(
        of("/logs/apt/x%20y"),
        Some(Route::NodeLogs("apt/x y".into()))
    );
    assert_eq!(of("/spec/"), None);
    let Some(Route::Logs { pod, container, .. }) = of("http://node/containerLogs/a/b%2Dc/d?x=1")
    else {
        panic!("no logs");
    };
    assert_eq!((pod.as_str(), container.as_str()), ("b-c", "d"));
    let Some(Route::Exec(command)) = of("/exec/ns/pod/uid/c") else {
        panic!("no exec");
    };
    assert_eq!(command.uid, "uid");
    assert_eq!(of("/exec/ns"), None);
    let forward = |uid: &str| Route::PortForward {
        namespace: "ns".into(),
        pod: "pod".into(),
        uid: uid.into(),
    };
    assert_eq!(of("/portForward/ns/pod?port=80"), Some(forward("")));
    assert_eq!(of("/portForward/ns/pod/u1"), Some(forward("u1")));
}

/// Rights are asked for by how a path begins.
#[test]
fn a_disguised_path_leads_nowhere() {
    for path in [
        "//exec/ns/p/c",
        "///attach/ns/p/c",
        "/%65xec/ns/p/c",
        "/%70ortForward/ns/p",
        "/./run/ns/p/c",
        "/x/../exec/ns/p/c",
        "/exec%2Fns/p/c",
    ] {
        assert_eq!(route(&path.parse().unwrap()), None, "{path}");
    }
}

#[test]
fn queries_are_decoded() {
    let uri = "/x?command=sh&command=-c&command=echo+a%26b%25&stdin=true&tty=0&tailLines=5&n=x";
    let query = Query::parse(&uri.parse().unwrap());
    assert_eq!(query.all("command"), ["sh", "-c", "echo a&b%"]);
    assert!(query.flag("stdin") && !query.flag("tty") && !query.flag("stdout"));
    assert_eq!(query.number("tailLines"), Ok(Some(5)));
    assert!(query.number("n").is_err());
}
