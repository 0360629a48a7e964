//! What depends on the settings follows them across starts.

use super::*;
use crate::authenticate::User;
use crate::config::Limits;
use crate::{Config, Server};
use coracle_store::Store;
use std::sync::Arc;

async fn get(api: &InProcess, path: &str) -> Value {
    let (status, body) = send(api, Method::GET, path, None).await.unwrap();
    assert_eq!(status, StatusCode::OK, "{path}");
    serde_json::from_slice(&body).unwrap()
}

fn settings(address: &str, cidr: &str) -> Settings {
    Settings {
        service_cidr: cidr.to_owned(),
        advertise_address: address.parse().unwrap(),
        port: 6443,
        ca_pem: "a certificate".to_owned(),
        front_proxy_ca_pem: "another".to_owned(),
        cluster_dns: None,
        pod_encryption: None,
    }
}

fn now() -> Timestamp {
    "2026-06-01T10:00:00Z".parse().unwrap()
}

const SLICE: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";
const SERVICE: &str = "/api/v1/namespaces/default/services/kubernetes";

struct Site {
    api: InProcess,
    server: Server,
    _directory: tempfile::TempDir,
}

#[allow(clippy::disallowed_methods)] // The test's clock.
async fn site(cidr: &str) -> Site {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(coracle_store::Config::new(directory.path().join("store"))).unwrap();
    let config = Config {
        data_dir: directory.path().to_owned(),
        listen: "127.0.0.1:0".parse().unwrap(),
        advertise_address: None,
        host_name: "edge".to_owned(),
        tls_sans: Vec::new(),
        service_cidr: cidr.to_owned(),
        cluster_dns: None,
        pod_encryption: None,
        limits: Limits::default(),
        event_ttl: crate::config::EVENT_TTL,
        audit: None,
        metrics: true,
        at_rest: None,
        access: crate::access::Settings::default(),
        admission: Default::default(),
        clock: Arc::new(jiff::Timestamp::now),
    };
    let server = Server::build(config, store).await.unwrap();
    let mut user = User::named("admin");
    user.groups.push("system:masters".to_owned());
    Site {
        api: server.in_process(user),
        server,
        _directory: directory,
    }
}

#[tokio::test]
async fn what_depends_on_the_settings_follows_them() {
    let site = site("10.43.0.0/16").await;
    let (api, slice, service) = (site.api.clone(), SLICE, SERVICE);

    reconcile(api.clone(), &settings("192.168.1.5", "10.43.0.0/16"), now())
        .await
        .unwrap();
    assert_eq!(
        get(&api, slice).await["endpoints"][0]["addresses"][0],
        "192.168.1.5"
    );
    let before = get(&api, service).await;
    reconcile(api.clone(), &settings("192.168.1.6", "10.43.0.0/16"), now())
        .await
        .unwrap();
    assert_eq!(
        get(&api, slice).await["endpoints"][0]["addresses"][0],
        "192.168.1.6"
    );
    assert_eq!(
        before["metadata"]["uid"],
        get(&api, service).await["metadata"]["uid"]
    );
    assert_eq!(
        get(&api, service).await["spec"]["ports"][0]["targetPort"],
        6443
    );

    reconcile(api.clone(), &settings("fd00::5", "10.43.0.0/16"), now())
        .await
        .unwrap();
    assert_eq!(
        get(&api, slice).await["addressType"],
        "IPv6",
        "made anew: it cannot change"
    );
}

