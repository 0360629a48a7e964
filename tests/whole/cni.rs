//! Pods on networks that plugins make: those of Debian's containernetworking-plugins, and scripts
//! that misbehave.

use crate::lab::{Cluster, Host, Lab, all_text, coracle, run, wait};
use crate::pictures;
use crate::services::{ask, ask_in_pod, endpoints, names, running, service, web};
use crate::workloads::IMAGE;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// Where Debian has them.
const PLUGINS: &str = "/usr/lib/cni";
const FILE: &str = "10-lab.conflist";
const POD_CIDR: &str = "10.42.0.";

/// A node whose network is that of the lab's configuration.
struct Node {
    lab: Lab,
    cluster: Cluster,
}

fn directory(lab: &Lab, name: &str) -> PathBuf {
    let path = lab.path(name);
    fs::create_dir_all(&path).unwrap();
    path
}

/// Addresses of the node's podCIDR on a bridge, ports and bandwidth.
fn list(lab: &Lab) -> String {
    let network = serde_json::json!({
        "cniVersion": "1.0.0",
        "name": "lab",
        "plugins": [
            {
                "type": "bridge",
                "bridge": "cni0",
                "isGateway": true,
                "ipMasq": true,
                "hairpinMode": true,
                "capabilities": { "ipRanges": true },
                "ipam": {
                    "type": "host-local",
                    "dataDir": lab.path("addresses"),
                    "routes": [{ "dst": "0.0.0.0/0" }],
                },
            },
            { "type": "portmap", "capabilities": { "portMappings": true } },
            { "type": "bandwidth", "capabilities": { "bandwidth": true } },
        ],
    });
    network.to_string()
}

fn configure(lab: &Lab, text: &str) {
    // As installers do: nobody reads half of it.
    let (new, place) = (lab.path("new"), directory(lab, "net.d").join(FILE));
    fs::write(&new, text).unwrap();
    fs::rename(new, place).unwrap();
}

