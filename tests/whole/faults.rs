//! What the edge does to a cluster: killed agents, killed servers, cut links.

use crate::lab::{Cluster, Lab, import, run, wait};
use crate::pictures;
use crate::workloads::{IMAGE, IMAGE_2, web, with_images};
use std::time::Duration;

/// Seconds of toleration in tests that wait for an eviction: upstream's default is 300.
fn impatient(replicas: u32) -> String {
    let tolerations = "      tolerations:
      - { key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 2 }
      - { key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 2 }
      containers:";
    web(IMAGE, replicas).replace("      containers:", tolerations)
}

fn restarts(cluster: &Cluster) -> String {
    let path = "{range .items[*]}{.metadata.name} {.status.containerStatuses[0].restartCount} \
                {.status.containerStatuses[0].containerID}{\"\\n\"}{end}";
    cluster.value(&["pods"], path)
}

#[test]
fn killing_the_agent_restarts_no_container_and_loses_no_log_line() {
    let mut lab = Lab::new();
    let server = lab.server("server", &[]);
    let host = lab.host("node");
    let token = token(&server);
    let agent = start_agent(&mut lab, &server, &host, "node", &token);
    lab.wait_ready(&server, "node");
    import(&host, &pictures::busybox(&lab.path(""), IMAGE));
    server.apply(&format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{ name: count }}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: count
    image: {IMAGE}
    command: ["sh", "-c", "i=0; while true; do echo $i; i=$((i+1)); sleep 0.02; done"]
"#
    ));
    server.wait_value(&["pod", "count"], "{.status.phase}", "Running");
    let before = restarts(&server);
    let mut agent = agent;
    for _ in 0..3 {
        lab.process(agent).kill();
        agent = start_agent(&mut lab, &server, &host, "node", &token);
        wait("logs come again", || {
            server.try_kubectl(&["logs", "count", "--tail=1"]).ok()
        });
        assert_eq!(restarts(&server), before, "no container restarted");
    }
    let log = wait("logs come again", || {
        server.try_kubectl(&["logs", "count"]).ok()
    });
    for (expected, line) in log.lines().enumerate() {
        assert_eq!(line, expected.to_string(), "every line is there, once");
    }
    assert!(log.lines().count() > 10, "{log}");
    assert!(lab.process(agent).terminate().success());
}

#[test]
fn a_killed_server_completes_its_rollout() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "killed");
    // A fast machine would be through before a look at it: each step takes a while.
    let slow = web(IMAGE, 4).replace("  replicas: 4", "  replicas: 4\n  minReadySeconds: 2");
    cluster.apply(&slow);
    cluster.rolled_out("deployment/web");
    let container = format!("web={IMAGE_2}");
    cluster.kubectl(&["set", "image", "deployment/web", &container]);
    wait("the rollout is under way", || {
        let updated = cluster.value(&["deployment", "web"], "{.status.updatedReplicas}");
        (!matches!(updated.as_str(), "" | "0" | "4")).then_some(())
    });
    lab.process(cluster.process).kill();
    let data_dir = cluster.host.data_dir.display().to_string();
    lab.spawn(
        &cluster.host.clone(),
        &["up", "--data-dir", &data_dir, "--node-name", "killed"],
    );
    wait("the server answers again", || {
        cluster.try_kubectl(&["get", "--raw", "/readyz"]).ok()
    });
    cluster.rolled_out("deployment/web");
    let images = "{.items[*].spec.containers[0].image}";
    wait("only new pods are left", || {
        (cluster.value(&["pods"], images) == [IMAGE_2; 4].join(" ")).then_some(())
    });
}

#[test]
fn pods_of_a_lost_node_move_and_the_node_heals() {
    let mut lab = Lab::new();
    let server = lab.server("server", &["--node-monitor-grace-period", "20s"]);
    let token = token(&server);
    let archive = pictures::busybox(&lab.path(""), IMAGE);
    let mut nodes = Vec::new();
    for name in ["near", "far"] {
        let host = lab.host(name);
        start_agent(&mut lab, &server, &host, name, &token);
        lab.wait_ready(&server, name);
        import(&host, &archive);
        nodes.push(host);
    }
    server.kubectl(&["cordon", "near"]);
    server.apply(&impatient(2));
    server.kubectl(&["rollout", "status", "deployment/web", "--timeout=100s"]);
    let on = "{.items[*].spec.nodeName}";
    assert_eq!(server.value(&["pods"], on), "far far");
    server.kubectl(&["uncordon", "near"]);

    lab.set_link(&nodes[1], false);
    let ready = "{.status.conditions[?(@.type==\"Ready\")].status}";
    server.wait_value(&["node", "far"], ready, "Unknown");
    let row = server.kubectl(&["get", "node", "far"]);
    assert!(row.contains("NotReady"), "{row}");
    let taints = "{.spec.taints[*].effect}";
    wait("both taints are there", || {
        let found = server.value(&["node", "far"], taints);
        (found.contains("NoSchedule") && found.contains("NoExecute")).then_some(())
    });
    server.wait_value(&["deployment", "web"], "{.status.readyReplicas}", "2");
    wait("the pods run on the node that is left", || {
        let fields = "--field-selector=spec.nodeName=near";
        let phases = server.value(&["pods", fields], "{.items[*].status.phase}");
        (phases == "Running Running").then_some(())
    });
    server.wait_events(&["NodeNotReady", "TaintManagerEviction"]);

    lab.set_link(&nodes[1], true);
    server.wait_value(&["node", "far"], ready, "True");
    server.wait_value(&["node", "far"], "{.spec.taints}", "");
    wait("what was evicted is gone", || {
        let names = server.kubectl(&["get", "pods", "-o", "name"]);
        (names.lines().count() == 2).then_some(())
    });
}

