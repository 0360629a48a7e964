//! What an Ingress controller of the ecosystem is made of and lives by: its class, its rights, its
//! Service, the Ingresses that it reads, and the one part of them that it writes.

use crate::lab::{Cluster, Lab};

/// Shaped like the published manifests of controllers, without the Deployment.
const CONTROLLER: &str = "
apiVersion: v1
kind: Namespace
metadata: { name: front }
---
apiVersion: v1
kind: ServiceAccount
metadata: { name: front, namespace: front }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: { name: front }
rules:
- apiGroups: [networking.k8s.io]
  resources: [ingresses, ingressclasses]
  verbs: [get, list, watch]
- apiGroups: [networking.k8s.io]
  resources: [ingresses/status]
  verbs: [get, patch, update]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: { name: front }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: front }
subjects: [{ kind: ServiceAccount, name: front, namespace: front }]
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata:
  name: front
  annotations: { ingressclass.kubernetes.io/is-default-class: 'true' }
spec: { controller: example.com/front }
---
apiVersion: v1
kind: Service
metadata: { name: front, namespace: front }
spec:
  type: LoadBalancer
  externalTrafficPolicy: Local
  ipFamilyPolicy: SingleStack
  selector: { app: front }
  ports:
  - { name: http, port: 80, targetPort: http, appProtocol: http }
  - { name: https, port: 443, targetPort: https, appProtocol: https }
";

/// Where a pod of it would be.
const READY: &str = "
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: front-by-hand
  namespace: front
  labels: { kubernetes.io/service-name: front }
addressType: IPv4
ports: [{ name: http, port: 8080 }]
endpoints:
- { addresses: [10.42.0.250], nodeName: gateway, conditions: { ready: true } }
";

const SHOP: &str = "
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: { name: shop }
spec:
  tls: [{ hosts: [shop.example.com], secretName: shop-tls }]
  rules:
  - host: shop.example.com
    http:
      paths:
      - path: /
        pathType: Prefix
        backend: { service: { name: shop, port: { number: 80 } } }
      - path: /pay
        pathType: Exact
        backend: { service: { name: pay, port: { name: http } } }
";

/// As the account of the controller.
fn as_controller(cluster: &Cluster, arguments: &[&str]) -> Result<String, String> {
    let account = ["--as", "system:serviceaccount:front:front"];
    cluster.try_kubectl(&[arguments, &account].concat())
}

fn refusal(cluster: &Cluster, patch: &str) -> String {
    let patch = ["patch", "ingress", "shop", "--type", "json", "-p", patch];
    let dry_run = ["--dry-run=server"];
    cluster
        .try_kubectl(&[&patch[..], &dry_run].concat())
        .unwrap_err()
}

#[test]
fn what_an_ingress_controller_is_made_of_and_lives_by() {
    let mut lab = Lab::new();
    let cluster = lab.cluster("gateway", &[]);
    let first = cluster.apply(CONTROLLER);
    assert_eq!(first.matches("created").count(), 6, "{first}");
    let again = cluster.apply(CONTROLLER);
    assert_eq!(again.matches("unchanged").count(), 6, "{again}");

    // Its Service is reached at the nodes that have pods of it, which say so.
    let service = ["-n", "front", "service", "front"];
    let ingress = "{.status.loadBalancer.ingress[*].ip}";
    assert_eq!(cluster.value(&service, ingress), "");
    cluster.apply(READY);
    cluster.wait_value(&service, ingress, &cluster.host.address);
    let check = cluster.value(&service, "{.spec.healthCheckNodePort}");
    assert!(check.parse::<u16>().is_ok(), "{check}");

    // Who names no class gets the one that is default.
    cluster.apply(SHOP);
    let class = "{.spec.ingressClassName}";
    assert_eq!(cluster.value(&["ingress", "shop"], class), "front");

    // The controller tells where it is reached, and writes nothing else.
    let address = format!(
        r#"{{"status":{{"loadBalancer":{{"ingress":[{{"ip":"{}"}}]}}}}}}"#,
        cluster.host.address
    );
    let patch = ["patch", "ingress", "shop", "--type", "merge", "-p"];
    let status = [&patch[..], &[&address, "--subresource", "status"]].concat();
    as_controller(&cluster, &status).unwrap();
    let class = r#"{"spec":{"ingressClassName":"other"}}"#;
    let refused = as_controller(&cluster, &[&patch[..], &[class]].concat());
    assert!(refused.unwrap_err().contains("Forbidden"));
    let shown = as_controller(&cluster, &["get", "ingress", "shop"]).unwrap();
    let row: Vec<_> = shown.lines().nth(1).unwrap().split_whitespace().collect();
    let address = cluster.host.address.as_str();
    assert_eq!(
        row[..6],
        ["shop", "front", "shop.example.com", address, "80,", "443"],
        "{shown}"
    );
    let described = cluster.kubectl(&["describe", "ingress", "shop"]);
    assert!(described.contains("shop-tls terminates shop.example.com"));

    // What no controller could serve is refused, each with the field.
    let path = "/spec/rules/0/http/paths/0";
    let wrong = |place: &str, value: &str| {
        let patch = format!(r#"[{{"op":"replace","path":"{path}{place}","value":{value}}}]"#);
        refusal(&cluster, &patch)
    };
    let relative = wrong("/path", "\"pay\"");
    assert!(
        relative.contains(
            "spec.rules[0].http.paths[0].path: Invalid value: \"pay\": must be an absolute path"
        ),
        "{relative}"
    );
    let kind = wrong("/pathType", "\"Regex\"");
    assert!(
        kind.contains("paths[0].pathType: Unsupported value: \"Regex\""),
        "{kind}"
    );
    let port = wrong("/backend/service/port", "{\"number\":80,\"name\":\"http\"}");
    assert!(
        port.contains("backend: Invalid value: \"\": cannot set both port name & port number"),
        "{port}"
    );
    let host = refusal(
        &cluster,
        r#"[{"op":"replace","path":"/spec/rules/0/host","value":"10.0.0.1"}]"#,
    );
    assert!(
        host.contains("spec.rules[0].host: Invalid value: \"10.0.0.1\": must be a DNS name"),
        "{host}"
    );
}
