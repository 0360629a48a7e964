//! Admission webhooks that run in the cluster: asked by the server, which is not on the pods' network,
//! through a Service.

use crate::lab::{Cluster, Lab, wait};
use crate::workloads::{IMAGE, with_images};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::path::Path;

/// Refuses what is labelled so, and gives the rest a colour.
const HOOK: &str = r#"
import base64, http.server, json, ssl
class Hook(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request = review["request"]
        labels = (request.get("object") or {}).get("metadata", {}).get("labels") or {}
        answer = {"uid": request["uid"], "allowed": True}
        if self.path.startswith("/judge") and labels.get("mood") == "bad":
            answer["allowed"] = False
            answer["status"] = {"message": "the mood is bad"}
        if self.path.startswith("/judge") and request["operation"] == "CONNECT":
            answer["allowed"] = False
            answer["status"] = {"message": "nobody runs " + request["object"]["command"][0]}
        if self.path.startswith("/colour"):
            patch = [{"op": "add", "path": "/data/colour", "value": "green"}]
            answer["patch"] = base64.b64encode(json.dumps(patch).encode()).decode()
            answer["patchType"] = "JSONPatch"
        review = {"kind": "AdmissionReview", "apiVersion": review["apiVersion"], "response": answer}
        body = json.dumps(review).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
server = http.server.ThreadingHTTPServer(("", 8444), Hook)
tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
tls.load_cert_chain("/hook/cert.pem", "/hook/key.pem")
server.socket = tls.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"#;

/// A pod `NAME` that runs a script beside its files, in `/NAME`, and a Service before its port 8444.
/// Python is the machine's own.
pub fn scripted(name: &str, files: &[(&str, &str)]) -> String {
    let files: serde_json::Map<String, serde_json::Value> = files
        .iter()
        .map(|(file, text)| ((*file).to_owned(), (*text).into()))
        .collect();
    let files = serde_json::Value::Object(files);
    let all = ["usr", "lib", "lib64"].into_iter();
    let there = all.filter(|name| Path::new(&format!("/{name}")).exists());
    let (mounts, volumes): (Vec<String>, Vec<String>) = there
        .map(|name| {
            let mount = format!("    - {{ name: {name}, mountPath: /{name}, readOnly: true }}");
            (
                mount,
                format!("  - {{ name: {name}, hostPath: {{ path: /{name} }} }}"),
            )
        })
        .unzip();
    let [mounts, volumes] = [mounts, volumes].map(|lines| lines.join("\n"));
    format!(
        r#"
apiVersion: v1
kind: Secret
metadata: {{ name: {name} }}
stringData: {files}
---
apiVersion: v1
kind: Service
metadata: {{ name: {name} }}
spec:
  selector: {{ app: {name} }}
  ports: [{{ name: https, port: 8443, targetPort: 8444 }}]
---
apiVersion: v1
kind: Pod
metadata: {{ name: {name}, labels: {{ app: {name} }} }}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: {IMAGE}
    command: ["/usr/bin/python3", "/{name}/main.py"]
    readinessProbe: {{ tcpSocket: {{ port: 8444 }}, periodSeconds: 1 }}
    volumeMounts:
    - {{ name: own, mountPath: /{name} }}
{mounts}
  volumes:
  - {{ name: own, secret: {{ secretName: {name} }} }}
{volumes}
"#
    )
}

fn webhook(path: &str, rules: &str, ca_bundle: &str) -> String {
    format!(
        r#"
- name: {path}.example.test
  clientConfig:
    service: {{ namespace: default, name: hook, port: 8443, path: /{path} }}
    caBundle: {ca_bundle}
  rules: [{{ apiGroups: [""], apiVersions: ["v1"], {rules} }}]
  sideEffects: None
  admissionReviewVersions: ["v1"]
"#
    )
}

fn config_map(name: &str, mood: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: ConfigMap
metadata: {{ name: {name}, labels: {{ mood: {mood} }} }}
data: {{ a: b }}
"#
    )
}

/// Starts the pod, and gives the bundle to trust it by once its Service leads to it.
fn hook_pod(cluster: &Cluster) -> String {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(["hook.default.svc".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap().pem();
    let key = key.serialize_pem();
    let files = [
        ("main.py", HOOK),
        ("cert.pem", &certificate),
        ("key.pem", &key),
    ];
    cluster.apply(&scripted("hook", &files));
    cluster.kubectl(&[
        "wait",
        "pod/hook",
        "--for=condition=Ready",
        "--timeout=100s",
    ]);
    let slices = ["endpointslices", "-l", "kubernetes.io/service-name=hook"];
    cluster.wait_value(&slices, "{.items[0].endpoints[0].conditions.ready}", "true");
    STANDARD.encode(&certificate)
}

#[test]
fn webhooks_run_in_the_cluster_that_asks_them() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "hooks");
    let bundle = hook_pod(&cluster);
    let colour = webhook(
        "colour",
        "operations: [CREATE], resources: [configmaps]",
        &bundle,
    );
    let judge = webhook(
        "judge",
        "operations: [CREATE, UPDATE, CONNECT], resources: [configmaps, pods/exec]",
        &bundle,
    );
    for (kind, webhook) in [("Mutating", colour), ("Validating", judge)] {
        let kind = format!("{kind}WebhookConfiguration");
        cluster.apply(&format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: {kind}\n\
             metadata: {{ name: hook }}\nwebhooks: {webhook}"
        ));
    }
    let at = lab.path("map.yaml");
    let create = |map: String| {
        std::fs::write(&at, map).unwrap();
        cluster.try_kubectl(&["apply", "-f", at.to_str().unwrap()])
    };
    // Other refusals, as of a pod that is not reached yet, may come first.
    let why = "admission webhook \"judge.example.test\" denied the request: the mood is bad";
    wait("a bad mood is refused", || {
        let created = create(config_map("bad", "bad"));
        if created.is_ok() {
            // It came before the configuration.
            cluster.kubectl(&["delete", "configmap", "bad"]);
        }
        created.err()?.contains(why).then_some(())
    });
    wait("what is good gets a colour", || {
        create(config_map("good", "good")).ok()?;
        let colour = cluster.value(&["configmap", "good"], "{.data.colour}");
        if colour != "green" {
            cluster.kubectl(&["delete", "configmap", "good"]);
        }
        (colour == "green").then_some(())
    });
    wait("who runs something is named", || {
        let refused = cluster.try_kubectl(&["exec", "hook", "--", "id"]).err()?;
        refused.contains("nobody runs id").then_some(())
    });
    // Nobody answers any more, and nothing gets in.
    cluster.kubectl(&["delete", "pod", "hook", "--wait"]);
    let why = "failed calling webhook \"colour.example.test\": failed to call webhook: Post \
               \"https://hook.default.svc:8443/colour?timeout=10s\": no endpoints available for \
               service \"hook\"";
    let refused = wait("nobody is behind the Service", || {
        let refused = create(config_map("late", "good")).err()?;
        refused
            .contains("no endpoints available")
            .then_some(refused)
    });
    assert!(refused.contains(why), "{refused}");
}