fn script(lab: &Lab, name: &str, body: &str) {
    let path = directory(lab, "bin").join(name);
    fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn arguments(lab: &Lab, time_max: &str) -> [String; 6] {
    let bin = format!("{},{PLUGINS}", directory(lab, "bin").display());
    let configurations = lab.path("net.d").display().to_string();
    [
        "--cni-conf-dir".to_owned(),
        configurations,
        "--cni-bin-dir".to_owned(),
        bin,
        "--cni-timeout".to_owned(),
        time_max.to_owned(),
    ]
}

impl Node {
    fn new(name: &str, text: impl FnOnce(&Lab) -> String) -> Self {
        Self::within("60s", name, text)
    }

    /// With a bound of what one plugin may take.
    fn within(time_max: &str, name: &str, text: impl FnOnce(&Lab) -> String) -> Self {
        let mut lab = Lab::new();
        configure(&lab, &text(&lab));
        let host = lab.host(name);
        let cluster = Self::begin(&mut lab, host, name, time_max);
        cluster.import(&pictures::busybox(&lab.path(""), IMAGE));
        Self { lab, cluster }
    }

    fn begin(lab: &mut Lab, host: Host, name: &str, time_max: &str) -> Cluster {
        let more = arguments(lab, time_max);
        lab.cluster_on(host, name, &more.each_ref().map(String::as_str))
    }

    /// What `host-local` has given.
    fn given(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(self.lab.path("addresses/lab"));
        let names = entries.into_iter().flatten().flatten();
        let names = names.map(|entry| entry.file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("10.")).collect()
    }

    fn address(&self, pod: &str) -> String {
        self.cluster.value(&["pod", pod], "{.status.podIP}")
    }

    fn has_link(&self, name: &str) -> bool {
        let links = run("ip", &["-n", &self.cluster.host.namespace, "link"]);
        links.contains(&format!(" {name}: "))
    }

    fn delete(&self, pod: &str) {
        self.cluster
            .kubectl(&["delete", "pod", pod, "--wait=false"]);
    }
}

/// With a port of the node, and held to 8 Mbit/s.
fn limited(name: &str) -> String {
    let bandwidth = "annotations: { kubernetes.io/ingress-bandwidth: 8M }";
    let labels = "labels: { app: web } }";
    let pod = web(name).replace(labels, &format!("labels: {{ app: web }}, {bandwidth} }}"));
    pod.replace(
        "    command:",
        "    ports: [{ containerPort: 8080, hostPort: 8088 }]\n    command:",
    )
}

#[test]
fn debians_plugins_make_the_network_of_pods() {
    let mut node = Node::new("plugged", list);
    let outside = node.lab.host("outside");
    let cluster = node.cluster.clone();
    cluster.apply(&limited("one"));
    running(&cluster, &["two"]);
    cluster.wait_value(&["pod", "one"], "{.status.phase}", "Running");
    let (one, two) = (node.address("one"), node.address("two"));
    assert!(
        one.starts_with(POD_CIDR) && two.starts_with(POD_CIDR),
        "{one} {two}"
    );
    assert_eq!(node.given(), [one.clone(), two.clone()].into());
    assert!(node.has_link("cni0") && !node.has_link("coracle0"));
    let at_one = format!("http://{one}:8080/cgi-bin/who");
    let (name, from) = wait("pods reach each other", || {
        ask_in_pod(&cluster, "two", &at_one)
    });
    assert_eq!((name.as_str(), from), ("one", two.clone()));

    // A Service, from pods, themselves included, and from the node.
    cluster.apply(&service("type: NodePort"));
    endpoints(&cluster, &["one", "two"], None);
    let address = cluster.value(&["service", "web"], "{.spec.clusterIP}");
    let within = format!("http://{address}/cgi-bin/who");
    let both: BTreeSet<_> = ["one", "two"].map(str::to_owned).into();
    wait("it is routed", || ask(&cluster.host, &within));
    assert_eq!(names(|| ask(&cluster.host, &within)), both);
    assert_eq!(names(|| ask_in_pod(&cluster, "two", &within)), both);
    wait("a pod is seen by its own address", || {
        let (name, from) = ask_in_pod(&cluster, "two", &within)?;
        (name == "one").then(|| assert_eq!(from, two))
    });
    let by_name = "http://web.default.svc.cluster.local/cgi-bin/who";
    wait("names are answered", || {
        ask_in_pod(&cluster, "two", by_name)
    });

    // The port of the node, and the bound.
    let at_node = format!("http://{}:8088/cgi-bin/who", cluster.host.address);
    let (name, _) = wait("the port leads to the pod", || ask(&outside, &at_node));
    assert_eq!(name, "one");
    let queues = run("tc", &["-n", &cluster.host.namespace, "qdisc"]);
    assert!(
        queues.contains("tbf") && queues.contains("rate 8Mbit"),
        "{queues}"
    );

    // Another agent knows them, and takes them off their network.
    node.lab.process(cluster.process).kill();
    let cluster = Node::begin(&mut node.lab, cluster.host, "plugged", "60s");
    node.cluster = cluster.clone();
    assert_eq!(
        (node.address("one"), node.address("two")),
        (one, two.clone())
    );
    node.delete("one");
    cluster.wait_gone(&["pod", "one"]);
    assert_eq!(node.given(), [two].into());
    wait("the port is closed", || {
        ask(&outside, &at_node).is_none().then_some(())
    });

    // A node that goes gives back the rest.
    assert!(node.lab.process(cluster.process).terminate().success());
    let mut wipe = cluster.host.command(coracle());
    let wiped = wipe
        .args(["wipe", "--data-dir"])
        .arg(&cluster.host.data_dir);
    let wiped = wiped.output().unwrap();
    assert!(wiped.status.success(), "{}", all_text(&wiped));
    assert_eq!(node.given(), BTreeSet::new());
}

#[test]
fn the_network_follows_its_configuration() {
    let node = Node::new("switched", list);
    let cluster = &node.cluster;
    running(cluster, &["first"]);
    assert_eq!(node.given(), [node.address("first")].into());
    configure(&node.lab, "{");
    let ready = "{.status.conditions[?(@.type==\"Ready\")]['status','message']}";
    cluster.wait_for(&["node", "switched"], ready, "not ready", |said| {
        said.starts_with("False container runtime network not ready: NetworkReady=false")
            && said.contains("net.d/10-lab.conflist: it is no JSON")
    });

    // Without any, pods that come have the agent's own; the others end as they began.
    fs::remove_file(node.lab.path("net.d").join(FILE)).unwrap();
    cluster.wait_for(&["node", "switched"], ready, "ready", |said| {
        said.starts_with("True")
    });
    node.delete("first");
    cluster.wait_gone(&["pod", "first"]);
    assert_eq!(node.given(), BTreeSet::new());
    running(cluster, &["second"]);
    assert!(node.has_link("coracle0"));
    assert_eq!(node.given(), BTreeSet::new());

    configure(&node.lab, &list(&node.lab));
    wait("plugins are asked again", || {
        let name = "third";
        running(cluster, &[name]);
        let is_given = node.given().contains(&node.address(name));
        if !is_given {
            node.delete(name);
            cluster.wait_gone(&["pod", name]);
        }
        is_given.then_some(())
    });
    assert!(node.has_link("coracle0"), "the second pod needs it");
    node.delete("second");
    cluster.wait_gone(&["pod", "second"]);
    wait("the agent's own network is gone", || {
        (!node.has_link("coracle0")).then_some(())
    });
    let at_third = format!("http://{}:8080/cgi-bin/who", node.address("third"));
    assert_eq!(ask(&cluster.host, &at_third).unwrap().0, "third");
}

fn only(plugin: &str) -> String {
    let plugins = serde_json::json!([{ "type": plugin }]);
    serde_json::json!({ "cniVersion": "1.0.0", "name": "lab", "plugins": plugins }).to_string()
}

/// How many of them the agent has on disk.
fn kept(cluster: &Cluster, what: &str) -> usize {
    let directory = cluster.host.data_dir.join("agent").join(what);
    fs::read_dir(directory).unwrap().count()
}

const ON_HOST: &str = r#"
apiVersion: v1
kind: Pod
metadata: { name: beside }
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: example.test/busybox:1
    command: ["sleep", "1000"]
"#;

/// The sandboxes that `hangs` was asked to add, one a line of its file.
fn added(node: &Node) -> Vec<String> {
    let asked = fs::read_to_string(node.lab.path("asked")).unwrap();
    let all = asked.lines().filter_map(|line| line.strip_prefix("ADD "));
    all.map(str::to_owned).collect()
}

/// However often its network fails.
fn keeps_one_sandbox(node: &Node) {
    let cluster = &node.cluster;
    let tries = wait("it is tried again and again", || {
        let tries = added(node);
        (tries.len() >= 3).then_some(tries)
    });
    assert_eq!(BTreeSet::from_iter(tries).len(), 1);
    assert_eq!(
        kept(cluster, "sandboxes"),
        2,
        "and one on the host's network"
    );
    let said = cluster.events("stuck");
    assert!(
        said.contains("FailedCreatePodSandBox") && !said.contains("DNSConfigForming"),
        "{said}"
    );
}

/// Also while it is made.
fn is_taken_off_its_network_when_it_is_deleted(node: &Node) {
    let cluster = &node.cluster;
    let before = added(node);
    cluster.apply(&web("brief"));
    let brief = wait("its network is being made", || {
        let new = added(node);
        new.into_iter().find(|id| !before.contains(id))
    });
    node.delete("brief");
    cluster.wait_gone(&["pod", "brief"]);
    let asked = fs::read_to_string(node.lab.path("asked")).unwrap();
    let mut of_brief = asked.lines().filter(|line| line.ends_with(&brief));
    assert_eq!(
        of_brief.next_back(),
        Some(format!("DEL {brief}").as_str()),
        "{asked}"
    );
    let file = cluster.host.data_dir.join("agent/network.cni").join(&brief);
    assert!(!file.exists());
}

#[test]
fn plugins_that_misbehave_are_told_of_and_keep_nothing_else() {
    let node = Node::within("2s", "hung", |lab| {
        let asked = lab.path("asked");
        let body = format!(
            "echo $CNI_COMMAND $CNI_CONTAINERID >> {}\n\
             test $CNI_COMMAND != ADD || exec sleep 1000",
            asked.display()
        );
        script(lab, "hangs", &body);
        only("hangs")
    });
    let cluster = &node.cluster;
    // With the cluster's there are more than fit.
    let servers = "dnsConfig: { nameservers: [192.0.2.1, 192.0.2.2, 192.0.2.3] }";
    let grace = "  terminationGracePeriodSeconds";
    cluster.apply(&web("stuck").replace(grace, &format!("  {servers}\n{grace}")));
    let said = wait("the pod says so", || {
        let said = cluster.events("stuck");
        said.contains("failed to setup network").then_some(said)
    });
    assert!(
        said.contains(
            "FailedCreatePodSandBox: Failed to create pod sandbox: failed to setup network"
        ) && said.contains(
            "plugin type=\"hangs\" failed (add): it did not end within 2s and was killed"
        ),
        "{said}"
    );
    cluster.apply(ON_HOST);
    cluster.wait_value(&["pod", "beside"], "{.status.phase}", "Running");
    let ready = "{.status.conditions[?(@.type==\"Ready\")].status}";
    assert_eq!(cluster.value(&["node", "hung"], ready), "True");

    keeps_one_sandbox(&node);
    is_taken_off_its_network_when_it_is_deleted(&node);

    // Another configuration helps, and an address of the agent's is not what counts.
    let refuses = node.lab.path("refuses");
    let body = format!(
        "case $CNI_COMMAND in\n\
         ADD) echo '{{\"ips\": [{{\"address\": \"10.9.0.2/16\"}}]}}';;\n\
         DEL) if test -e {}; then echo '{{\"msg\": \"not yet\"}}'; exit 1; fi;;\n\
         esac",
        refuses.display()
    );
    script(&node.lab, "stubborn", &body);
    fs::write(&refuses, "").unwrap();
    configure(&node.lab, &only("stubborn"));
    cluster.wait_value(&["pod", "stuck"], "{.status.phase}", "Running");
    assert_eq!(node.address("stuck"), "10.9.0.2");
    wait("the pod says what its resolver has not", || {
        let said = cluster.events("stuck");
        let limits = "DNSConfigForming: Nameserver limits were exceeded";
        said.contains(limits).then_some(())
    });

    // What is not taken back holds the pod until it is.
    node.delete("stuck");
    let said = wait("the pod says so", || {
        let said = cluster.events("stuck");
        said.contains("failed (delete): not yet").then_some(said)
    });
    assert!(
        said.contains("FailedKillPod: error killing pod: failed to \"KillPodSandbox\" for \"")
            && said.contains("failed to destroy network for sandbox"),
        "{said}"
    );
    assert_ne!(
        cluster.value(&["pod", "stuck"], "{.metadata.deletionTimestamp}"),
        ""
    );
    fs::remove_file(&refuses).unwrap();
    cluster.wait_gone(&["pod", "stuck"]);
}
