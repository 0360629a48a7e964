//! An API server that runs in the cluster beside this one, whose API kubectl finds as if it were
//! this one's.

use crate::lab::{Lab, wait};
use crate::webhooks::scripted;
use crate::workloads::with_images;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Knows one cart, and says whose it is. Believes this server alone.
const API: &str = r#"
import http.server, json, ssl
GROUP = "/apis/shop.example.test/v1"
CART = {"kind": "Cart", "apiVersion": "shop.example.test/v1", "metadata": {"name": "mine"}}
class Api(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        subject = dict(part[0] for part in self.connection.getpeercert()["subject"])
        path = self.path.split("?")[0]
        cart = dict(CART, user=self.headers["X-Remote-User"],
                    groups=self.headers.get_all("X-Remote-Group"),
                    secret=self.headers["Authorization"] or "none",
                    caller=subject["commonName"])
        answer, code = {"kind": "Status", "apiVersion": "v1", "code": 404}, 404
        if path == GROUP:
            answer, code = {"kind": "APIResourceList", "apiVersion": "v1",
                "groupVersion": "shop.example.test/v1", "resources": [
                    {"name": "carts", "singularName": "cart", "namespaced": True,
                     "kind": "Cart", "verbs": ["get", "list"]}]}, 200
        if path == GROUP + "/namespaces/default/carts/mine":
            answer, code = cart, 200
        body = json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
server = http.server.ThreadingHTTPServer(("", 8444), Api)
tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
tls.load_cert_chain("/shop/cert.pem", "/shop/key.pem")
tls.load_verify_locations("/shop/front.pem")
tls.verify_mode = ssl.CERT_REQUIRED
server.socket = tls.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"#;

#[test]
fn another_api_server_is_found_through_this_one() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "shop");
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(["shop.default.svc".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap().pem();
    let published = [
        "configmap",
        "extension-apiserver-authentication",
        "-n",
        "kube-system",
    ];
    let front = cluster.value(&published, "{.data.requestheader-client-ca-file}");
    assert!(front.contains("BEGIN CERTIFICATE"), "{front}");
    let key = key.serialize_pem();
    let files = [
        ("main.py", API),
        ("cert.pem", &*certificate),
        ("key.pem", &key),
        ("front.pem", &front),
    ];
    cluster.apply(&scripted("shop", &files));
    let bundle = STANDARD.encode(&certificate);
    cluster.apply(&format!(
        r#"
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {{ name: v1.shop.example.test }}
spec:
  group: shop.example.test
  version: v1
  groupPriorityMinimum: 1000
  versionPriority: 10
  service: {{ namespace: default, name: shop, port: 8443 }}
  caBundle: {bundle}
"#
    ));
    let service = ["apiservice", "v1.shop.example.test"];
    let status = "{.status.conditions[?(@.type==\"Available\")].status}";
    cluster.wait_value(&service, status, "True");
    let cart = ["cart", "mine"];
    wait("kubectl finds the kind", || {
        let user = cluster.value(&cart, "{.user}");
        (!user.is_empty()).then_some(())
    });
    assert_eq!(cluster.value(&cart, "{.user}"), "kubernetes-admin");
    assert_eq!(cluster.value(&cart, "{.caller}"), "front-proxy-client");
    assert_eq!(cluster.value(&cart, "{.secret}"), "none");
    let groups = cluster.value(&cart, "{.groups}");
    assert!(groups.contains("system:masters"), "{groups}");
    // Who may not here is not asked about there.
    let refused = cluster.try_kubectl(&["get", "cart", "mine", "--as=jane"]);
    let refused = refused.unwrap_err();
    assert!(
        refused.contains("cannot get resource \"carts\""),
        "{refused}"
    );
    // It goes, and that is told.
    cluster.kubectl(&["delete", "pod", "shop", "--wait"]);
    cluster.wait_value(&service, status, "False");
    let reason = "{.status.conditions[?(@.type==\"Available\")].reason}";
    cluster.wait_value(&service, reason, "MissingEndpoints");
    let refused = cluster.try_kubectl(&["get", "--raw", "/apis/shop.example.test/v1"]);
    let refused = refused.unwrap_err();
    assert!(
        refused.contains("unable to handle the request"),
        "{refused}"
    );
}
