//! What pods of different nodes send each other is encrypted, from the server's word on, and leaves
//! in plain text for no reason: not to a node that cannot read it, and not while the agent is away.

use crate::capture::{Capture, Seen, UDP};
use crate::dual_stack;
use crate::faults::{start_agent, token};
use crate::lab::{Cluster, Host, Lab, coracle, import, run, wait};
use crate::pictures;
use crate::pod_network::{address, fetched, fetched_by_host, pod, routes};
use crate::workloads::IMAGE;
use nix::sched::{CloneFlags, setns};
use nix::sys::socket::sockopt::SendTimeout;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect, setsockopt, socket,
};
use nix::sys::time::{TimeVal, TimeValLike};
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::os::fd::AsRawFd;

/// In the names of pods, and so in what they tell each other.
const MARK: &[u8] = b"marked-";
const PODS: [(&str, &str); 3] = [
    ("marked-a", "one"),
    ("marked-b", "two"),
    ("marked-c", "three"),
];
/// The network of all pods, and WireGuard's port.
const POD_NETWORK: [u8; 2] = [10, 42];
const PORT: u16 = 51820;
const NODE_PORT: u16 = 30880;
/// Where nobody listens, outside the cluster.
const DISCARD: u16 = 9;

struct Site {
    lab: Lab,
    server: Cluster,
    /// Two on the server's segment, one beyond the router.
    hosts: [Host; 3],
    agents: [usize; 3],
    token: String,
    /// The address and the namespace of the world.
    world: (Ipv4Addr, String),
}

fn site() -> Site {
    let mut lab = Lab::new();
    let server = lab.server("server", &[]);
    let token = token(&server);
    let hosts = [lab.host("one"), lab.host("two"), lab.far_host("three")];
    let picture = pictures::busybox(&lab.path(""), IMAGE);
    let names = PODS.map(|(_, node)| node);
    let mut agents = [0; 3];
    for ((name, host), agent) in names.iter().zip(&hosts).zip(&mut agents) {
        *agent = start_agent(&mut lab, &server, host, name, &token);
    }
    for (name, host) in names.iter().zip(&hosts) {
        lab.wait_ready(&server, name);
        import(host, &picture);
    }
    let (world, namespace) = lab.outside();
    Site {
        world: (world.parse().unwrap(), namespace),
        lab,
        server,
        hosts,
        agents,
        token,
    }
}

impl Site {
    /// The same server with another word of encryption.
    fn restart_server(&mut self, encrypts: &str) {
        let process = self.lab.process(self.server.process);
        assert!(process.terminate().success());
        let data_dir = self.server.host.data_dir.display().to_string();
        let arguments = ["server", "--data-dir", &data_dir, encrypts];
        self.server.process = self.lab.spawn(&self.server.host, &arguments);
        wait("the server is there again", || {
            self.server.try_kubectl(&["get", "--raw", "/readyz"]).ok()
        });
    }

    fn start_agent(&mut self, number: usize) {
        let (host, name) = (self.hosts[number].clone(), PODS[number].1);
        let agent = start_agent(&mut self.lab, &self.server, &host, name, &self.token);
        self.agents[number] = agent;
    }

    /// All pods tell all others their name.
    #[track_caller]
    fn all_talk(&self, addresses: &[String]) {
        for (from, _) in PODS {
            for ((to, _), address) in PODS.iter().zip(addresses) {
                let name = fetched(&self.server, from, &format!("{address}:8080/name"));
                assert_eq!(name, format!("{to}\n"), "{from} to {to}");
            }
        }
    }

    /// A pod on the first node that talks to an address all the time, and to the world.
    fn add_talker(&self, to: &str) {
        let world = self.world.0;
        let script = format!(
            "while :; do echo marked-talk | nc -w 1 {to} 8080; nc -w 1 {world} {DISCARD}; \
             busybox sleep 0.1; done"
        );
        self.server.apply(&format!(
            r#"
apiVersion: v1
kind: Pod
metadata: {{ name: talker }}
spec:
  nodeName: one
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: {IMAGE}
    command: ["sh", "-c", "{script}"]
"#
        ));
    }

