//! The Service `default/web` and its pods, for the loops that follow both.

use serde_json::json;

use super::FakeCluster;

pub(crate) const WEB: &str = "/api/v1/namespaces/default/services/web";

impl FakeCluster {
    pub(crate) fn put_service(&self) {
        let service = json!({
            "metadata": {"creationTimestamp": "2029-12-31T00:00:00Z"},
            "spec": {"selector": {"app": "web"}, "clusterIP": "10.43.0.9", "ipFamilies": ["IPv4"],
                     "ports": [{"port": 80, "protocol": "TCP"}]},
        });
        self.api.put(WEB, service);
    }

    /// One that the Service selects, on the node `n`.
    pub(crate) fn put_pod(&self, name: &str, ip: &str, ready: bool) {
        let status = if ready { "True" } else { "False" };
        let pod = json!({
            "metadata": {"labels": {"app": "web", "more": name}},
            "spec": {"nodeName": "n", "containers": []},
            "status": {"podIPs": [{"ip": ip}], "conditions": [
                {"type": "Ready", "status": status, "lastTransitionTime": "2030-01-01T00:00:01Z"},
            ]},
        });
        self.api
            .put(&format!("/api/v1/namespaces/default/pods/{name}"), pod);
    }
}
