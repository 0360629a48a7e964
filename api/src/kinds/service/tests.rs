//! Defaults, printed cells and validation of a Service.

use crate::kinds::testing::{
    check_errors, check_row, check_spec, defaulted, resource, update_errors,
};
use crate::resource::Part;
use expect_test::expect;
use serde_json::{Value, json};

fn web() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": "web", "namespace": "shop" },
        "spec": { "selector": { "app": "web" }, "ports": [{ "port": 80 }] },
    })
}

fn allocated() -> Value {
    let mut web = web();
    web["spec"]["type"] = "NodePort".into();
    web["spec"]["clusterIP"] = "10.43.0.9".into();
    web["spec"]["clusterIPs"] = json!(["10.43.0.9"]);
    web["spec"]["ipFamilies"] = json!(["IPv4"]);
    web["spec"]["ports"][0]["nodePort"] = 30080.into();
    web
}

#[test]
fn defaults_of_a_minimal_service() {
    check_spec(
        "services",
        web(),
        expect![[r#"
        internalTrafficPolicy: "Cluster"
        ports: [{"port":80,"protocol":"TCP","targetPort":80}]
        selector: {"app":"web"}
        sessionAffinity: "None"
        type: "ClusterIP""#]],
    );
}

#[test]
fn printed() {
    check_row(
        "services",
        allocated(),
        0,
        expect![[r#"
        Name: web
        Type: NodePort
        Cluster-IP: 10.43.0.9
        External-IP: <none>
        Port(s): 80:30080/TCP
        Age: <unknown>
        Selector: app=web"#]],
    );
}

#[test]
fn ports_have_names_and_do_not_clash() {
    let mut bad = web();
    bad["spec"]["ports"] = json!([
        { "port": 80, "name": "web", "nodePort": 30000 },
        { "port": 80, "name": "web", "targetPort": "Upper" },
        { "port": 0, "protocol": "ICMP" },
    ]);
    check_errors(
        "services",
        bad,
        expect![[r#"
            spec.ports[1].name: Duplicate value: "web"
            spec.ports[1].targetPort: Invalid value: "Upper": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)
            spec.ports[2].name: Required value
            spec.ports[2].port: Invalid value: 0: must be between 1 and 65535, inclusive
            spec.ports[2].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"
            spec.ports[2].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive
            spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'
            spec.ports[1]: Duplicate value: {"Name":"","Protocol":"TCP","AppProtocol":null,"Port":80,"TargetPort":0,"NodePort":0}"#]],
    );
}

#[test]
fn types_and_their_fields() {
    let mut bad = web();
    bad["spec"] = json!({
        "type": "ExternalName", "externalName": "-", "clusterIP": "1.2.3", "ports": [],
        "sessionAffinity": "Sticky", "externalTrafficPolicy": "Local",
    });
    check_errors(
        "services",
        bad,
        expect![[r#"
        spec.clusterIPs: Forbidden: may not be set for ExternalName services
        spec.externalName: Invalid value: "-": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        spec.sessionAffinity: Unsupported value: "Sticky": supported values: "ClientIP", "None"
        spec.externalTrafficPolicy: Invalid value: "Local": may only be set for externally-accessible services"#]],
    );
    let mut bad = web();
    bad["spec"]["type"] = "Balancer".into();
    bad["spec"]["clusterIP"] = "10.43.0.300".into();
    bad["spec"]["ipFamilies"] = json!(["IPv5"]);
    bad["spec"]["loadBalancerClass"] = "x".into();
    check_errors(
        "services",
        bad,
        expect![[r#"
        spec.ipFamilies[0]: Unsupported value: "IPv5": supported values: "IPv4", "IPv6"
        spec.clusterIPs[0]: Invalid value: "10.43.0.300": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)
        spec.type: Unsupported value: "Balancer": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"
        spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'"#]],
    );
}

#[test]
fn an_update_keeps_what_was_allocated() {
    let rules = resource("services").rules;
    let old = defaulted("services", allocated());
    let mut asked = web();
    asked["spec"]["type"] = "NodePort".into();
    let mut new = defaulted("services", asked);
    rules.prepare_update(&mut new, &old, Part::Main);
    assert_eq!(
        new.get(&["spec", "clusterIPs"]),
        old.get(&["spec", "clusterIPs"])
    );
    assert_eq!(new.get(&["spec", "ports"]), old.get(&["spec", "ports"]));
    // Back to a plain service: the node port goes.
    let mut plain = allocated();
    plain["spec"]["type"] = "ClusterIP".into();
    plain["spec"]["externalTrafficPolicy"] = "Cluster".into();
    let mut new = defaulted("services", plain);
    rules.prepare_update(&mut new, &old, Part::Main);
    assert!(rules.validate_update(&new, &old, Part::Main).is_empty());
    expect![[r#"{"clusterIP":"10.43.0.9","clusterIPs":["10.43.0.9"],"internalTrafficPolicy":"Cluster","ipFamilies":["IPv4"],"ports":[{"port":80,"protocol":"TCP","targetPort":80}],"selector":{"app":"web"},"sessionAffinity":"None","type":"ClusterIP"}"#]].assert_eq(&new.get(&["spec"]).unwrap().to_string());
}

#[test]
fn the_address_stays() {
    let mut new = allocated();
    new["spec"]["clusterIP"] = "10.43.0.10".into();
    update_errors(
        "services",
        new,
        allocated(),
        Part::Main,
        expect![[r#"spec.clusterIPs[0]: Invalid value: ["10.43.0.10"]: may not change once set"#]],
    );
}
