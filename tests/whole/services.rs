//! Services, from where users reach them: pods, the node itself, and machines outside. Endpoints
//! are written by hand, so that each test says which there are.

use crate::lab::{Cluster, Host, Lab, wait};
use crate::workloads::{IMAGE, with_images};
use std::collections::BTreeSet;

/// Answers with its name and with who asked.
pub fn web(name: &str) -> String {
    let script = "mkdir -p /www/cgi-bin && printf '#!/bin/sh\\necho Content-Type: text/plain\\n\
                  echo\\necho $(hostname) $REMOTE_ADDR\\n' > /www/cgi-bin/who && \
                  touch /www/x && /bin/busybox chmod 755 /www/cgi-bin/who && \
                  exec httpd -f -p 8080 -h /www";
    format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{ name: {name}, labels: {{ app: web }} }}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: {IMAGE}
    command: ["sh", "-c", {script:?}]
"#
    )
}

pub fn service(spec: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: Service
metadata: {{ name: web }}
spec:
  ports: [{{ name: http, port: 80, targetPort: 8080 }}]
  {spec}
"#
    )
}

/// Of pods of this node, and of one address on another.
pub fn endpoints(cluster: &Cluster, pods: &[&str], elsewhere: Option<&str>) {
    let node = cluster.value(&["nodes"], "{.items[0].metadata.name}");
    let mut items = Vec::new();
    for pod in pods {
        let address = cluster.value(&["pod", pod], "{.status.podIP}");
        items.push(format!(
            "{{ addresses: [\"{address}\"], nodeName: {node}, conditions: {{ ready: true }} }}"
        ));
    }
    if let Some(address) = elsewhere {
        items.push(format!(
            "{{ addresses: [\"{address}\"], nodeName: other, conditions: {{ ready: true }} }}"
        ));
    }
    cluster.apply(&format!(
        r#"
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{ name: web-by-hand, labels: {{ kubernetes.io/service-name: web }} }}
addressType: IPv4
ports: [{{ name: http, port: 8080, protocol: TCP }}]
endpoints: [{}]
"#,
        items.join(", ")
    ));
}

/// Who answered and whom it saw; None when nobody did.
pub fn ask(host: &Host, url: &str) -> Option<(String, String)> {
    let mut command = host.command("curl");
    let output = command.args(["-s", "-m", "10", url]).output().unwrap();
    parse(&String::from_utf8_lossy(&output.stdout))
}

pub fn ask_in_pod(cluster: &Cluster, pod: &str, url: &str) -> Option<(String, String)> {
    // busybox's own option of a timeout breaks it.
    let ask = format!(
        "wget -q -O - {url} & n=0; while kill -0 $! >/dev/null 2>&1 && test $n -lt 100; \
                       do n=$((n+1)); sleep 0.1; done; kill $! 2>/dev/null; true"
    );
    let arguments = ["exec", pod, "--", "sh", "-c", &ask];
    parse(&cluster.try_kubectl(&arguments).ok()?)
}

fn parse(text: &str) -> Option<(String, String)> {
    let (name, address) = text.lines().next()?.split_once(' ')?;
    let address = address.trim_start_matches("[::ffff:").trim_end_matches(']');
    Some((name.to_owned(), address.to_owned()))
}

/// Exit code of curl: 7 is refused, 28 is no answer.
fn fails(host: &Host, url: &str) -> i32 {
    let mut command = host.command("curl");
    let output = command.args(["-s", "-m", "4", url]).output().unwrap();
    output.status.code().unwrap()
}

pub fn names(mut ask: impl FnMut() -> Option<(String, String)>) -> BTreeSet<String> {
    let answers = (0..24).map(|_| ask().expect("an answer").0);
    answers.collect()
}

pub fn running(cluster: &Cluster, pods: &[&str]) {
    for pod in pods {
        cluster.apply(&web(pod));
    }
    for pod in pods {
        cluster.wait_value(&["pod", pod], "{.status.phase}", "Running");
        let address = cluster.value(&["pod", pod], "{.status.podIP}");
        wait("its server answers", || {
            ask(&cluster.host, &format!("http://{address}:8080/cgi-bin/who"))
        });
    }
}

