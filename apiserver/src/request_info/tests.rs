//! Paths and methods are read as upstream reads them.

use super::*;
use expect_test::expect;

/// `verb group/version resource/subresource namespace name`, or `verb path`.
fn show(text: &str) -> String {
    let (method, uri) = text.split_once(' ').unwrap();
    let info = RequestInfo::parse(&method.parse().unwrap(), &uri.parse().unwrap());
    if !info.is_resource_request {
        return format!("{} {}", info.verb, info.path);
    }
    format!(
        "{} {}/{} {}/{} ns={} name={} fields={} labels={}",
        info.verb,
        info.group,
        info.version,
        info.resource,
        info.subresource,
        info.namespace,
        info.name,
        info.field_selector,
        info.label_selector
    )
}

#[test]
fn paths_are_read_as_upstream_reads_them() {
    let asked = [
        "GET /api/v1/namespaces/web/pods",
        "GET /api/v1/namespaces/web/pods?watch=true&labelSelector=a%3Db",
        "GET /api/v1/pods?fieldSelector=metadata.name%3Dp,status.phase%3DRunning",
        "GET /api/v1/namespaces/web/pods/p",
        "GET /api/v1/namespaces/web/pods/p/log?follow=true",
        "HEAD /api/v1/nodes/n1",
        "POST /api/v1/namespaces/web/pods/p/binding",
        "DELETE /api/v1/namespaces/web/pods",
        "DELETE /api/v1/namespaces/web/pods/p",
        "PATCH /apis/apps/v1/namespaces/web/deployments/d/scale",
        "PUT /api/v1/namespaces/web",
        "PUT /api/v1/namespaces/web/finalize",
        "GET /api/v1/namespaces",
        "POST /api/v1/namespaces",
        "GET /api/v1/watch/namespaces/web/pods/p",
        "GET /apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode",
    ];
    let lines: Vec<String> = asked.iter().map(|text| show(text)).collect();
    expect![[r#"
        list /v1 pods/ ns=web name= fields= labels=
        watch /v1 pods/ ns=web name= fields= labels=a=b
        list /v1 pods/ ns= name=p fields=metadata.name=p,status.phase=Running labels=
        get /v1 pods/ ns=web name=p fields= labels=
        get /v1 pods/log ns=web name=p fields= labels=
        get /v1 nodes/ ns= name=n1 fields= labels=
        create /v1 pods/binding ns=web name=p fields= labels=
        deletecollection /v1 pods/ ns=web name= fields= labels=
        delete /v1 pods/ ns=web name=p fields= labels=
        patch apps/v1 deployments/scale ns=web name=d fields= labels=
        update /v1 namespaces/ ns=web name=web fields= labels=
        update /v1 namespaces/finalize ns=web name=web fields= labels=
        list /v1 namespaces/ ns= name= fields= labels=
        create /v1 namespaces/ ns= name= fields= labels=
        watch /v1 pods/ ns=web name=p fields= labels=
        get rbac.authorization.k8s.io/v1 clusterroles/ ns= name=system:node fields= labels="#]]
    .assert_eq(&lines.join("\n"));
}

#[test]
fn what_names_no_resource_is_a_path() {
    for text in [
        "/",
        "/api",
        "/api/",
        "/api/v1",
        "/apis",
        "/apis/apps",
        "/apis/apps/v1",
        "/healthz",
        "/openapi/v3/apis/apps/v1",
        "/coracle/v1/nodes/n1/tunnel",
    ] {
        assert_eq!(show(&format!("GET {text}")), format!("get {text}"));
    }
}
