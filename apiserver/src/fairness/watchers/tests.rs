//! Who counts as a watcher of what.

use super::*;
use http::{Method, Uri};

fn ask(method: Method, path: &str) -> (RequestInfo, Query) {
    let uri: Uri = path.parse().unwrap();
    let query = Query::parse(uri.query().unwrap_or(""));
    (RequestInfo::parse(&method, &uri), query)
}

#[test]
fn watches_of_the_resource_the_namespace_and_the_object_are_counted() {
    let watchers = Arc::new(Watchers::default());
    let watch = |path: &str| {
        let (info, query) = ask(Method::GET, path);
        watchers.register(&info, &query)
    };
    let count = |path: &str| watchers.interested(&ask(Method::PUT, path).0);
    let all = watch("/api/v1/pods?watch=1");
    let _in_a = watch("/api/v1/namespaces/a/pods?watch=1");
    let _one = watch("/api/v1/namespaces/a/pods?watch=1&fieldSelector=metadata.name%3Dp");
    let _node = watch("/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Dn");
    assert_eq!(count("/api/v1/namespaces/a/pods/p"), 3);
    assert_eq!(count("/api/v1/namespaces/a/pods/q"), 2);
    assert_eq!(count("/api/v1/namespaces/b/pods/p"), 1);
    assert_eq!(count("/api/v1/namespaces/a/configmaps/p"), 0);
    drop(all);
    assert_eq!(count("/api/v1/namespaces/b/pods/p"), 0);
}
