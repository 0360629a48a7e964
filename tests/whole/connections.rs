//! What connects into pods with real kubectls: attach, forwarded ports, proxies; and tokens.

use crate::lab::{Cluster, Lab, all_text, kubectls, wait};
use crate::workloads::{IMAGE, with_images};
use std::io::{Read, Write};
use std::process::{Child, Stdio};

/// A pod whose script is fed by whoever is attached.
fn fed(name: &str, script: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{ name: {name} }}
spec:
  terminationGracePeriodSeconds: 1
  restartPolicy: Never
  containers:
  - {{ name: main, image: {IMAGE}, stdin: true, command: ["sh", "-c", "{script}"] }}
"#
    )
}

fn serve(name: &str) -> String {
    let script = "busybox mkdir -p /tmp/www/deep; echo served > /tmp/www/page; \
                  echo '<a href=/page>x</a>' > /tmp/www/deep/index.html; \
                  exec httpd -f -p 8080 -h /tmp/www";
    format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{ name: {name}, labels: {{ app: {name} }} }}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: {IMAGE}
    command: ["sh", "-c", "{script}"]
    ports: [{{ name: web, containerPort: 8080 }}]
"#
    )
}

fn running(cluster: &Cluster, name: &str) {
    cluster.wait_value(&["pod", name], "{.status.phase}", "Running");
}

/// Runs kubectl with `input` at its standard input; what it says on both outputs.
#[track_caller]
fn with_input(cluster: &Cluster, arguments: &[&str], input: &str) -> String {
    let mut child = cluster
        .kubectl_command(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        all_text(&output)
    );
    all_text(&output)
}

#[test]
fn input_of_a_client_runs_through_a_container() {
    let mut lab = Lab::new();
    let mut cluster = with_images(&mut lab, "attach");
    for (number, kubectl) in kubectls().into_iter().enumerate() {
        cluster.kubectl = kubectl;
        let name = format!("once{number}");
        let image = format!("--image={IMAGE}");
        let run = [
            "run",
            &name,
            "-i",
            "--rm",
            "--quiet",
            "--restart=Never",
            &image,
            "--",
            "cat",
        ];
        let said = with_input(&cluster, &run, "hello\nworld\n");
        assert!(said.contains("hello\nworld\n"), "{said}");

        let name = format!("reads{number}");
        cluster.apply(&fed(
            &name,
            "while read word; do echo got $word; done; echo end",
        ));
        running(&cluster, &name);
        // The input stays open for the next one who is attached.
        let mut attached = attach(&cluster, &name);
        say(&mut attached, "first\n");
        hear(&mut attached, "got first\n");
        attached.kill().unwrap();
        attached.wait().unwrap();
        let mut attached = attach(&cluster, &name);
        say(&mut attached, "second\n");
        hear(&mut attached, "got second\n");
        attached.kill().unwrap();
        attached.wait().unwrap();
        cluster.wait_log(&[&name], "got first\ngot second\n");
        running(&cluster, &name);
    }
}

fn attach(cluster: &Cluster, name: &str) -> Child {
    cluster
        .kubectl_command(&["attach", "-i", "-q", name])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn say(child: &mut Child, text: &str) {
    let stdin = child.stdin.as_mut().unwrap();
    stdin.write_all(text.as_bytes()).unwrap();
    stdin.flush().unwrap();
}

#[track_caller]
fn hear(child: &mut Child, expected: &str) {
    let mut heard = vec![0; expected.len()];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut heard)
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&heard), expected);
}

/// What a page says, asked from the cluster's host.
fn fetch(cluster: &Cluster, url: &str) -> Option<String> {
    let output = cluster
        .host
        .command("/bin/busybox")
        .args(["wget", "-q", "-O", "-", url])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then_some(text)
}

