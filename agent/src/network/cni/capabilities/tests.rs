//! What plugins are told of a pod.

use super::{Resolvers, arguments, offered, taken};
use crate::network::cni::configuration::Plugin;
use crate::runtime::{HostPort, SandboxConfig, SandboxId};
use expect_test::expect;
use serde_json::{Value, json};

fn plugin(value: Value) -> Plugin {
    serde_json::from_value(value).unwrap()
}

fn annotated(name: &str, value: &str) -> SandboxConfig {
    SandboxConfig {
        annotations: [(name.to_owned(), value.to_owned())].into(),
        ..SandboxConfig::default()
    }
}

#[test]
fn arguments_are_those_of_containerd() {
    let config = SandboxConfig {
        pod_name: "web".into(),
        pod_namespace: "shop".into(),
        pod_uid: "u1".into(),
        ..SandboxConfig::default()
    };
    assert_eq!(
        arguments(&SandboxId("abc".into()), &config),
        "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web;K8S_POD_INFRA_CONTAINER_ID=abc;\
         K8S_POD_UID=u1"
    );
}

/// With ports, a bound and an address.
fn busy() -> SandboxConfig {
    let port = |protocol: &str, host_ip: &str| HostPort {
        protocol: protocol.into(),
        container_port: 80,
        host_port: 8080,
        host_ip: host_ip.into(),
    };
    SandboxConfig {
        ports: vec![port("", ""), port("UDP", "127.0.0.1")],
        annotations: [
            ("kubernetes.io/ingress-bandwidth", "8M"),
            ("cni.coracle/mac", "02:00:00:00:00:aF"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into(),
        ..SandboxConfig::default()
    }
}

#[test]
fn a_plugin_gets_what_it_can_do_with() {
    let config = busy();
    let resolvers = Resolvers {
        servers: vec!["10.43.0.10".into()],
        searches: vec!["svc.cluster.local".into()],
        options: vec!["ndots:5".into()],
    };
    let cidrs = ["10.42.0.0/24".to_owned(), "fd42::/64".to_owned()];
    let all = offered(&config, &resolvers, &cidrs).unwrap();
    let most = ["portMappings", "bandwidth", "ipRanges", "dns", "mac"];
    let declared: Value = most.map(|name| (name, true)).into_iter().collect();
    let got = taken(
        &plugin(json!({"type": "a", "capabilities": declared})),
        &all,
    );
    expect![[r#"
        {
          "bandwidth": {
            "ingressBurst": 4294967295,
            "ingressRate": 8000000
          },
          "dns": {
            "options": [
              "ndots:5"
            ],
            "searches": [
              "svc.cluster.local"
            ],
            "servers": [
              "10.43.0.10"
            ]
          },
          "ipRanges": [
            [
              {
                "subnet": "10.42.0.0/24"
              }
            ],
            [
              {
                "subnet": "fd42::/64"
              }
            ]
          ],
          "mac": "02:00:00:00:00:aF",
          "portMappings": [
            {
              "containerPort": 80,
              "hostPort": 8080,
              "protocol": "tcp"
            },
            {
              "containerPort": 80,
              "hostIP": "127.0.0.1",
              "hostPort": 8080,
              "protocol": "udp"
            }
          ]
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&Value::from(got)).unwrap());
}

#[test]
fn annotations_are_given_whole() {
    let all = offered(&busy(), &Resolvers::default(), &[]).unwrap();
    let annotations = json!({"type": "a", "capabilities": {
        "io.kubernetes.cri.pod-annotations": true, "mac": false, "unknown": true}});
    let got = taken(&plugin(annotations), &all);
    assert_eq!(got.len(), 1);
    let of_pod = &got["io.kubernetes.cri.pod-annotations"];
    assert_eq!(of_pod["kubernetes.io/ingress-bandwidth"], "8M");
    assert!(taken(&plugin(json!({"type": "a"})), &all).is_empty());
}

#[test]
fn nothing_is_offered_that_nobody_asked_for() {
    let all = offered(&SandboxConfig::default(), &Resolvers::default(), &[]).unwrap();
    let names: Vec<_> = all.keys().collect();
    assert_eq!(names, ["io.kubernetes.cri.pod-annotations"]);
}

#[test]
fn annotations_that_mean_nothing_are_refused() {
    for mac in [
        "",
        "02:00:00:00:00",
        "02:00:00:00:00:00:00",
        "02:00:00:00:00:0g",
        "2:0:0:0:0:0",
    ] {
        let config = annotated("cni.coracle/mac", mac);
        let error = offered(&config, &Resolvers::default(), &[]).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("the annotation cni.coracle/mac is no hardware address: {mac:?}")
        );
    }
    let config = annotated("kubernetes.io/egress-bandwidth", "1");
    let error = offered(&config, &Resolvers::default(), &[]).unwrap_err();
    assert_eq!(
        crate::error::chain(&error),
        "failed to get bandwidth info from annotations: the annotation \
         kubernetes.io/egress-bandwidth is unreasonably small (< 1kbit): \"1\""
    );
}