    /// The talker tried some times more, and nothing of it was to be read.
    #[track_caller]
    fn nothing_leaks(&self, capture: &Capture, what: &str) {
        capture.forget();
        let world = (self.world.0.into(), DISCARD);
        wait(&format!("the talker talks while {what}"), || {
            (capture.seen().tcp_to(world) >= 4).then_some(())
        });
        let seen = capture.seen();
        assert_eq!(seen.within(&POD_NETWORK), [""; 0], "while {what}");
        assert_eq!(seen.texts, 0, "while {what}");
    }
}

/// Nodes sent each other nothing but WireGuard's datagrams, all of them to all others.
#[track_caller]
fn is_only_wireguard(capture: &Capture, hosts: &[Host]) -> Seen {
    let addresses: Vec<IpAddr> = hosts
        .iter()
        .map(|host| host.address.parse().unwrap())
        .collect();
    // What passes is noted a moment later.
    let seen = wait("all hosts spoke to all others", || {
        let seen = capture.seen();
        let count = seen.between(&addresses).len();
        (count == hosts.len() * (hosts.len() - 1)).then_some(seen)
    });
    let ways = seen.between(&addresses);
    for (way, protocols) in ways {
        assert_eq!(protocols, [(UDP, PORT)].into(), "{way:?}");
    }
    seen
}

/// The address of a Service, and the port of each node, that leads to one pod alone.
fn service_of(server: &Cluster, pod: &str) -> String {
    server.kubectl(&["label", "pod", pod, "served=yes"]);
    let ports = format!("[{{ port: 8080, nodePort: {NODE_PORT} }}]");
    server.apply(&format!(
        "\napiVersion: v1\nkind: Service\nmetadata: {{ name: served }}\n\
         spec: {{ type: NodePort, selector: {{ served: \"yes\" }}, ports: {ports} }}\n"
    ));
    server.value(&["service", "served"], "{.spec.clusterIP}")
}

fn is_guarded(host: &Host) -> bool {
    let arguments = ["list", "chain", "inet", "coracle", "encryption-out"];
    let listed = host.command("nft").args(arguments).output().unwrap();
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    listed.contains("encryption-ways-out")
}

/// Whether a connection can be made from an address of the namespace.
fn connects(namespace: &str, from: Ipv4Addr, to: SocketAddrV4) -> bool {
    let namespace = File::open(format!("/run/netns/{namespace}")).unwrap();
    let connecting = std::thread::spawn(move || {
        setns(&namespace, CloneFlags::CLONE_NEWNET).unwrap();
        let (family, flags) = (AddressFamily::Inet, SockFlag::SOCK_CLOEXEC);
        let socket = socket(family, SockType::Stream, flags, None).unwrap();
        setsockopt(&socket, SendTimeout, &TimeVal::seconds(2)).unwrap();
        let from = SockaddrIn::from(SocketAddrV4::new(from, 0));
        bind(socket.as_raw_fd(), &from).unwrap();
        connect(socket.as_raw_fd(), &SockaddrIn::from(to)).is_ok()
    });
    connecting.join().unwrap()
}

#[test]
fn nothing_that_pods_send_to_other_nodes_can_be_read_on_the_way() {
    let mut site = site();
    for (name, node) in PODS {
        site.server.apply(&pod(name, node, ""));
    }
    let addresses = PODS.map(|(name, _)| address(&site.server, name));
    let capture = Capture::begin(&site.world.1, MARK);
    // Plain text is seen: so it would be below.
    site.all_talk(&addresses);
    wait("plain text is seen", || {
        let seen = capture.seen();
        (seen.texts > 0 && !seen.within(&POD_NETWORK).is_empty()).then_some(())
    });
    assert_eq!(capture.seen().udp_to(PORT), 0);

    site.restart_server("--encrypt-pod-network");
    for (host, (_, node)) in site.hosts.iter().zip(PODS) {
        wait(&format!("{node} encrypts"), || {
            let routes = routes(host);
            let ways = routes.lines().filter(|line| line.contains("proto 67"));
            let ways: Vec<_> = ways.collect();
            let is_so = ways.len() == 2 && ways.iter().all(|way| way.contains("dev coracle-wg"));
            (is_so && is_guarded(host)).then_some(())
        });
    }
    site.all_talk(&addresses);
    capture.forget();
    site.all_talk(&addresses);
    let page = fetched(
        &site.server,
        "marked-a",
        &format!("{}:8080/page", addresses[2]),
    );
    assert_eq!(page.len(), 300 << 10);
    // Nodes reach pods of others so too.
    let page = format!("{}:8080/name", addresses[0]);
    assert_eq!(fetched_by_host(&site.hosts[1], &page), "marked-a\n");
    let service = service_of(&site.server, "marked-c");
    let page = format!("{service}:8080/name");
    assert_eq!(fetched_by_host(&site.hosts[0], &page), "marked-c\n");
    let seen = is_only_wireguard(&capture, &site.hosts);
    assert_eq!(seen.within(&POD_NETWORK), [""; 0]);
    assert_eq!(seen.texts, 0);

    a_node_without_a_key_is_told_of_and_not_reached(&site, &capture);
    who_does_not_encrypt_is_not_heard(&site, &addresses);
    nothing_leaks_while_the_agent_is_away(&mut site, &capture, &addresses);
    a_wipe_leaves_nothing_of_it(&mut site);
}