#[tokio::test]
async fn what_somebody_does_to_them_while_the_server_runs_is_mended() {
    let site = site("10.43.0.0/16").await;
    let api = &site.api;
    let endpoints = "/api/v1/namespaces/default/endpoints/kubernetes";
    let (settings, own) = (settings("192.168.1.5", "10.43.0.0/16"), "192.168.1.5");
    reconcile(api.clone(), &settings, now()).await.unwrap();
    for path in [SLICE, endpoints, SERVICE] {
        let (status, _) = send(api, Method::DELETE, path, None).await.unwrap();
        assert_eq!(status, StatusCode::OK, "{path}");
    }
    look(api, &settings, now()).await.unwrap();
    get(api, SERVICE).await;
    assert_eq!(get(api, SLICE).await["endpoints"][0]["addresses"][0], own);
    let mut forged = Object::from_value(get(api, endpoints).await).unwrap();
    forged.set(
        &["subsets"],
        json!([{ "addresses": [{ "ip": "192.0.2.1" }] }]),
    );
    forged.set(&["metadata", "labels"], json!({}));
    write(api, Method::PUT, endpoints, Some(&forged))
        .await
        .unwrap();
    look(api, &settings, now()).await.unwrap();
    let mended = get(api, endpoints).await;
    assert_eq!(mended["subsets"][0]["addresses"][0]["ip"], own);
    let skip = "endpointslice.kubernetes.io/skip-mirror";
    assert_eq!(mended["metadata"]["labels"][skip], "true");
    // What is in order is not written.
    look(api, &settings, now()).await.unwrap();
    assert_eq!(get(api, endpoints).await, mended);
}

/// Somebody who may make them anew, but not read them.
async fn blind(site: &Site) -> InProcess {
    let rules = json!([{
        "apiGroups": ["", "discovery.k8s.io"], "resources": ["*"],
        "verbs": ["create", "delete", "update"],
    }]);
    let api = acting_as(site, "blind", rules).await;
    let missing = "/api/v1/namespaces/default/services/missing";
    let deleted = send(&api, Method::DELETE, missing, None).await.unwrap();
    assert_eq!(deleted.0, StatusCode::NOT_FOUND);
    api
}

/// Somebody who may do what the rules say.
async fn acting_as(site: &Site, name: &str, rules: Value) -> InProcess {
    let named = |kind: &str| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
            "metadata": { "name": name },
        })
    };
    let mut role = named("ClusterRole");
    role["rules"] = rules;
    let mut binding = named("ClusterRoleBinding");
    let group = "rbac.authorization.k8s.io";
    binding["roleRef"] = json!({ "apiGroup": group, "kind": "ClusterRole", "name": name });
    binding["subjects"] = json!([{ "apiGroup": group, "kind": "User", "name": name }]);
    for (plural, object) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        let collection = format!("/apis/{group}/v1/{plural}");
        let object = Object::from_value(object);
        let made = send(&site.api, Method::POST, &collection, object.as_ref()).await;
        assert_eq!(made.unwrap().0, StatusCode::CREATED);
    }
    // Nothing follows the roles: the server does not run.
    site.server.api.access.load();
    site.server.in_process(User::named(name))
}

#[tokio::test]
async fn of_what_cannot_be_read_nothing_is_made_anew() {
    let site = site("10.43.0.0/16").await;
    let settings = settings("192.168.1.5", "10.43.0.0/16");
    reconcile(site.api.clone(), &settings, now()).await.unwrap();
    let before = get(&site.api, SLICE).await;
    let failed = ensure(&blind(&site).await, endpoint_slice(&settings)).await;
    let error = failed.unwrap_err().source.to_string();
    assert!(error.contains("403"), "{error}");
    assert_eq!(get(&site.api, SLICE).await, before);
}

fn with_dns(cidr: &str, addresses: &[&str], domain: &str) -> Settings {
    let addresses = addresses.iter().map(|text| text.parse().unwrap());
    Settings {
        cluster_dns: Some(ClusterDns {
            addresses: addresses.collect(),
            domain: domain.to_owned(),
        }),
        ..settings("192.168.1.5", cidr)
    }
}

const DNS: &str = "/api/v1/namespaces/kube-system/services/kube-dns";

