//! NetworkPolicy, as users see it: who reaches a pod and whom it reaches, across two nodes, from
//! its first packet on, and with nobody there who could enforce it.

use crate::faults::{start_agent, token};
use crate::lab::{Cluster, Host, Lab, all_text, import, run, wait};
use crate::pictures;
use crate::workloads::IMAGE;

struct Duo {
    lab: Lab,
    server: Cluster,
    hosts: [Host; 2],
    agents: [usize; 2],
    token: String,
}

const NODES: [&str; 2] = ["one", "two"];

fn duo() -> Duo {
    let mut lab = Lab::new();
    let server = lab.server("server", &[]);
    let token = token(&server);
    let hosts = NODES.map(|name| lab.host(name));
    let picture = pictures::busybox(&lab.path(""), IMAGE);
    let agents = [0, 1].map(|at| start_agent(&mut lab, &server, &hosts[at], NODES[at], &token));
    for (name, host) in NODES.iter().zip(&hosts) {
        lab.wait_ready(&server, name);
        import(host, &picture);
    }
    server.kubectl(&["create", "namespace", "shop"]);
    server.kubectl(&["create", "namespace", "front"]);
    Duo {
        lab,
        server,
        hosts,
        agents,
        token,
    }
}

/// `NAMESPACE/NAME` on a node, labelled with its name; serves that at 8080 and 8090. Its address.
fn pod(server: &Cluster, key: &str, node: &str) -> String {
    let (namespace, name) = key.split_once('/').unwrap();
    let script = format!(
        "busybox mkdir /tmp/www; echo {name} > /tmp/www/name; httpd -p 8080 -h /tmp/www; \
         exec httpd -f -p 8090 -h /tmp/www"
    );
    server.apply(&manifest(namespace, name, node, &script));
    let target = ["pod", "-n", namespace, name];
    server.wait_value(&target, "{.status.phase}", "Running");
    server.value(&target, "{.status.podIP}")
}

fn manifest(namespace: &str, name: &str, node: &str, script: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{ name: {name}, namespace: {namespace}, labels: {{ app: {name} }} }}
spec:
  nodeName: {node}
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: {IMAGE}
    command: ["sh", "-c", "{script}"]
    ports: [{{ name: http, containerPort: 8080 }}]
"#
    )
}

/// In the namespace `shop`, in place of the one before.
fn policy(server: &Cluster, spec: &str) {
    let lines: Vec<String> = spec.lines().map(|line| format!("  {line}")).collect();
    let spec = lines.join("\n");
    server.apply(&format!(
        "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\n\
         metadata: {{ name: rules, namespace: shop }}\nspec:\n{spec}\n"
    ));
}

/// A static busybox asks with `nc`: its `wget` needs more of a system.
fn question(address: &str, port: u16) -> String {
    format!("echo 'GET /name HTTP/1.0\n' | nc -w 2 {address} {port}")
}

fn pod_reaches(server: &Cluster, from: &str, address: &str, port: u16) -> bool {
    let (namespace, name) = from.split_once('/').unwrap();
    let script = question(address, port);
    let arguments = ["exec", "-n", namespace, name, "--", "sh", "-c", &script];
    let answer = server.try_kubectl(&arguments);
    answer.is_ok_and(|answer| answer.contains(" 200 "))
}

fn host_reaches(host: &Host, address: &str, port: u16) -> bool {
    let script = question(address, port).replace("nc ", "busybox nc ");
    let output = host.command("sh").args(["-c", &script]).output().unwrap();
    output.status.success() && all_text(&output).contains(" 200 ")
}

#[track_caller]
fn until(what: &str, expected: bool, reaches: impl Fn() -> bool) {
    wait(&format!("{what}: {expected}"), || {
        (reaches() == expected).then_some(())
    });
}

#[test]
fn policies_say_who_reaches_whom() {
    let duo = duo();
    let (server, hosts) = (&duo.server, &duo.hosts);
    let db = pod(server, "shop/db", "two");
    let web = pod(server, "shop/web", "one");
    pod(server, "front/visitor", "one");
    let near = pod(server, "shop/near", "two");
    let from = |pod: &str, port: u16| pod_reaches(server, pod, &db, port);
    for pod in ["shop/web", "front/visitor", "shop/near"] {
        until("before any policy", true, || from(pod, 8080));
    }

    policy(server, "podSelector: { matchLabels: { app: db } }");
    until("denied by default", false, || from("shop/web", 8080));
    assert!(!from("front/visitor", 8080) && !from("shop/near", 8080));
    until("its own node", true, || host_reaches(&hosts[1], &db, 8080));
    assert!(!host_reaches(&hosts[0], &db, 8080), "another node");
    for (pod, address) in [("shop/db", &web), ("shop/web", &near)] {
        until("out of it, and beside it", true, || {
            pod_reaches(server, pod, address, 8080)
        });
    }

    // By namespace, with ports; the namespace gets its label only then.
    policy(
        server,
        "podSelector: { matchLabels: { app: db } }\n\
         ingress:\n\
         - from: [{ namespaceSelector: { matchLabels: { tier: front } } }]\n\
         \x20 ports: [{ port: 8085, endPort: 8090 }, { port: http }]",
    );
    server.kubectl(&["label", "namespace", "front", "tier=front"]);
    until("by its namespace", true, || from("front/visitor", 8080));
    until("in the range", true, || from("front/visitor", 8090));
    assert!(!from("shop/web", 8080));
    server.kubectl(&["label", "namespace", "front", "tier-"]);
    until("no more", false, || from("front/visitor", 8080));

    policy(
        server,
        "podSelector: { matchLabels: { app: db } }\n\
         ingress:\n\
         - from: [{ podSelector: { matchLabels: { role: client } } }]\n\
         \x20 ports: [{ port: 8085, endPort: 8090 }]",
    );
    assert!(!from("shop/near", 8090));
    server.kubectl(&["label", "pod", "-n", "shop", "near", "web", "role=client"]);
    until("by its label", true, || from("shop/near", 8090));
    until("by its label, elsewhere", true, || from("shop/web", 8090));
    assert!(!from("shop/web", 8080), "outside of the range");
    server.kubectl(&["label", "pod", "-n", "shop", "near", "role-"]);
    until("no more", false, || from("shop/near", 8090));
    until("the other goes on", true, || from("shop/web", 8090));
}

