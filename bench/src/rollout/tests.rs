use super::*;

#[test]
fn writes_are_counted_by_verb_and_resource() {
    let metrics = r#"# HELP apiserver_request_total Counter
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="status",verb="PATCH",version="v1"} 3
apiserver_request_total{code="409",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="status",verb="PATCH",version="v1"} 1
apiserver_request_total{code="201",component="apiserver",dry_run="",group="apps",resource="deployments",scope="resource",subresource="",verb="POST",version="v1"} 2
apiserver_request_total{code="200",component="apiserver",dry_run="",group="apps",resource="deployments",scope="namespace",subresource="",verb="LIST",version="v1"} 9
apiserver_request_total{code="200",component="apiserver",dry_run="",group="coordination.k8s.io",resource="leases",scope="resource",subresource="",verb="PUT",version="v1"} 9
"#;
    let expected = [("PATCH pods/status", 4), ("POST deployments", 2)];
    let expected = expected.map(|(what, count)| (what.to_owned(), count));
    assert_eq!(count_writes(metrics), BTreeMap::from(expected));
}
