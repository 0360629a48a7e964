//! The loop against a server in memory.

use serde_json::{Value, json};
use tokio_util::sync::DropGuard;

use super::*;
use crate::Config;
use crate::fake_api::eventually;
use crate::fake_cluster::{FakeCluster, spawn};

const SLICES: &str = "/apis/discovery.k8s.io/v1/endpointslices";

struct Site {
    cluster: FakeCluster,
    _running: DropGuard,
}

fn start(cluster: FakeCluster) -> Site {
    let _running = spawn(cluster.client(), Config::default(), run);
    Site { cluster, _running }
}

impl Site {
    fn put_service(&self, name: &str, selector: Value) {
        let path = format!("/api/v1/namespaces/default/services/{name}");
        self.cluster
            .api
            .put(&path, json!({"spec": {"selector": selector}}));
    }

    fn put_endpoints(&self, name: &str, ip: &str, labels: Value) {
        let path = format!("/api/v1/namespaces/default/endpoints/{name}");
        let subset = json!({"addresses": [{"ip": ip}], "ports": [{"port": 80, "protocol": "TCP"}]});
        let endpoints = json!({"metadata": {"labels": labels}, "subsets": [subset]});
        self.cluster.api.put(&path, endpoints);
    }

    /// Service and first address of each slice.
    fn mirrored(&self) -> Vec<String> {
        let shown = |slice: &Value| {
            let service = &slice["metadata"]["labels"][endpoint_slices::SERVICE_NAME];
            let address = &slice["endpoints"][0]["addresses"][0];
            format!(
                "{} {}",
                service.as_str().unwrap(),
                address.as_str().unwrap()
            )
        };
        let mut all: Vec<String> = self.cluster.api.objects(SLICES).iter().map(shown).collect();
        all.sort();
        all
    }

    async fn has(&self, wanted: &[&str]) {
        eventually(&format!("{wanted:?}"), || self.mirrored() == wanted).await;
    }
}

#[tokio::test(start_paused = true)]
async fn endpoints_of_services_without_selector_are_mirrored() {
    let site = start(FakeCluster::new());
    site.put_endpoints("db", "10.0.0.1", json!({}));
    site.put_endpoints("chosen", "10.0.0.2", json!({}));
    site.put_service("chosen", json!({"app": "x"}));
    site.put_service("db", Value::Null);
    site.has(&["db 10.0.0.1"]).await;
    site.put_endpoints("db", "10.0.0.3", json!({}));
    site.has(&["db 10.0.0.3"]).await;
    // Somebody deletes it.
    let slice = site.cluster.api.objects(SLICES).remove(0);
    let name = slice["metadata"]["name"].as_str().unwrap();
    let path = format!("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/{name}");
    site.cluster.api.delete(&path);
    site.has(&["db 10.0.0.3"]).await;
    // A selector comes and goes.
    site.put_service("db", json!({"app": "db"}));
    site.has(&[]).await;
    site.put_service("db", Value::Null);
    site.has(&["db 10.0.0.3"]).await;
    site.cluster
        .api
        .delete("/api/v1/namespaces/default/endpoints/db");
    site.has(&[]).await;
}

#[tokio::test(start_paused = true)]
async fn what_says_so_is_not_mirrored() {
    let site = start(FakeCluster::new());
    for name in ["db", "skipped"] {
        site.put_service(name, Value::Null);
    }
    site.put_endpoints("skipped", "10.0.0.1", json!({ SKIP: "true" }));
    site.put_endpoints("db", "10.0.0.2", json!({ SKIP: "false" }));
    site.has(&["db 10.0.0.2"]).await;
    site.put_endpoints("db", "10.0.0.2", json!({ SKIP: "true" }));
    site.has(&[]).await;
    site.put_endpoints("skipped", "10.0.0.1", json!({}));
    site.has(&["skipped 10.0.0.1"]).await;
    site.cluster
        .api
        .delete("/api/v1/namespaces/default/services/skipped");
    site.has(&[]).await;
}