#[test]
fn a_wiped_node_enrols_again_under_its_name() {
    let mut lab = Lab::new();
    let server = lab.server("server", &[]);
    let host = lab.host("node");
    let agent = start_agent(&mut lab, &server, &host, "node", &token(&server));
    lab.wait_ready(&server, "node");
    lab.process(agent).kill();
    let data_dir = host.data_dir.display().to_string();
    run(
        "ip",
        &[
            "netns",
            "exec",
            &host.namespace,
            crate::lab::coracle(),
            "wipe",
            "--data-dir",
            &data_dir,
        ],
    );
    std::fs::remove_dir_all(&host.data_dir).unwrap();
    let before = server.value(
        &["lease", "node", "-n", "kube-node-lease"],
        "{.spec.renewTime}",
    );
    start_agent(&mut lab, &server, &host, "node", &token(&server));
    wait("it renews its lease again", || {
        let renewed = server.value(
            &["lease", "node", "-n", "kube-node-lease"],
            "{.spec.renewTime}",
        );
        (!renewed.is_empty() && renewed != before).then_some(())
    });
    lab.wait_ready(&server, "node");
    let signed = server.kubectl(&["get", "certificatesigningrequests"]);
    assert!(signed.contains("Approved,Issued"), "{signed}");
}

/// A certificate of the node that has lived most of its life and ends in some seconds.
#[allow(clippy::disallowed_methods)] // The test makes a certificate around the present.
fn dying_certificate(server: &Cluster, node: &str) -> (String, Duration) {
    const LEFT: Duration = Duration::from_secs(30);
    let pki = server.host.data_dir.join("server/pki");
    let read = |name: &str| std::fs::read_to_string(pki.join(name)).unwrap();
    let authority = rcgen::KeyPair::from_pem(&read("ca.key")).unwrap();
    let issuer = rcgen::Issuer::from_ca_cert_pem(&read("ca.crt"), authority).unwrap();
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    let (organization, common) = (rcgen::DnType::OrganizationName, rcgen::DnType::CommonName);
    params.distinguished_name.push(organization, "system:nodes");
    params
        .distinguished_name
        .push(common, format!("system:node:{node}"));
    params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + (now - Duration::from_secs(3600));
    params.not_after = epoch + (now + LEFT);
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    (key.serialize_pem() + &certificate.pem(), LEFT)
}

#[test]
fn a_certificate_that_runs_out_is_renewed_in_the_running_agent() {
    let mut lab = Lab::new();
    let server = lab.server("server", &[]);
    let host = lab.host("node");
    let token = token(&server);
    let agent = start_agent(&mut lab, &server, &host, "node", &token);
    lab.wait_ready(&server, "node");
    assert!(lab.process(agent).terminate().success());

    let file = host.data_dir.join("agent/pki/client.pem");
    let (dying, left) = dying_certificate(&server, "node");
    let over = crate::lab::now() + left;
    std::fs::write(&file, &dying).unwrap();
    let agent = start_agent(&mut lab, &server, &host, "node", &token);
    wait("the agent has another certificate", || {
        (std::fs::read_to_string(&file).unwrap() != dying).then_some(())
    });
    wait("the old one has run out", || {
        (crate::lab::now() > over).then_some(())
    });
    let lease = ["lease", "node", "-n", "kube-node-lease"];
    let renewed = server.value(&lease, "{.spec.renewTime}");
    wait("the node goes on renewing its lease", || {
        (server.value(&lease, "{.spec.renewTime}") != renewed).then_some(())
    });
    assert!(!lab.process(agent).has_ended());
}

#[test]
fn a_token_that_is_wrong_or_deleted_enrols_nobody() {
    let mut lab = Lab::new();
    let server = lab.server("server", &[]);
    let token = token(&server);
    let data_dir = server.host.data_dir.display().to_string();
    let listed = coracle_on(&server, &["token", "list", "--data-dir", &data_dir]);
    let id = listed
        .lines()
        .nth(1)
        .unwrap()
        .split_whitespace()
        .next()
        .unwrap()
        .to_owned();
    assert!(token.contains(&id) && !listed.contains(&token), "{listed}");
    coracle_on(&server, &["token", "delete", &id, "--data-dir", &data_dir]);
    let host = lab.host("node");
    let agent = start_agent(&mut lab, &server, &host, "node", &token);
    wait("the agent says why", || {
        lab.process(agent)
            .log_text()
            .contains("token")
            .then_some(())
    });
    assert!(server.try_kubectl(&["get", "node", "node"]).is_err());
}

fn coracle_on(server: &Cluster, arguments: &[&str]) -> String {
    let output = server
        .host
        .command(crate::lab::coracle())
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", crate::lab::all_text(&output));
    String::from_utf8(output.stdout).unwrap()
}

pub fn token(server: &Cluster) -> String {
    let data_dir = server.host.data_dir.display().to_string();
    coracle_on(server, &["token", "create", "--data-dir", &data_dir])
        .trim()
        .to_owned()
}

pub fn start_agent(
    lab: &mut Lab,
    server: &Cluster,
    host: &crate::lab::Host,
    name: &str,
    token: &str,
) -> usize {
    let url = format!("https://{}:6443", server.host.address);
    let data_dir = host.data_dir.display().to_string();
    lab.spawn(
        host,
        &[
            "agent",
            "--server",
            &url,
            "--token",
            token,
            "--node-name",
            name,
            "--data-dir",
            &data_dir,
        ],
    )
}
