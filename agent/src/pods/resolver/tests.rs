//! What a pod reads about resolvers, by its policy and its node's file.

use super::{MISSING_CLUSTER_DNS, Problem, of_pod};
use crate::dns::ClusterDns;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

const NODE: &str = "# a comment\nnameserver 192.168.1.1\nsearch lan. .\noptions ndots:2 rotate\n";

fn pod(spec: Value) -> Pod {
    let meta = json!({"name": "web-0", "namespace": "shop", "uid": "u1"});
    serde_json::from_value(json!({"metadata": meta, "spec": spec})).unwrap()
}

fn cluster() -> ClusterDns {
    ClusterDns {
        servers: vec!["10.43.0.10".parse().unwrap(), "fd43::a".parse().unwrap()],
        domain: "cluster.local".to_owned(),
    }
}

fn resolv_conf(pod: &Pod, node: &str, cluster: Option<&ClusterDns>) -> (String, Vec<Problem>) {
    let (resolvers, problems) = of_pod(pod, node, cluster);
    (resolvers.text(), problems)
}

fn text(spec: Value) -> String {
    let (text, problems) = resolv_conf(&pod(spec), NODE, Some(&cluster()));
    assert_eq!(problems, []);
    text
}

const OF_CLUSTER: &str = "nameserver 10.43.0.10\nnameserver fd43::a\nsearch shop.svc.cluster.local \
                          svc.cluster.local cluster.local lan\noptions ndots:5\n";
const OF_NODE: &str = "nameserver 192.168.1.1\nsearch lan\noptions ndots:2 rotate\n";

#[test]
fn the_policy_says_whose_resolver_it_is() {
    for (policy, is_host_network, expected) in [
        ("ClusterFirst", false, OF_CLUSTER),
        ("ClusterFirst", true, OF_NODE),
        ("ClusterFirstWithHostNet", true, OF_CLUSTER),
        ("Default", false, OF_NODE),
        ("None", false, ""),
    ] {
        let spec = json!({
            "containers": [], "dnsPolicy": policy, "hostNetwork": is_host_network,
        });
        assert_eq!(text(spec), expected, "{policy} {is_host_network}");
    }
}

#[test]
fn the_pods_own_settings_come_on_top() {
    let spec = json!({
        "containers": [], "dnsPolicy": "ClusterFirst",
        "dnsConfig": {
            "nameservers": ["10.43.0.10", "9.9.9.9"], "searches": ["svc.cluster.local", "x"],
            "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}],
        },
    });
    assert_eq!(
        text(spec),
        "nameserver 10.43.0.10\nnameserver fd43::a\nnameserver 9.9.9.9\nsearch \
         shop.svc.cluster.local svc.cluster.local cluster.local lan x\noptions ndots:2 edns0\n"
    );
    let spec = json!({
        "containers": [], "dnsPolicy": "None",
        "dnsConfig": {"nameservers": ["9.9.9.9"], "searches": ["x", "y"]},
    });
    assert_eq!(text(spec), "nameserver 9.9.9.9\nsearch x y\n");
}

#[test]
fn without_a_cluster_dns_it_is_the_nodes_and_events_tell() {
    let pod = pod(json!({"containers": [], "dnsPolicy": "ClusterFirst"}));
    let (text, problems) = resolv_conf(&pod, NODE, None);
    assert_eq!(text, OF_NODE);
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].reason, MISSING_CLUSTER_DNS);
    assert_eq!(
        problems[0].message,
        "pod: \"web-0_shop(u1)\". kubelet does not have ClusterDNS IP configured and cannot \
         create Pod using \"ClusterFirst\" policy. Falling back to \"Default\" policy."
    );
}

#[test]
fn what_resolvers_do_not_read_is_left_out_and_told() {
    let long = "l".repeat(254);
    let short = (0..40).map(|number| format!("s{number}"));
    let searches: Vec<String> = std::iter::once(long).chain(short).collect();
    let pod = pod(json!({
        "containers": [], "dnsPolicy": "None",
        "dnsConfig": {
            "nameservers": ["1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.4"],
            "searches": searches,
        },
    }));
    let (text, problems) = resolv_conf(&pod, "", None);
    assert_eq!(text.matches("nameserver").count(), 3);
    let line = text
        .lines()
        .find(|line| line.starts_with("search"))
        .unwrap();
    assert!(
        line.starts_with("search s0 s1 ") && line.ends_with(" s30"),
        "{line}"
    );
    assert_eq!(problems.len(), 2);
    assert!(problems[0].message.ends_with("is: 1.1.1.1 1.1.1.2 1.1.1.3"));
    assert!(problems[1].message.ends_with(" s30"));
    let wide: Vec<String> = (0..20)
        .map(|number| format!("{number}{}", "w".repeat(200)))
        .collect();
    let pod = super::tests::pod(json!({
        "containers": [], "dnsPolicy": "None",
        "dnsConfig": {"nameservers": ["1.1.1.1"], "searches": wide},
    }));
    let (text, _) = resolv_conf(&pod, "", None);
    let line = text
        .lines()
        .find(|line| line.starts_with("search"))
        .unwrap();
    assert!(line.len() <= 2048 + "search ".len());
}
