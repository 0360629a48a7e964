//! Nodes whose pods have addresses of both IP families: two on one segment, one beyond a router that
//! is reached by IPv4 alone.

use crate::faults::token;
use crate::lab::{Cluster, Host, Lab, import, run};
use crate::pictures;
use crate::pod_network::{fetched, fetched_by_host, mirror};
use crate::workloads::IMAGE;

/// Says its name, and keeps what it was told of itself.
pub fn pod(name: &str, node: &str) -> String {
    let script = format!(
        "busybox mkdir /tmp/www; echo {name} > /tmp/www/name; echo $IPS > /tmp/www/ips; \
         exec httpd -f -p 8080 -h /tmp/www"
    );
    format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{ name: {name}, labels: {{ app: {name} }} }}
spec:
  nodeName: {node}
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: {IMAGE}
    command: ["sh", "-c", "{script}"]
    ports: [{{ containerPort: 8080, hostPort: 8088 }}]
    env: [{{ name: IPS, valueFrom: {{ fieldRef: {{ fieldPath: status.podIPs }} }} }}]
"#
    )
}

/// Of the machine's link to its segment.
pub fn add_address(namespace: &str, link: &str, address: &str) {
    let address = format!("{address}/64");
    let add = ["addr", "add", &address, "dev", link, "nodad"];
    run("ip", &[&["-n", namespace, "-6"], &add[..]].concat());
}

pub fn start_agent(
    lab: &mut Lab,
    server: &Cluster,
    host: &Host,
    name: &str,
    addresses: &str,
) -> usize {
    let url = format!("https://{}:6443", server.host.address);
    let data_dir = host.data_dir.display().to_string();
    let token = token(server);
    let arguments = [
        "agent",
        "--server",
        &url,
        "--token",
        &token,
        "--node-name",
        name,
        "--node-ip",
        addresses,
        "--data-dir",
        &data_dir,
    ];
    lab.spawn(host, &arguments)
}

/// In the order of the cluster's networks.
pub fn addresses(cluster: &Cluster, pod: &str) -> [String; 2] {
    cluster.wait_value(&["pod", pod], "{.status.phase}", "Running");
    let all = cluster.value(&["pod", pod], "{.status.podIPs[*].ip}");
    let (v4, v6) = all.split_once(' ').unwrap_or_else(|| panic!("{all:?}"));
    assert!(v4.starts_with("10.42.") && v6.starts_with("fd42:"), "{all}");
    let first = cluster.value(&["pod", pod], "{.status.podIP}");
    assert_eq!(first, v4);
    [v4.to_owned(), v6.to_owned()]
}

#[test]
fn pods_nodes_and_services_have_both_families() {
    let mut lab = Lab::new();
    let networks = [
        "--cluster-cidr",
        "10.42.0.0/16,fd42::/56",
        "--service-cidr",
        "10.43.0.0/16,fd43::/108",
    ];
    let server = lab.server("server", &networks);
    let hosts = vec![lab.host("one"), lab.host("two"), lab.far_host("three")];
    let (world, outside) = lab.outside();
    add_address(&outside, "hub", "fd99::fe");
    for (host, address) in hosts.iter().zip(["fd99::2", "fd99::3"]) {
        add_address(&host.namespace, "eth0", address);
        // Without any, a machine itself reaches no Service.
        let default = ["-6", "route", "add", "default", "via", "fd99::fe"];
        run("ip", &[&["-n", &host.namespace], &default[..]].concat());
    }
    // The third has no address of IPv6 but its pods'.
    let told = ["10.99.0.2,fd99::2", "10.99.0.3,fd99::3", "10.99.1.4"];
    let names = ["one", "two", "three"];
    let picture = pictures::busybox(&lab.path(""), IMAGE);
    for ((name, host), told) in names.iter().zip(&hosts).zip(told) {
        start_agent(&mut lab, &server, host, name, told);
    }
    for ((name, host), told) in names.iter().zip(&hosts).zip(told) {
        lab.wait_ready(&server, name);
        import(host, &picture);
        let path = "{.status.addresses[?(@.type==\"InternalIP\")].address}";
        assert_eq!(server.value(&["node", name], path), told.replace(',', " "));
        let networks = server.value(&["node", name], "{.spec.podCIDRs[*]}");
        assert_eq!(networks.split(' ').count(), 2, "{networks}");
    }
    let pods = [("a", "one"), ("b", "one"), ("c", "two"), ("d", "three")];
    for (name, node) in pods {
        // One port of a node is for one pod.
        let manifest = pod(name, node);
        server.apply(&match name {
            "b" => manifest.replace(", hostPort: 8088", ""),
            _ => manifest,
        });
    }
    let addresses = pods.map(|(name, _)| addresses(&server, name));
    for (from, _) in pods {
        for ((to, _), both) in pods.iter().zip(&addresses) {
            for address in both {
                let name = fetched(&server, from, &format!("{address}:8080/name"));
                assert_eq!(name, format!("{to}\n"), "{from} to {to} at {address}");
            }
        }
    }
    // What a pod is told of itself.
    let told = fetched(&server, "c", &format!("{}:8080/ips", addresses[0][0]));
    assert_eq!(told.trim(), addresses[0].join(","));
    let hosts_file = server.kubectl(&["exec", "a", "--", "cat", "/etc/hosts"]);
    for address in &addresses[0] {
        let line = format!("\n{address}\ta\n");
        assert!(hosts_file.contains(&line), "{hosts_file}");
    }
    // Nodes reach pods, pods and nodes a port of a node, and the world sees the node's address.
    for address in addresses.iter().flatten() {
        fetched_by_host(&hosts[0], &format!("{address}:8080/name"));
    }
    for two in ["10.99.0.3", "fd99::3"] {
        let page = format!("{two}:8088/name");
        assert_eq!(fetched_by_host(&hosts[0], &page), "c\n");
        for from in ["a", "c"] {
            assert_eq!(fetched(&server, from, &page), "c\n", "{from} by {two}");
        }
    }
    let port = mirror(&outside);
    for (to, seen) in [(world.as_str(), "10.99.0.2"), ("fd99::fe", "fd99::2")] {
        assert_eq!(fetched(&server, "a", &format!("{to}:{port}/")), seen);
    }
    a_service_has_an_address_of_each(&server, &hosts);
}

fn a_service_has_an_address_of_each(server: &Cluster, hosts: &[Host]) {
    server.apply(
        r"
apiVersion: v1
kind: Service
metadata: { name: web }
spec:
  ipFamilyPolicy: RequireDualStack
  selector: { app: d }
  ports: [{ name: http, port: 80, targetPort: 8080 }]
",
    );
    let all = server.value(&["service", "web"], "{.spec.clusterIPs[*]}");
    let (v4, v6) = all.split_once(' ').unwrap_or_else(|| panic!("{all:?}"));
    assert!(v4.starts_with("10.43.") && v6.starts_with("fd43:"), "{all}");
    for address in [v4, v6] {
        let page = format!("{address}:80/name");
        for from in ["a", "c", "d"] {
            assert_eq!(fetched(server, from, &page), "d\n", "{from} by {address}");
        }
        assert_eq!(fetched_by_host(&hosts[1], &page), "d\n");
    }
}
