//! Pods reach each other wherever they are, and the world: on one node, across nodes of a segment,
//! across segments with a router between. Nothing is set by hand.

use crate::faults::{start_agent, token};
use crate::lab::{Cluster, Host, Lab, all_text, coracle, import, run, wait};
use crate::pictures;
use crate::workloads::IMAGE;
use nix::sched::{CloneFlags, setns};
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpListener;

/// Serves its name and a page that is longer than a packet.
pub fn pod(name: &str, node: &str, ports: &str) -> String {
    let script = format!(
        "busybox mkdir /tmp/www; echo {name} > /tmp/www/name; \
         busybox dd if=/dev/zero of=/tmp/www/page bs=1024 count=300 2>/dev/null; \
         exec httpd -f -p 8080 -h /tmp/www"
    );
    format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{ name: {name} }}
spec:
  nodeName: {node}
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: {IMAGE}
    command: ["sh", "-c", "{script}"]
    ports: [{ports}]
"#
    )
}

struct Trio {
    lab: Lab,
    server: Cluster,
    /// Two on the server's segment, one beyond the router.
    hosts: Vec<Host>,
    agents: Vec<usize>,
    token: String,
}

const NODES: [&str; 3] = ["one", "two", "three"];

fn trio() -> Trio {
    let mut lab = Lab::new();
    let server = lab.server("server", &[]);
    let token = token(&server);
    let hosts = vec![lab.host("one"), lab.host("two"), lab.far_host("three")];
    let picture = pictures::busybox(&lab.path(""), IMAGE);
    let mut agents = Vec::new();
    for (name, host) in NODES.iter().zip(&hosts) {
        agents.push(start_agent(&mut lab, &server, host, name, &token));
    }
    for (name, host) in NODES.iter().zip(&hosts) {
        lab.wait_ready(&server, name);
        import(host, &picture);
    }
    Trio {
        lab,
        server,
        hosts,
        agents,
        token,
    }
}

pub fn address(cluster: &Cluster, pod: &str) -> String {
    cluster.wait_value(&["pod", pod], "{.status.phase}", "Running");
    cluster.value(&["pod", pod], "{.status.podIP}")
}

/// What answers with this page at this address, asked by `ask` with a shell's command, once it
/// answers. (A static busybox asks with `nc`: its `wget` needs more of a system.)
#[track_caller]
fn answered(what: &str, page: &str, ask: impl Fn(&str) -> Option<String>) -> String {
    let (socket, path) = page.split_once('/').unwrap();
    let (address, port) = socket.rsplit_once(':').unwrap();
    let script = format!("echo 'GET /{path} HTTP/1.0\n' | nc -w 3 {address} {port}");
    wait(&format!("{what} gets {page}"), || {
        let answer = ask(&script)?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        head.contains(" 200 ").then(|| body.to_owned())
    })
}

#[track_caller]
pub fn fetched(cluster: &Cluster, from: &str, page: &str) -> String {
    answered(from, page, |script| {
        cluster
            .try_kubectl(&["exec", from, "--", "sh", "-c", script])
            .ok()
    })
}

/// The same from a host itself.
#[track_caller]
pub fn fetched_by_host(host: &Host, page: &str) -> String {
    answered(&host.namespace, page, |script| on_host(host, script))
}

fn on_host(host: &Host, script: &str) -> Option<String> {
    let script = script.replace("nc ", "busybox nc ");
    let output = host.command("sh").args(["-c", &script]).output().unwrap();
    output.status.success().then(|| all_text(&output))
}

/// Answers each connection with the address that it comes from.
pub fn mirror(namespace: &str) -> u16 {
    let file = File::open(format!("/run/netns/{namespace}")).unwrap();
    let (tell, told) = std::sync::mpsc::sync_channel(1);
    std::thread::spawn(move || {
        setns(&file, CloneFlags::CLONE_NEWNET).unwrap();
        let listener = TcpListener::bind("[::]:0").unwrap();
        tell.send(listener.local_addr().unwrap().port()).unwrap();
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let peer = stream.peer_addr().unwrap().ip().to_canonical();
            let peer = peer.to_string();
            drop(stream.read(&mut [0; 1024]));
            let length = peer.len();
            drop(write!(
                stream,
                "HTTP/1.0 200 OK\r\nContent-Length: {length}\r\n\r\n{peer}"
            ));
        }
    });
    told.recv().unwrap()
}

pub fn routes(host: &Host) -> String {
    run("ip", &["-n", &host.namespace, "route"])
}

