//! Validation, warnings and printed cells of an Ingress.

use crate::kinds::testing::{check_errors, check_row, object, resource, update_errors};
use crate::resource::Part;
use expect_test::expect;
use serde_json::{Value, json};

fn front(spec: Value) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": { "name": "front", "creationTimestamp": "1970-01-01T00:00:00Z" },
        "spec": spec,
    })
}

fn rule(host: &str, kind: &str, path: &str) -> Value {
    json!({ "host": host, "http": { "paths": [{
        "path": path, "pathType": kind,
        "backend": { "service": { "name": "web", "port": { "number": 80 } } },
    }] } })
}

#[test]
fn hosts_paths_and_backends() {
    check_errors(
        "ingresses",
        front(json!({})),
        expect!["spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"],
    );
    let rules = json!([
        rule("*.example.com", "Prefix", "/a//b/../c"),
        rule("a.*.b", "Exact", "x"),
        rule("10.0.0.1", "Some", "/"),
        { "http": { "paths": [] } },
    ]);
    check_errors(
        "ingresses",
        front(json!({ "rules": rules })),
        expect![[r#"
        spec.rules[0].http.paths[0].path: Invalid value: "/a//b/../c": must not contain '//'
        spec.rules[0].http.paths[0].path: Invalid value: "/a//b/../c": must not contain '/../'
        spec.rules[1].host: Invalid value: "a.*.b": a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        spec.rules[1].http.paths[0].path: Invalid value: "x": must be an absolute path
        spec.rules[2].host: Invalid value: "10.0.0.1": must be a DNS name, not an IP address
        spec.rules[2].http.paths[0].pathType: Unsupported value: "Some": supported values: "Exact", "ImplementationSpecific", "Prefix"
        spec.rules[3].http.paths: Required value"#]],
    );
    for (backend, expected) in [
        (
            json!({}),
            expect![[
                r#"spec.defaultBackend: Invalid value: "": resource or service backend is required"#
            ]],
        ),
        (
            json!({ "resource": { "kind": "a/b" } }),
            expect![[r#"
            spec.defaultBackend.resource.kind: Invalid value: "a/b": may not contain '/'
            spec.defaultBackend.resource.name: Required value"#]],
        ),
        (
            json!({ "service": { "name": "Web", "port": { "name": "a--b" } } }),
            expect![[r#"
                spec.defaultBackend.service.name: Invalid value: "Web": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
                spec.defaultBackend.service.port.name: Invalid value: "a--b": must not contain consecutive hyphens"#]],
        ),
        (
            json!({ "service": { "name": "web", "port": {} } }),
            expect!["spec.defaultBackend: Required value: port name or number is required"],
        ),
    ] {
        let spec = json!({ "defaultBackend": backend });
        check_errors("ingresses", front(spec), expected);
    }
}

#[test]
fn classes_and_secrets() {
    let mut bad = front(json!({
        "rules": [rule("a.b", "Prefix", "/")], "ingressClassName": "Nginx",
        "tls": [{ "hosts": ["*", "a.b"], "secretName": "S" }],
    }));
    bad["metadata"]["annotations"] = json!({ "kubernetes.io/ingress.class": "other" });
    check_errors(
        "ingresses",
        bad.clone(),
        expect![[r#"
        spec.tls[0].hosts[0]: Invalid value: "*": a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        spec.tls[0].secretName: Invalid value: "S": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        spec.ingressClassName: Invalid value: "Nginx": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        annotations.kubernetes.io/ingress.class: Invalid value: "other": must match `ingressClassName` when both are specified"#]],
    );
    bad["spec"]["ingressClassName"] = Value::Null;
    let warnings = resource("ingresses").rules.warnings(&object(bad));
    assert_eq!(warnings.len(), 1, "{warnings:?}");
}

#[test]
fn addresses_of_a_balancer() {
    let with = |ingress: Value| {
        let mut front = front(json!({}));
        front["status"] = json!({ "loadBalancer": { "ingress": ingress } });
        front
    };
    let new = with(json!([{ "ip": "010.0.0.1" }, { "hostname": "10.0.0.1" }, { "hostname": "X" }]));
    let old = with(json!([]));
    update_errors(
        "ingresses",
        new,
        old,
        Part::Status,
        expect![[r#"
        status.loadBalancer.ingress[0].ip: Invalid value: "010.0.0.1": must not have leading 0s
        status.loadBalancer.ingress[1].hostname: Invalid value: "10.0.0.1": must be a DNS name, not an IP address
        status.loadBalancer.ingress[2].hostname: Invalid value: "X": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#]],
    );
    let mut front = with(json!([{ "ip": "10.0.0.2" }, { "hostname": "a.b" }]));
    let rules = ["a.b", "c.d", "e.f", "g.h"].map(|host| rule(host, "Prefix", "/"));
    front["spec"] = json!({ "ingressClassName": "nginx", "tls": [{}], "rules": rules });
    check_row(
        "ingresses",
        front,
        200,
        expect![[r#"
        Name: front
        Class: nginx
        Hosts: a.b,c.d,e.f + 1 more...
        Address: 10.0.0.2,a.b
        Ports: 80, 443
        Age: 3m20s"#]],
    );
}

#[test]
fn the_old_annotation_is_warned_of_once() {
    let mut asked = front(json!({}));
    asked["metadata"]["annotations"] = json!({ "kubernetes.io/ingress.class": "a" });
    let ingress = object(asked);
    let rules = resource("ingresses").rules;
    assert_eq!(rules.warnings(&ingress).len(), 1);
    assert!(rules.warnings_on_update(&ingress, &ingress).is_empty());
}