#[test]
fn blocks_and_egress_say_whom_a_pod_reaches() {
    let duo = duo();
    let server = &duo.server;
    let db = pod(server, "shop/db", "two");
    let web = pod(server, "shop/web", "one");
    let visitor = pod(server, "front/visitor", "one");
    let from = |pod: &str, port: u16| pod_reaches(server, pod, &db, port);
    policy(server, "podSelector: { matchLabels: { app: db } }");
    until("denied by default", false, || from("front/visitor", 8080));
    let block = format!(
        "podSelector: {{ matchLabels: {{ app: db }} }}\n\
         ingress:\n\
         - from: [{{ ipBlock: {{ cidr: 10.42.0.0/16, except: [{web}/32] }} }}]"
    );
    policy(server, &block);
    until("in the block", true, || from("front/visitor", 8080));
    assert!(!from("shop/web", 8090), "excepted");

    // Whom it reaches.
    policy(
        server,
        &format!(
            "podSelector: {{}}\n\
             policyTypes: [Egress]\n\
             egress:\n\
             - to: [{{ podSelector: {{}} }}]\n\
             - to: [{{ ipBlock: {{ cidr: {visitor}/32 }} }}]\n\
             \x20 ports: [{{ port: 8090 }}]"
        ),
    );
    until("is not let out", false, || {
        pod_reaches(server, "shop/web", &visitor, 8080)
    });
    for (pod, address, port) in [
        ("shop/web", &visitor, 8090),
        ("shop/web", &db, 8080),
        ("front/visitor", &db, 8080),
    ] {
        until("is let out", true, || {
            pod_reaches(server, pod, address, port)
        });
    }
    server.kubectl(&["delete", "networkpolicy", "-n", "shop", "rules"]);
    until("no policy is left", true, || {
        pod_reaches(server, "shop/web", &visitor, 8080)
    });
}

#[test]
fn a_pod_is_isolated_from_its_first_packet_on() {
    let duo = duo();
    let server = &duo.server;
    let web = pod(server, "front/web", "one");
    for host in &duo.hosts {
        until("it answers", true, || host_reaches(host, &web, 8080));
    }
    policy(
        server,
        "podSelector: { matchLabels: { app: denied } }\npolicyTypes: [Egress]",
    );
    // It asks as soon as it runs.
    let script = format!(
        "busybox printf 'GET /name HTTP/1.0\\\\r\\\\n\\\\r\\\\n' | nc -w 5 {web} 8080 2>/dev/null | \
         busybox grep -q 200 && echo reached || echo dropped"
    );
    for (name, node, expected) in [
        ("free", "two", "reached"),
        ("denied", "two", "dropped"),
        ("denied", "one", "dropped"),
    ] {
        server.apply(&manifest("shop", name, node, &script));
        let target = ["pod", "-n", "shop", name];
        server.wait_value(&target, "{.status.phase}", "Succeeded");
        let said = server.kubectl(&["logs", "-n", "shop", name]);
        assert_eq!(said.trim(), expected, "{name} on {node}");
        server.kubectl(&["delete", "pod", "-n", "shop", name]);
    }
}

#[test]
fn what_was_enforced_is_without_agent_and_server() {
    let mut duo = duo();
    let db = pod(&duo.server, "shop/db", "two");
    let [one, two] = duo.hosts.clone();
    policy(
        &duo.server,
        "podSelector: { matchLabels: { app: db } }\ningress: [{ ports: [{ port: 8090 }] }]",
    );
    until("it is enforced", false, || host_reaches(&one, &db, 8080));
    let holds = |what: &str| {
        assert!(!host_reaches(&one, &db, 8080), "{what}");
        until(what, true, || host_reaches(&one, &db, 8090));
    };
    let file = two.data_dir.join("agent/network.policy");
    wait("it is on disk", || {
        let kept = std::process::Command::new("zcat").arg(&file).output();
        all_text(&kept.unwrap())
            .contains("shop/rules")
            .then_some(())
    });
    duo.lab.process(duo.agents[1]).kill();
    holds("without the agent");
    let server = duo.server.process;
    duo.lab.process(server).signal("STOP");
    let agent = start_agent(&mut duo.lab, &duo.server, &two, "two", &duo.token);
    holds("while the agent begins");
    let netns = format!("--net=/run/netns/{}", two.namespace);
    run("nsenter", &[&netns, "nft", "flush", "ruleset"]);
    until("mended without the server", false, || {
        host_reaches(&one, &db, 8080)
    });
    holds("mended");
    duo.lab.process(server).signal("CONT");
    let rules = ["delete", "networkpolicy", "-n", "shop", "rules"];
    duo.server.kubectl(&rules);
    until("nothing is left", true, || host_reaches(&one, &db, 8080));
    assert!(duo.lab.process(agent).terminate().success());
}
