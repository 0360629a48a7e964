//! What pods are let do, as text.

use super::*;
use crate::network::policy::decode;
use crate::network::policy::labels::Labels;
use expect_test::{Expect, expect};
use std::collections::BTreeMap;
use std::fmt::Write;

fn pod(labels: &[(&str, &str)]) -> Pod {
    let ports = [
        ("http", "TCP", 8080),
        ("http", "UDP", 8081),
        ("dns", "UDP", 53),
    ];
    let ports = ports.map(
        |(name, protocol, port)| coracle_api::policy_feed::NamedPort {
            name: name.to_owned(),
            protocol: protocol.to_owned(),
            port,
        },
    );
    Pod {
        labels: Labels::of(labels.iter().copied()),
        ports: decode::named_ports(&ports),
        ..Pod::default()
    }
}

fn show(content: Option<Content>) -> String {
    let Some(content) = content else {
        return "not isolated\n".to_owned();
    };
    let mut text = String::new();
    for allow in &content.allows {
        write!(text, "{}:", allow.policy).unwrap();
        match &allow.who {
            Who::Everyone => text.push_str(" everyone"),
            Who::Pods(group) => {
                write!(text, " {} kinds of pods", group.peers.len()).unwrap();
                if let Some((protocol, name)) = &group.port {
                    write!(text, " at {} {name}", protocol.lower()).unwrap();
                }
            }
            Who::Blocks(blocks) => {
                for block in blocks.iter() {
                    write!(text, " {}-{}", block.first, block.last).unwrap();
                }
            }
        }
        for span in &allow.spans {
            write!(
                text,
                " {} {}-{}",
                span.protocol.lower(),
                span.first,
                span.last
            )
            .unwrap();
        }
        text.push('\n');
    }
    text.push_str("else dropped\n");
    text
}

fn check(specs: &[(&str, &str)], direction: Direction, expected: &Expect) {
    let specs = specs.iter();
    let policies: BTreeMap<Key, Policy> = specs
        .map(|(name, spec)| {
            let spec = serde_yaml_ng::from_str(spec).unwrap();
            let policy = decode::policy("shop", spec).unwrap();
            (format!("shop/{name}").into(), policy)
        })
        .collect();
    let pod = pod(&[("app", "web")]);
    let content = plan(policies.iter(), &pod, direction);
    expected.assert_eq(&show(content));
}

#[test]
fn a_policy_isolates_what_it_selects_in_its_directions() {
    let deny = [("deny", "podSelector: {}")];
    check(&deny, Direction::Ingress, &expect![["else dropped\n"]]);
    check(&deny, Direction::Egress, &expect![["not isolated\n"]]);
    let other = [("deny", "podSelector: { matchLabels: { app: db } }")];
    check(&other, Direction::Ingress, &expect![["not isolated\n"]]);
    check(&[], Direction::Ingress, &expect![["not isolated\n"]]);
    // Rules of a direction that the policy is not of are not looked at.
    let egress = [(
        "out",
        "{ podSelector: {}, policyTypes: [Egress], ingress: [{}], egress: [{}] }",
    )];
    check(&egress, Direction::Ingress, &expect![["not isolated\n"]]);
    check(
        &egress,
        Direction::Egress,
        &expect![["shop/out: everyone\nelse dropped\n"]],
    );
    // As the server defaults them.
    let both = [("both", "{ podSelector: {}, egress: [{}] }")];
    check(&both, Direction::Ingress, &expect![["else dropped\n"]]);
    check(
        &both,
        Direction::Egress,
        &expect![["shop/both: everyone\nelse dropped\n"]],
    );
}

#[test]
fn ports_are_ranges_that_do_not_touch() {
    let spec = "
podSelector: {}
ingress:
- ports:
  - { port: 80 }
  - { port: 81, endPort: 90 }
  - { port: 85, endPort: 100, protocol: TCP }
  - { port: 200 }
  - { protocol: SCTP }
  - { port: 65535, protocol: UDP }
  - { port: 65000, endPort: 65535, protocol: UDP }
";
    check(
        &[("a", spec)],
        Direction::Ingress,
        &expect![[r#"
            shop/a: everyone tcp 80-100 tcp 200-200 udp 65000-65535 sctp 0-65535
            else dropped
        "#]],
    );
}

#[test]
fn names_of_ports_are_those_of_the_pod_that_is_connected_to() {
    let spec = "
podSelector: {}
policyTypes: [Ingress, Egress]
ingress:
- ports: [{ port: http }, { port: dns, protocol: UDP }]
- ports: [{ port: metrics }]
egress:
- ports: [{ port: http }, { port: 53, protocol: UDP }]
- to: [{ podSelector: {} }, { ipBlock: { cidr: 10.0.0.0/8 } }]
  ports: [{ port: http, protocol: UDP }]
";
    check(
        &[("a", spec)],
        Direction::Ingress,
        &expect![[r#"
            shop/a: everyone tcp 8080-8080 udp 53-53
            else dropped
        "#]],
    );
    check(
        &[("a", spec)],
        Direction::Egress,
        &expect![[r#"
            shop/a: everyone udp 53-53
            shop/a: 1 kinds of pods at udp http
            shop/a: 1 kinds of pods at tcp http
            else dropped
        "#]],
    );
}

#[test]
fn an_address_that_one_block_excepts_and_another_has_passes() {
    let spec = "
podSelector: {}
ingress:
- from:
  - ipBlock: { cidr: 10.0.0.0/24, except: [10.0.0.0/28, 10.0.0.64/26] }
  - ipBlock: { cidr: 10.0.0.1/32 }
  - ipBlock: { cidr: 'fd00::/64', except: ['fd00::8/125'] }
  - podSelector: {}
    namespaceSelector: {}
  - podSelector: { matchLabels: { app: db } }
- from:
  - ipBlock: { cidr: 10.1.0.0/16, except: [10.1.0.0/16] }
";
    check(
        &[("a", spec)],
        Direction::Ingress,
        &expect![[r#"
            shop/a: 2 kinds of pods
            shop/a: 10.0.0.1-10.0.0.1 10.0.0.16-10.0.0.63 10.0.0.128-10.0.0.255 fd00::-fd00::7 fd00::10-fd00::ffff:ffff:ffff:ffff
            else dropped
        "#]],
    );
}

#[test]
fn what_several_policies_let_pass_adds_up() {
    let web =
        "{ podSelector: { matchLabels: { app: web } }, ingress: [{ ports: [{ port: 80 }] }] }";
    let all =
        "{ podSelector: {}, ingress: [{ ports: [{ port: 81 }] }, { ports: [{ port: 81 }] }] }";
    let other = "{ podSelector: { matchExpressions: [{ key: app, operator: DoesNotExist }] }, ingress: [{}] }";
    check(
        &[("web", web), ("all", all), ("other", other)],
        Direction::Ingress,
        &expect![[r#"
            shop/all: everyone tcp 81-81
            shop/web: everyone tcp 80-80
            else dropped
        "#]],
    );
}
