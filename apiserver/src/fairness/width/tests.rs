//! Widths of all sorts of requests.

use super::*;
use http::{Method, Uri};

fn width(method: Method, path: &str, objects: usize, watchers: usize, most: u32) -> Width {
    let uri: Uri = path.parse().unwrap();
    let info = RequestInfo::parse(&method, &uri);
    let query = Query::parse(uri.query().unwrap_or(""));
    estimate(&info, &query, most, || objects, || watchers)
}

fn seats(path: &str, objects: usize) -> u32 {
    width(Method::GET, path, objects, 0, u32::MAX).initial
}

#[test]
fn a_list_is_as_wide_as_it_is_long() {
    assert_eq!(seats("/api/v1/pods", 0), 1);
    assert_eq!(seats("/api/v1/pods", 100), 1);
    assert_eq!(seats("/api/v1/pods", 101), 2);
    assert_eq!(seats("/api/v1/pods", 100_000), 10);
    assert_eq!(seats("/api/v1/pods?limit=200", 100_000), 2);
    assert_eq!(seats("/api/v1/pods?limit=200&labelSelector=a", 100_000), 10);
    assert_eq!(seats("/api/v1/namespaces/a/pods/p", 100_000), 1);
    let one = "/api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Dp";
    assert_eq!(seats(one, 100_000), 1);
    assert_eq!(width(Method::GET, "/api/v1/pods", 100_000, 0, 4).initial, 4);
}

#[test]
fn a_watch_is_wide_when_it_begins_with_what_is_there() {
    assert_eq!(seats("/api/v1/pods?watch=1", 500), 5);
    assert_eq!(seats("/api/v1/pods?watch=1&resourceVersion=0", 500), 5);
    assert_eq!(seats("/api/v1/pods?watch=1&resourceVersion=7", 500), 1);
    let with = "/api/v1/pods?watch=1&resourceVersion=7&sendInitialEvents=true";
    assert_eq!(seats(with, 500), 5);
}

#[test]
fn a_write_lasts_when_many_hear_of_it() {
    let write =
        |watchers, most| width(Method::POST, "/api/v1/namespaces/a/pods", 0, watchers, most);
    assert_eq!(write(9, 10), Width::ONE);
    let ten = write(10, 10);
    assert_eq!((ten.initial, ten.lasting, ten.lingering), (1, 1, TELLING));
    let many = write(200, 4);
    assert_eq!((many.max(), many.lingering), (4, TELLING * 5));
    let token = "/api/v1/namespaces/a/serviceaccounts/s/token";
    assert_eq!(width(Method::POST, token, 0, 500, 10), Width::ONE);
    assert_eq!(width(Method::GET, "/healthz", 9999, 9999, 10), Width::ONE);
}