fn a_node_without_a_key_is_told_of_and_not_reached(site: &Site, capture: &Capture) {
    let server = &site.server;
    let spec = r#"{ podCIDR: 10.42.77.0/24, podCIDRs: ["10.42.77.0/24"] }"#;
    server.apply(&format!(
        "\napiVersion: v1\nkind: Node\nmetadata: {{ name: keyless }}\nspec: {spec}\n"
    ));
    let patch = r#"{"status":{"addresses":[{"type":"InternalIP","address":"10.99.0.77"}]}}"#;
    let patched = [
        "patch",
        "node",
        "keyless",
        "--subresource=status",
        "--type=merge",
        "-p",
        patch,
    ];
    server.kubectl(&patched);
    wait("the nodes say so", || {
        let events = server.kubectl(&["get", "events", "-A", "-o", "wide"]);
        let told = "of node keyless in 10.42.77.0/24: traffic between nodes is encrypted, and it \
                    has no key of WireGuard";
        events.contains(told).then_some(())
    });
    assert!(!routes(&site.hosts[0]).contains("10.42.77."));
    capture.forget();
    let asked = "echo x | nc -w 1 10.42.77.5 8080";
    let asked = server.try_kubectl(&["exec", "marked-a", "--", "sh", "-c", asked]);
    assert!(asked.is_err(), "{asked:?}");
    assert_eq!(capture.seen().within(&POD_NETWORK), [""; 0]);
}

/// As a node of an older version would send, or a machine that is none.
fn who_does_not_encrypt_is_not_heard(site: &Site, addresses: &[String]) {
    let (world, namespace) = &site.world;
    let pod: Ipv4Addr = addresses[0].parse().unwrap();
    let forged = Ipv4Addr::new(10, 42, 200, 1);
    let one = &site.hosts[0].address;
    run(
        "ip",
        &[
            "-n",
            namespace,
            "route",
            "add",
            &format!("{pod}/32"),
            "via",
            one,
        ],
    );
    run(
        "ip",
        &[
            "-n",
            namespace,
            "addr",
            "add",
            &format!("{forged}/32"),
            "dev",
            "hub",
        ],
    );
    let to = SocketAddrV4::new(pod, 8080);
    assert!(connects(namespace, *world, to));
    // The node would have a way back to it, too.
    assert!(!connects(namespace, forged, to));
    run(
        "ip",
        &[
            "-n",
            namespace,
            "addr",
            "del",
            &format!("{forged}/32"),
            "dev",
            "hub",
        ],
    );
    run(
        "ip",
        &["-n", namespace, "route", "del", &format!("{pod}/32")],
    );
}

fn nothing_leaks_while_the_agent_is_away(site: &mut Site, capture: &Capture, addresses: &[String]) {
    site.add_talker(&addresses[1]);
    site.nothing_leaks(capture, "the agent is there");
    wait("what it says goes by WireGuard", || {
        (capture.seen().udp_to(PORT) > 0).then_some(())
    });
    site.lab.process(site.agents[0]).kill();
    site.nothing_leaks(capture, "the agent is killed");
    let one = site.hosts[0].namespace.clone();
    run("ip", &["-n", &one, "link", "del", "coracle-wg"]);
    assert!(!routes(&site.hosts[0]).contains("proto 67"));
    site.nothing_leaks(capture, "the link is gone too");
    // Nor what the node sends by one of its own addresses, which is the loopback's at first.
    let (own, word) = (&site.hosts[0].address, "marked-own");
    let script = format!("echo {word} | busybox timeout 2 busybox nc {own} {NODE_PORT}");
    let asked = site.hosts[0].command("sh").args(["-c", &script]).output();
    assert!(!asked.unwrap().status.success());
    assert_eq!(capture.seen().within(&POD_NETWORK), [""; 0]);
    assert_eq!(capture.seen().texts, 0);
    site.start_agent(0);
    let page = format!("{}:8080/name", addresses[0]);
    assert_eq!(fetched(&site.server, "marked-c", &page), "marked-a\n");
    site.nothing_leaks(capture, "the agent is there again");
}