#[test]
fn pods_reach_each_other_wherever_they_are_and_the_world() {
    let Trio {
        lab, server, hosts, ..
    } = trio();
    let pods = [("a", "one"), ("b", "one"), ("c", "two"), ("d", "three")];
    for (name, node) in pods {
        server.apply(&pod(name, node, ""));
    }
    let addresses = pods.map(|(name, _)| address(&server, name));
    for (from, _) in pods {
        for ((to, _), address) in pods.iter().zip(&addresses) {
            let name = fetched(&server, from, &format!("{address}:8080/name"));
            assert_eq!(name, format!("{to}\n"), "{from} to {to}");
            let page = fetched(&server, from, &format!("{address}:8080/page"));
            assert_eq!(page.len(), 300 << 10, "{from} to {to}");
        }
    }
    // Of the same node's pods too the way is by the node.
    let inside = server.kubectl(&["exec", "a", "--", "ip", "route"]);
    let lines: Vec<&str> = inside.lines().collect();
    assert_eq!(lines.len(), 2, "{inside}");
    assert!(inside.contains("default via 10.42."), "{inside}");
    // Nodes reach pods of other nodes.
    for host in &hosts {
        let name = fetched_by_host(host, &format!("{}:8080/name", addresses[3]));
        assert_eq!(name, "d\n");
    }
    // Pods see each other's own addresses; the world sees the node's.
    let (world, namespace) = lab.outside();
    let port = mirror(&namespace);
    for (pod, host) in [("a", &hosts[0]), ("d", &hosts[2])] {
        let seen = fetched(&server, pod, &format!("{world}:{port}/"));
        assert_eq!(seen, host.address, "{pod}");
    }
    let [one, _, three] = &hosts[..] else {
        panic!("three hosts");
    };
    assert!(routes(one).contains("dev coracle-vxlan"), "{}", routes(one));
    assert!(
        routes(one).contains("via 10.99.0.3 dev eth0 proto 67"),
        "{}",
        routes(one)
    );
    let direct = |line: &&str| line.contains("proto 67") && !line.contains("coracle-vxlan");
    assert_eq!(routes(three).lines().find(direct), None);
}

#[test]
fn ports_of_a_node_lead_to_its_pod() {
    let Trio {
        lab: _lab,
        server,
        hosts,
        ..
    } = trio();
    let ports = "{ containerPort: 8080, hostPort: 8088 }, \
                 { containerPort: 8080, hostPort: 8089, hostIP: 127.0.0.1 }";
    server.apply(&pod("open", "two", ports));
    server.apply(&pod("beside", "two", ""));
    server.apply(&pod("far", "three", ""));
    let two = &hosts[1].address;
    for pod in ["open", "beside", "far"] {
        address(&server, pod);
        let name = fetched(&server, pod, &format!("{two}:8088/name"));
        assert_eq!(name, "open\n", "from {pod}");
    }
    for host in &hosts {
        assert_eq!(fetched_by_host(host, &format!("{two}:8088/name")), "open\n");
    }
    let local = |port: u16| fetched_by_host(&hosts[1], &format!("127.0.0.1:{port}/name"));
    assert_eq!(local(8088), "open\n");
    assert_eq!(local(8089), "open\n");
    let script = format!("echo 'GET /name HTTP/1.0\n' | nc -w 3 {two} 8089");
    assert_eq!(on_host(&hosts[0], &script), None);
    // The next pod has the port, and the one after it is gone nobody.
    server.kubectl(&["delete", "pod", "open"]);
    server.apply(&pod("next", "two", ports));
    address(&server, "next");
    wait("the port leads to the next pod", || {
        (fetched_by_host(&hosts[0], &format!("{two}:8088/name")) == "next\n").then_some(())
    });
    server.kubectl(&["delete", "pod", "next"]);
    let script = format!("echo 'GET /name HTTP/1.0\n' | nc -w 3 {two} 8088");
    wait("the port leads nowhere", || {
        on_host(&hosts[0], &script).is_none().then_some(())
    });
}