#[tokio::test]
async fn the_service_of_the_clusters_dns_is_as_upstreams_and_follows_the_settings() {
    let both = "10.43.0.0/16,fd43::/112";
    let site = site(both).await;
    let api = site.api.clone();
    reconcile(api.clone(), &with_dns(both, &[], "cluster.local"), now())
        .await
        .unwrap();
    let made = get(&api, DNS).await;
    let spec = &made["spec"];
    assert_eq!(spec["clusterIPs"], json!(["10.43.0.10", "fd43::a"]));
    let ports = spec["ports"].as_array().unwrap().iter();
    let ports: Vec<_> = ports
        .map(|port| {
            (
                port["name"].as_str(),
                port["protocol"].as_str(),
                port["port"].as_i64(),
            )
        })
        .collect();
    assert_eq!(
        ports,
        [
            (Some("dns"), Some("UDP"), Some(53)),
            (Some("dns-tcp"), Some("TCP"), Some(53)),
        ]
    );
    let labels = &made["metadata"]["labels"];
    assert_eq!(labels["k8s-app"], "kube-dns");
    assert_eq!(labels["kubernetes.io/name"], "CoreDNS");
    assert_eq!(labels["kubernetes.io/cluster-service"], "true");
    let annotations = &made["metadata"]["annotations"];
    assert_eq!(annotations["dns.coracle/cluster-domain"], "cluster.local");

    let again = with_dns(both, &[], "edge.example");
    reconcile(api.clone(), &again, now()).await.unwrap();
    let renamed = get(&api, DNS).await;
    assert_eq!(renamed["metadata"]["uid"], made["metadata"]["uid"]);
    let annotations = &renamed["metadata"]["annotations"];
    assert_eq!(annotations["dns.coracle/cluster-domain"], "edge.example");

    let moved = with_dns(both, &["10.43.0.53"], "edge.example");
    reconcile(api.clone(), &moved, now()).await.unwrap();
    let moved = get(&api, DNS).await;
    assert_eq!(moved["spec"]["clusterIPs"], json!(["10.43.0.53"]));
}

#[tokio::test]
async fn an_address_of_the_dns_that_another_service_has_keeps_no_server_from_starting() {
    let site = site("10.43.0.0/16").await;
    let api = site.api.clone();
    take(&api, "first", "10.43.0.10").await;
    let settings = with_dns("10.43.0.0/16", &[], "cluster.local");
    reconcile(api.clone(), &settings, now()).await.unwrap();
    let (status, _) = send(&api, Method::GET, DNS, None).await.unwrap();
    assert_eq!(status, StatusCode::NOT_FOUND);
}

/// For a Service of somebody's own.
async fn take(api: &InProcess, name: &str, address: &str) {
    let taken = Object::from_value(json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": name },
        "spec": { "clusterIP": address, "ports": [{ "port": 80 }] },
    }));
    let services = "/api/v1/namespaces/default/services";
    let made = send(api, Method::POST, services, taken.as_ref()).await;
    assert_eq!(made.unwrap().0, StatusCode::CREATED);
}

#[tokio::test]
async fn a_new_address_of_the_dns_that_another_service_has_leaves_it_at_the_old_one() {
    let both = "10.43.0.0/16,fd43::/112";
    let site = site(both).await;
    let api = site.api.clone();
    reconcile(api.clone(), &with_dns(both, &[], "cluster.local"), now())
        .await
        .unwrap();
    let before = get(&api, DNS).await;
    take(&api, "first", "10.43.0.53").await;
    let moved = with_dns(both, &["10.43.0.53"], "cluster.local");
    reconcile(api.clone(), &moved, now()).await.unwrap();
    let after = get(&api, DNS).await;
    for field in ["/spec", "/metadata/labels", "/metadata/annotations"] {
        assert_eq!(after.pointer(field), before.pointer(field), "{field}");
    }
}

#[tokio::test]
async fn an_old_one_that_a_finalizer_keeps_is_not_taken_for_the_new_one() {
    let cidr = "10.43.0.0/16";
    let site = site(cidr).await;
    let api = site.api.clone();
    let first = with_dns(cidr, &[], "cluster.local");
    reconcile(api.clone(), &first, now()).await.unwrap();
    let kept = read(&api, DNS).await.unwrap();
    let mut kept = kept.expect("it was made");
    kept.set(&["metadata", "finalizers"], json!(["example.org/kept"]));
    write(&api, Method::PUT, DNS, Some(&kept)).await.unwrap();
    let elsewhere = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": "kube-dns", "namespace": "kube-system" },
        "spec": { "clusterIP": "10.43.0.53", "ports": [{ "port": 53 }] },
    });
    let wanted = Wanted {
        fixed: &[&["spec", "clusterIP"]],
        ..new("/api/v1/namespaces/kube-system/services", elsewhere)
    };
    let error = ensure(&api, wanted).await.unwrap_err();
    let said = error.source.to_string();
    assert!(said.contains("is being deleted"), "{said}");
}