fn a_wipe_leaves_nothing_of_it(site: &mut Site) {
    let three = site.hosts[2].clone();
    assert!(site.lab.process(site.agents[2]).terminate().success());
    let key = three.data_dir.join("agent/network.wireguard");
    assert!(key.exists());
    let wiped = three
        .command(coracle())
        .args(["wipe", "--data-dir"])
        .arg(&three.data_dir)
        .output();
    assert!(wiped.unwrap().status.success());
    assert!(!key.exists());
    let links = run("ip", &["-n", &three.namespace, "link"]);
    assert!(!links.contains("coracle"), "{links}");
}

/// Of the pods' addresses of IPv6.
const POD_NETWORK_6: [u8; 2] = [0xfd, 0x42];

#[test]
fn both_families_of_pods_are_encrypted() {
    let mut lab = Lab::new();
    let arguments = [
        "--encrypt-pod-network",
        "--cluster-cidr",
        "10.42.0.0/16,fd42::/56",
        "--service-cidr",
        "10.43.0.0/16,fd43::/108",
    ];
    let server = lab.server("server", &arguments);
    let hosts = [lab.host("one"), lab.far_host("two")];
    let (_, outside) = lab.outside();
    let world: IpAddr = "fd99::fe".parse().unwrap();
    dual_stack::add_address(&outside, "hub", "fd99::fe");
    dual_stack::add_address(&hosts[0].namespace, "eth0", "fd99::2");
    // By which what is lost would leave.
    let default = ["-6", "route", "add", "default", "via", "fd99::fe"];
    let of_one = ["-n", &hosts[0].namespace];
    run("ip", &[&of_one, &default[..]].concat());
    let capture = Capture::begin(&outside, MARK);
    let pods = [("marked-a", "one"), ("marked-b", "two")];
    let told = ["10.99.0.2,fd99::2", "10.99.1.3"];
    let picture = pictures::busybox(&lab.path(""), IMAGE);
    let mut agents = Vec::new();
    for (((_, node), host), told) in pods.iter().zip(&hosts).zip(told) {
        agents.push(dual_stack::start_agent(&mut lab, &server, host, node, told));
    }
    for ((_, node), host) in pods.iter().zip(&hosts) {
        lab.wait_ready(&server, node);
        import(host, &picture);
    }
    for (name, node) in pods {
        server.apply(&dual_stack::pod(name, node));
    }
    let addresses = pods.map(|(name, _)| dual_stack::addresses(&server, name));
    // A node that has just come has a key a moment later: from then on all is reached.
    for ((from, _), to) in pods.iter().zip([1, 0]) {
        for address in &addresses[to] {
            let name = fetched(&server, from, &format!("{address}:8080/name"));
            assert_eq!(name, format!("{}\n", pods[to].0), "{from} at {address}");
        }
    }
    for address in &addresses[1] {
        let page = format!("{address}:8080/name");
        assert_eq!(fetched_by_host(&hosts[0], &page), "marked-b\n");
    }
    is_only_wireguard(&capture, &hosts);
    // Nor is anything of them left when agent and link are gone.
    lab.process(agents[0]).kill();
    run(
        "ip",
        &[&of_one, &["link", "del", "coracle-wg"][..]].concat(),
    );
    let to_pod = format!(
        "echo marked-host | busybox nc -w 1 {} 8080",
        addresses[1][1]
    );
    let to_world = format!("busybox nc -w 1 {world} {DISCARD}");
    let script = format!("{to_pod}; {to_world}");
    hosts[0]
        .command("sh")
        .args(["-c", &script])
        .output()
        .unwrap();
    wait("what leaves is seen", || {
        (capture.seen().tcp_to((world, DISCARD)) > 0).then_some(())
    });
    let seen = capture.seen();
    assert_eq!(seen.within(&POD_NETWORK), [""; 0]);
    assert_eq!(seen.within(&POD_NETWORK_6), [""; 0]);
    assert_eq!(seen.texts, 0);
}