#[test]
fn nodes_that_go_are_forgotten_and_a_wipe_leaves_nothing() {
    let mut trio = trio();
    let one = trio.hosts[0].clone();
    let gone = trio.server.value(&["node", "three"], "{.spec.podCIDR}");
    wait("there is a way to the third", || {
        routes(&one).contains(&gone).then_some(())
    });
    // What someone takes away comes back.
    run("ip", &["-n", &one.namespace, "route", "del", &gone]);
    wait("the way is there again", || {
        routes(&one).contains(&gone).then_some(())
    });
    run(
        "ip",
        &["-n", &one.namespace, "link", "del", "coracle-vxlan"],
    );
    wait("and the tunnel", || {
        routes(&one).contains(&gone).then_some(())
    });
    // Without the server too, after a restart of the agent.
    let server = trio.server.process;
    let far = trio.hosts[2].address.clone();
    wait("the agent keeps the network and the way to it", || {
        let kept = std::fs::read_to_string(one.data_dir.join("agent/network.peers"));
        kept.is_ok_and(|kept| kept.contains(&gone) && kept.contains(&far))
            .then_some(())
    });
    trio.lab.process(trio.agents[0]).kill();
    trio.lab.process(server).signal("STOP");
    run("ip", &["-n", &one.namespace, "route", "del", &gone]);
    let agent = start_agent(&mut trio.lab, &trio.server, &one, "one", &trio.token);
    wait("the way is there without the server", || {
        routes(&one).contains(&gone).then_some(())
    });
    trio.lab.process(server).signal("CONT");
    trio.lab.process(trio.agents[2]).kill();
    trio.server.kubectl(&["delete", "node", "three"]);
    wait("the third is forgotten", || {
        (!routes(&one).contains(&gone)).then_some(())
    });
    wait("so is the tunnel", || {
        let links = run("ip", &["-n", &one.namespace, "link"]);
        (!links.contains("coracle-vxlan")).then_some(())
    });
    assert!(trio.lab.process(agent).terminate().success());
    assert!(routes(&one).contains("proto 67"), "{}", routes(&one));
    let wiped = one
        .command(coracle())
        .args(["wipe", "--data-dir"])
        .arg(&one.data_dir)
        .output();
    assert!(wiped.unwrap().status.success());
    let links = run("ip", &["-n", &one.namespace, "link"]);
    assert!(!links.contains("coracle"), "{links}");
    assert!(!routes(&one).contains("proto 67"), "{}", routes(&one));
}

#[test]
fn a_node_whose_address_changes_is_followed() {
    let Trio {
        lab,
        server,
        hosts: all,
        ..
    } = trio();
    for (name, node) in [("a", "one"), ("c", "two"), ("d", "three")] {
        server.apply(&pod(name, node, ""));
    }
    let own = address(&server, "a");
    address(&server, "c");
    address(&server, "d");
    let [one, two, _] = &all[..] else {
        panic!("three hosts");
    };
    // As a lease of DHCP ends and another begins.
    for change in [
        "addr del 10.99.0.2/24 dev eth0",
        "addr add 10.99.0.77/24 dev eth0",
        "route add default via 10.99.0.254",
    ] {
        let words: Vec<_> = change.split(' ').collect();
        run("ip", &[&["-n", &one.namespace], &words[..]].concat());
    }
    let path = "{.status.addresses[?(@.type==\"InternalIP\")].address}";
    server.wait_value(&["node", "one"], path, "10.99.0.77");
    wait("others know the way", || {
        routes(two).contains("via 10.99.0.77").then_some(())
    });
    for from in ["c", "d"] {
        let name = fetched(&server, from, &format!("{own}:8080/name"));
        assert_eq!(name, "a\n", "from {from}");
    }
    let (world, namespace) = lab.outside();
    let port = mirror(&namespace);
    let seen = fetched(&server, "a", &format!("{world}:{port}/"));
    assert_eq!(seen, "10.99.0.77");
    // It is told of pods that begin from then on.
    server.apply(&pod("later", "one", ""));
    address(&server, "later");
    let hosts = server.value(&["pod", "later"], "{.status.hostIPs[*].ip}");
    assert_eq!(hosts, "10.99.0.77");
}

#[test]
fn a_pod_network_that_another_node_has_is_told_of() {
    let Trio {
        lab: _lab,
        server,
        hosts,
        ..
    } = trio();
    let taken = server.value(&["node", "two"], "{.spec.podCIDR}");
    // Of Nodes of one second the first by name has it.
    server.apply(&format!(
        r#"
apiVersion: v1
kind: Node
metadata: {{ name: two-again }}
spec: {{ podCIDR: {taken}, podCIDRs: ["{taken}"] }}
"#
    ));
    let patch = r#"{"status":{"addresses":[{"type":"InternalIP","address":"10.99.0.77"}]}}"#;
    server.kubectl(&[
        "patch",
        "node",
        "two-again",
        "--subresource=status",
        "--type=merge",
        "-p",
        patch,
    ]);
    wait("the node says so", || {
        let events = server.kubectl(&["get", "events", "-A", "-o", "wide"]);
        events
            .contains(&format!("podCIDR {taken} overlaps {taken} of node two"))
            .then_some(())
    });
    assert!(routes(&hosts[0]).contains(&format!("{taken} via 10.99.0.3")));
    assert!(!routes(&hosts[0]).contains("10.99.0.77"));
}