#[test]
fn ports_are_forwarded() {
    let mut lab = Lab::new();
    let mut cluster = with_images(&mut lab, "forward");
    cluster.apply(&serve("web"));
    running(&cluster, "web");
    for kubectl in kubectls() {
        cluster.kubectl = kubectl;
        let mut forwarding = cluster
            .kubectl_command(&["port-forward", "pod/web", ":8080"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // `Forwarding from 127.0.0.1:40123 -> 8080`
        let mut line = Vec::new();
        let mut byte = [0];
        let stdout = forwarding.stdout.as_mut().unwrap();
        while stdout.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
            line.push(byte[0]);
        }
        let line = String::from_utf8(line).unwrap();
        let address = line.split(' ').nth(2).unwrap_or_default().to_owned();
        let url = format!("http://{address}/page");
        let page = wait("the page comes through", || fetch(&cluster, &url));
        assert_eq!(page, "served\n");
        assert_eq!(fetch(&cluster, &url).as_deref(), Some("served\n"));
        forwarding.kill().unwrap();
        forwarding.wait().unwrap();
    }
}

#[test]
fn files_are_copied_both_ways() {
    let mut lab = Lab::new();
    let mut cluster = with_images(&mut lab, "copy");
    cluster.apply(&fed("box", "while true; do sleep 1; done"));
    running(&cluster, "box");
    let bytes: Vec<u8> = (0..8_000_000_u32)
        .map(|place| place.wrapping_mul(2_654_435_761).to_be_bytes()[0])
        .collect();
    let here = cluster.host.data_dir.join("here");
    std::fs::write(&here, &bytes).unwrap();
    for kubectl in kubectls() {
        cluster.kubectl = kubectl;
        cluster.kubectl(&["cp", here.to_str().unwrap(), "box:/tmp/there"]);
        let back = cluster.host.data_dir.join("back");
        cluster.kubectl(&["cp", "box:/tmp/there", back.to_str().unwrap()]);
        assert!(std::fs::read(&back).unwrap() == bytes, "the copy differs");
        std::fs::remove_file(&back).unwrap();
        cluster.kubectl(&["exec", "box", "--", "busybox", "rm", "/tmp/there"]);
    }
}

#[test]
fn a_node_is_debugged_from_a_pod() {
    let mut lab = Lab::new();
    let mut cluster = with_images(&mut lab, "debugged");
    let init = std::fs::read_to_string("/proc/1/comm").unwrap();
    for kubectl in kubectls() {
        cluster.kubectl = kubectl;
        let image = format!("--image={IMAGE}");
        // What it says before somebody is attached is in its log alone.
        let script = "read word; echo got $word; cat /proc/1/comm; ls -d /host/etc";
        let debug = [
            "debug",
            "node/debugged",
            "-i",
            &image,
            "--",
            "sh",
            "-c",
            script,
        ];
        let said = with_input(&cluster, &debug, "hello\n");
        for line in [init.as_str(), "/host/etc\n", "got hello\n"] {
            assert!(said.contains(line), "{line}: {said}");
        }
    }
}

#[test]
fn pods_and_nodes_are_reached_through_the_server() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "proxy");
    cluster.apply(&serve("web"));
    running(&cluster, "web");
    let raw = |path: &str| cluster.try_kubectl(&["get", "--raw", path]);
    let pods = "/api/v1/namespaces/default/pods";
    let page = wait("the page is served", || {
        raw(&format!("{pods}/web:8080/proxy/page")).ok()
    });
    assert_eq!(page, "served\n");
    // The first port of the pod, a scheme, and a link that leads through the proxy again.
    assert_eq!(raw(&format!("{pods}/web/proxy/page")).unwrap(), "served\n");
    let deep = raw(&format!("{pods}/http:web:8080/proxy/deep/")).unwrap();
    let link = format!("<a href={pods}/http:web:8080/proxy/page>x</a>\n");
    assert_eq!(deep, link);
    let refused = raw(&format!("{pods}/web:81/proxy/")).unwrap_err();
    assert!(refused.contains("connection refused"), "{refused}");
    assert_eq!(raw("/api/v1/nodes/proxy/proxy/healthz").unwrap(), "ok");
    let own = raw("/api/v1/nodes/proxy:10250/proxy/pods").unwrap();
    assert!(own.contains("\"name\":\"web\""), "{own}");
    // What is only the server's to ask of a node is not reached.
    assert!(raw("/api/v1/nodes/proxy/proxy/10.42.0.1:80").is_err());
}

#[test]
fn tokens_speak_for_service_accounts() {
    let mut lab = Lab::new();
    let mut cluster = lab.server("tokens", &[]);
    wait("the account is there", || {
        cluster
            .try_kubectl(&["get", "serviceaccount", "default"])
            .ok()
    });
    for kubectl in kubectls() {
        cluster.kubectl = kubectl;
        let token = cluster.kubectl(&["create", "token", "default", "--duration=30m"]);
        let token = format!("--token={}", token.trim());
        // A token counts only where no certificate is shown.
        let bare = cluster.host.data_dir.join("bare.kubeconfig");
        let text = std::fs::read_to_string(cluster.kubeconfig()).unwrap();
        let lines = text.lines().filter(|line| !line.contains("client-"));
        std::fs::write(&bare, lines.collect::<Vec<_>>().join("\n") + "\n").unwrap();
        let output = cluster
            .host
            .command(&cluster.kubectl)
            .args(["--kubeconfig", &bare.display().to_string(), &token])
            .args([
                "auth",
                "whoami",
                "-o",
                "jsonpath={.status.userInfo.username}",
            ])
            .output()
            .unwrap();
        assert_eq!(all_text(&output), "system:serviceaccount:default:default");
    }
    let keys = cluster.kubectl(&["get", "--raw", "/openid/v1/jwks"]);
    assert!(keys.contains("\"alg\":\"ES256\""), "{keys}");
}