#[test]
fn a_service_is_reached_from_pods_the_node_and_outside() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "reach");
    let outside = lab.host("outside");
    running(&cluster, &["one", "two"]);
    cluster.apply(&service("type: NodePort"));
    endpoints(&cluster, &["one", "two"], None);
    let address = cluster.value(&["service", "web"], "{.spec.clusterIP}");
    let port = cluster.value(&["service", "web"], "{.spec.ports[0].nodePort}");
    let within = format!("http://{address}/cgi-bin/who");
    let at_node = format!("http://{}:{port}/cgi-bin/who", cluster.host.address);
    let both: BTreeSet<_> = ["one", "two"].map(str::to_owned).into();
    wait("it is routed", || ask(&cluster.host, &within));
    assert_eq!(names(|| ask(&cluster.host, &within)), both);
    assert_eq!(names(|| ask(&cluster.host, &at_node)), both);
    assert_eq!(names(|| ask(&outside, &at_node)), both);
    // Also itself: it sees the node then, and else who asked.
    let own = cluster.value(&["pod", "one"], "{.status.podIP}");
    assert_eq!(names(|| ask_in_pod(&cluster, "one", &within)), both);
    wait("it was the other that answered", || {
        let (name, from) = ask_in_pod(&cluster, "one", &within)?;
        assert_eq!(from == own, name == "two", "{name} saw {from}");
        (name == "two").then_some(())
    });

    endpoints(&cluster, &["two"], None);
    wait("one is left out", || {
        (names(|| ask(&cluster.host, &within)).len() == 1).then_some(())
    });
    assert_eq!(ask_in_pod(&cluster, "two", &within).unwrap().0, "two");
    endpoints(&cluster, &[], None);
    wait("it is refused", || {
        (fails(&cluster.host, &within) == 7).then_some(())
    });
    assert_eq!(fails(&outside, &at_node), 7);
    assert_eq!(fails(&cluster.host, &format!("http://{address}:81/")), 7);
    assert_eq!(ask_in_pod(&cluster, "one", &within), None);

    // Someone takes all rules away.
    endpoints(&cluster, &["one"], None);
    wait("it is routed again", || ask(&cluster.host, &within));
    let mut flush = cluster.host.command("nft");
    assert!(flush.args(["flush", "ruleset"]).status().unwrap().success());
    wait("it is routed after a flush", || ask(&cluster.host, &within));
    // And the agent goes and comes, with what it made still there.
    lab.process(cluster.process).kill();
    assert_eq!(ask(&cluster.host, &within).unwrap().0, "one");
}

#[test]
fn local_policy_affinity_and_a_load_balancer() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "local");
    let outside = lab.host("outside");
    running(&cluster, &["one", "two", "three"]);
    let local = "type: LoadBalancer\n  externalTrafficPolicy: Local";
    cluster.apply(&service(local));
    endpoints(&cluster, &["one"], None);
    let port = cluster.value(&["service", "web"], "{.spec.ports[0].nodePort}");
    let check = cluster.value(&["service", "web"], "{.spec.healthCheckNodePort}");
    let at_node = format!("http://{}:{port}/cgi-bin/who", cluster.host.address);
    let (_, from) = wait("it is routed", || ask(&outside, &at_node));
    assert_eq!(from, outside.address, "the client's address is kept");
    let check = format!("http://{}:{check}/", cluster.host.address);
    let health = |url: &str| {
        let mut command = outside.command("curl");
        let output = command.args(["-s", "-w", "%{http_code}", url]).output();
        String::from_utf8_lossy(&output.unwrap().stdout).into_owned()
    };
    wait("the node says that it has an endpoint", || {
        let said = health(&check);
        (said.contains("\"localEndpoints\": 1") && said.ends_with("200")).then_some(())
    });
    let mut mode = cluster.host.command("curl");
    let mode = mode
        .args(["-s", "http://localhost:10249/proxyMode"])
        .output();
    assert_eq!(mode.unwrap().stdout, b"nftables");
    let timeout = "/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_close_wait";
    let timeout = cluster.host.command("cat").arg(timeout).output();
    assert_eq!(timeout.unwrap().stdout, b"3600\n");
    let of_node = format!("http://{}:10256/healthz", cluster.host.address);
    assert!(health(&of_node).ends_with("200"), "{}", health(&of_node));

    // An address of the node is that of the balancer.
    let ingress = "{.status.loadBalancer.ingress[*].ip}";
    cluster.wait_value(&["service", "web"], ingress, &cluster.host.address);
    let balanced = format!("http://{}/cgi-bin/who", cluster.host.address);
    let (_, from) = wait("the balancer's address is routed", || {
        ask(&outside, &balanced)
    });
    assert_eq!(from, outside.address);

    // Only elsewhere: outside is not answered, the node is sent there.
    endpoints(&cluster, &[], Some("10.99.0.77"));
    wait("the node says that it has none", || {
        health(&check).ends_with("503").then_some(())
    });
    assert_eq!(fails(&outside, &at_node), 28);
    assert_eq!(fails(&outside, &balanced), 28);

    cluster.apply(&service("type: NodePort\n  sessionAffinity: ClientIP"));
    let all = ["one", "two", "three"];
    endpoints(&cluster, &all, None);
    let address = cluster.value(&["service", "web"], "{.spec.clusterIP}");
    let within = format!("http://{address}/cgi-bin/who");
    // The node may hear of the endpoints before it hears of the affinity.
    let first = wait("it is routed to one of them", || {
        ask(&cluster.host, &within)?;
        let names = names(|| ask(&cluster.host, &within));
        (names.len() == 1).then(|| names.into_iter().next())?
    });
    let rest: Vec<_> = all.into_iter().filter(|name| *name != first).collect();
    endpoints(&cluster, &rest, None);
    let (second, _) = wait("another answers", || {
        ask(&cluster.host, &within).filter(|(name, _)| *name != first)
    });
    assert_eq!(names(|| ask(&cluster.host, &within)), [second].into());
}