fn encrypted(port: u16) -> Settings {
    Settings {
        pod_encryption: Some(PodEncryption {
            port,
            cluster_cidr: "10.42.0.0/16".to_owned(),
        }),
        ..settings("192.168.1.5", "10.43.0.0/16")
    }
}

#[tokio::test]
async fn nodes_are_told_whether_they_encrypt() {
    let site = site("10.43.0.0/16").await;
    let api = &site.api;
    let path = "/api/v1/namespaces/kube-system";
    let plain = settings("192.168.1.5", "10.43.0.0/16");
    reconcile(api.clone(), &plain, now()).await.unwrap();
    let untouched = get(api, path).await;
    assert_eq!(untouched["metadata"]["annotations"], Value::Null);

    reconcile(api.clone(), &encrypted(51820), now())
        .await
        .unwrap();
    let said = json!({
        "network.coracle/encryption": "wireguard",
        "network.coracle/wireguard-port": "51820",
        "network.coracle/cluster-cidr": "10.42.0.0/16",
    });
    assert_eq!(get(api, path).await["metadata"]["annotations"], said);

    // What somebody does to it while the server runs is mended; what is beside it stays.
    let mut changed = Object::from_value(get(api, path).await).unwrap();
    let others = json!({ "network.coracle/encryption": "none", "app": "mine" });
    changed.set(&["metadata", "annotations"], others);
    write(api, Method::PUT, path, Some(&changed)).await.unwrap();
    look(api, &encrypted(4000), now()).await.unwrap();
    let mended = &get(api, path).await["metadata"]["annotations"];
    assert_eq!(mended["network.coracle/encryption"], "wireguard");
    assert_eq!(mended["network.coracle/wireguard-port"], "4000");
    assert_eq!(mended["app"], "mine");

    // Nodes hear of the end of it too.
    reconcile(api.clone(), &plain, now()).await.unwrap();
    let ended = &get(api, path).await["metadata"]["annotations"];
    assert_eq!(ended["network.coracle/encryption"], "none");
    assert_eq!(ended["app"], "mine");
}

#[tokio::test]
async fn since_when_the_use_of_old_tokens_is_noted_is_said_once_and_always() {
    let site = site("10.43.0.0/16").await;
    let api = &site.api;
    let settings = settings("192.168.1.5", "10.43.0.0/16");
    let path = "/api/v1/namespaces/kube-system/configmaps/\
                kube-apiserver-legacy-service-account-token-tracking";
    let since = async || get(api, path).await["data"]["since"].clone();
    let look_on = async |day: &str| {
        let now = format!("{day}T23:00:00Z").parse().unwrap();
        look(api, &settings, now).await.unwrap();
    };
    let made = since().await;
    look_on("2030-01-01").await;
    assert_eq!(since().await, made, "not from a later day");

    send(api, Method::DELETE, path, None).await.unwrap();
    look_on("2030-01-02").await;
    assert_eq!(since().await, "2030-01-02");

    for spoilt in [json!({ "since": "2030-1-2" }), json!({ "other": "kept" })] {
        let mut map = Object::from_value(get(api, path).await).unwrap();
        map.set(&["data"], spoilt);
        write(api, Method::PUT, path, Some(&map)).await.unwrap();
        look_on("2030-01-03").await;
        assert_eq!(since().await, "2030-01-03");
    }
    assert_eq!(get(api, path).await["data"]["other"], "kept");
}

#[tokio::test]
async fn a_map_that_cannot_be_made_keeps_nobody_from_finding_the_server() {
    let site = site("10.43.0.0/16").await;
    let settings = settings("192.168.1.5", "10.43.0.0/16");
    reconcile(site.api.clone(), &settings, now()).await.unwrap();
    let rules = json!([{
        "apiGroups": ["", "discovery.k8s.io"], "verbs": ["*"],
        "resources": ["services", "endpoints", "endpointslices"],
    }]);
    let keeper = acting_as(&site, "keeper", rules).await;
    let deleted = send(&site.api, Method::DELETE, SLICE, None).await.unwrap();
    assert_eq!(deleted.0, StatusCode::OK);
    let error = look(&keeper, &settings, now()).await.unwrap_err();
    let error = error.source.to_string();
    assert!(
        error.contains("configmaps") && error.contains("403"),
        "{error}"
    );
    get(&site.api, SLICE).await;
}
