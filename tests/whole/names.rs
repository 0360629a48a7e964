//! Names of the cluster and of the world, as pods ask for them.

use crate::faults::token;
use crate::lab::{Cluster, Host, Lab, all_text, import, run, wait};
use crate::pictures;
use crate::workloads::IMAGE;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

const PODS: &str = r#"
apiVersion: v1
kind: Service
metadata: { name: db }
spec:
  clusterIP: None
  ports: [{ name: http, port: 8080 }]
---
apiVersion: v1
kind: Service
metadata: { name: out }
spec: { type: ExternalName, externalName: outside.example }
---
apiVersion: v1
kind: Pod
metadata: { name: db-0 }
spec:
  hostname: first
  subdomain: db
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: IMAGE
    command: ["sh", "-c", "echo found > /tmp/index.html; trap 'exit 0' TERM; httpd -f -p 8080 -h /tmp & wait"]
---
apiVersion: v1
kind: Pod
metadata: { name: client }
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: IMAGE
    command: ["sh", "-c", "trap 'exit 0' TERM; while true; do sleep 1; done"]
"#;

/// Endpoints that people write, so that names alone are tried here.
fn slice(address: &str) -> String {
    format!(
        r#"
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{ name: db-1, labels: {{ kubernetes.io/service-name: db }} }}
addressType: IPv4
ports: [{{ name: http, port: 8080 }}]
endpoints: [{{ addresses: ["{address}"], hostname: first }}]
"#
    )
}

/// A resolver on the lab's hub that knows one answer to everything.
struct Resolver {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Resolver {
    fn start(host: &Host) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, namespace) = (stop.clone(), format!("/run/netns/{}", host.namespace));
        let (tell, told) = mpsc::sync_channel(1);
        let thread = std::thread::spawn(move || {
            let file = std::fs::File::open(namespace).unwrap();
            nix::sched::setns(file, nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
            let socket = UdpSocket::bind("0.0.0.0:53").unwrap();
            let pause = Duration::from_millis(100);
            socket.set_read_timeout(Some(pause)).unwrap();
            tell.send(()).unwrap();
            let mut buffer = [0; 2048];
            while !stopped.load(Ordering::Relaxed) {
                if let Ok((length, client)) = socket.recv_from(&mut buffer) {
                    let answer = answer(&buffer[..length]);
                    socket.send_to(&answer, client).unwrap();
                }
            }
        });
        told.recv().unwrap();
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// The question again, and 203.0.113.7 where an address is asked for.
fn answer(question: &[u8]) -> Vec<u8> {
    let name = question[12..].iter().position(|byte| *byte == 0).unwrap();
    let end = 12 + name + 5;
    let is_address = question[end - 4..end] == [0, 1, 0, 1];
    let mut answer = question[..end].to_vec();
    answer[2] = 0x81;
    answer[3] = 0x80;
    answer[6..12].copy_from_slice(&[0, u8::from(is_address), 0, 0, 0, 0]);
    if is_address {
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 203, 0, 113, 7]);
    }
    answer
}

fn agent(lab: &mut Lab, server: &Cluster, host: &Host, token: &str) -> usize {
    let url = format!("https://{}:6443", server.host.address);
    let data_dir = host.data_dir.display().to_string();
    let resolvers = lab.path("resolv.conf").display().to_string();
    let settings = [
        ("CORACLE_SERVER", url.as_str()),
        ("CORACLE_TOKEN", token),
        ("CORACLE_DATA_DIR", &data_dir),
        ("CORACLE_RESOLV_CONF", &resolvers),
    ];
    lab.spawn_with(host, &settings, &["agent", "--node-name", "node"])
}

/// On the node's own network, as a pod on it would.
fn on_the_node(host: &Host, name: &str) -> String {
    let output = host
        .command("busybox")
        .args(["nslookup", name, "10.43.0.10"])
        .output();
    all_text(&output.unwrap())
}

/// What nslookup found; the server that it asked has a line of its own.
fn leads_to(found: &str, address: &str) -> bool {
    let answer = format!("Address: {address}");
    found.lines().any(|line| line.trim_end() == answer)
}

#[track_caller]
fn until_leads_to(what: &str, address: &str, look: impl Fn() -> String) {
    wait(what, || leads_to(&look(), address).then_some(()));
}

#[test]
fn pods_find_the_clusters_names_and_others() {
    let mut lab = Lab::new();
    let server = lab.server("server", &[]);
    let host = lab.host("node");
    let upstream = lab.host("upstream");
    let resolver = Resolver::start(&upstream);
    let resolvers = format!("nameserver {}\nsearch site.example\n", upstream.address);
    std::fs::write(lab.path("resolv.conf"), resolvers).unwrap();
    let token = token(&server);
    let mut process = agent(&mut lab, &server, &host, &token);
    lab.wait_ready(&server, "node");
    import(&host, &pictures::busybox(&lab.path(""), IMAGE));
    server.apply(&PODS.replace("IMAGE", IMAGE));
    for pod in ["db-0", "client"] {
        server.wait_value(&["pod", pod], "{.status.phase}", "Running");
    }
    let inside = |arguments: &[&str]| {
        let mut all = vec!["exec", "client", "--"];
        all.extend(arguments);
        server.try_kubectl(&all).unwrap_or_else(|error| error)
    };
    assert_eq!(
        inside(&["cat", "/etc/resolv.conf"]),
        "nameserver 10.43.0.10\nsearch default.svc.cluster.local svc.cluster.local cluster.local \
         site.example\noptions ndots:5\n"
    );
    until_leads_to("the cluster's own name is known", "10.43.0.1", || {
        inside(&["nslookup", "kubernetes.default.svc.cluster.local"])
    });
    let address = server.value(&["pod", "db-0"], "{.status.podIP}");
    server.apply(&slice(&address));
    until_leads_to("the endpoint's host name is known", &address, || {
        inside(&["nslookup", "first.db.default.svc.cluster.local"])
    });
    // By the search path, and there is something behind the name.
    wait("the short name leads to the pod", || {
        let page = inside(&["wget", "-q", "-O", "-", "http://first.db:8080/index.html"]);
        (page == "found\n").then_some(())
    });
    for name in ["outside.example", "out.default.svc.cluster.local"] {
        until_leads_to("it is asked elsewhere", "203.0.113.7", || {
            inside(&["nslookup", name])
        });
    }
    let missing = inside(&["nslookup", "missing.default.svc.cluster.local"]);
    assert!(missing.contains("NXDOMAIN"), "{missing}");

    // Without the server names go on, also those of an agent that starts anew.
    lab.process(server.process).kill();
    let name = "first.db.default.svc.cluster.local";
    until_leads_to("it answers without the server", &address, || {
        on_the_node(&host, name)
    });
    assert!(lab.process(process).terminate().success());
    process = agent(&mut lab, &server, &host, &token);
    until_leads_to(
        "the new one answers what the old one knew",
        &address,
        || on_the_node(&host, name),
    );
    until_leads_to("and asks elsewhere", "203.0.113.7", || {
        on_the_node(&host, "outside.example")
    });
    // Without a resolver, nothing else stops.
    drop(resolver);
    let failed = on_the_node(&host, "other.example");
    assert!(!failed.contains("203.0.113.7"), "{failed}");
    until_leads_to("names of the cluster go on", &address, || {
        on_the_node(&host, name)
    });

    lab.process(process).kill();
    nothing_is_left_once_wiped(&host);
}

fn nothing_is_left_once_wiped(host: &Host) {
    let mut command = host.command(crate::lab::coracle());
    let wipe = ["wipe", "--data-dir"];
    let output = command.args(wipe).arg(&host.data_dir).output().unwrap();
    assert!(output.status.success(), "{}", all_text(&output));
    let links = run("ip", &["-n", &host.namespace, "-o", "link"]);
    assert!(!links.contains("coracle-dns"), "{links}");
    assert!(!host.data_dir.join("agent/network.services").exists());
}
