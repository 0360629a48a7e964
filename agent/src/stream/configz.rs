//! `/configz`: what of a KubeletConfiguration this node goes by.

use super::answer::{Body, json};
use super::serve::Server;
use http::Response;
use serde_json::json;

pub fn answer(server: &Server) -> Response<Body> {
    let data_dir = server.stats.context.data_dir.display().to_string();
    json(&json!({
        "kubeletconfig": {
            "kind": "KubeletConfiguration",
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "cgroupDriver": "cgroupfs",
            "enableServer": true,
            "enableDebuggingHandlers": true,
            "enableSystemLogHandler": true,
            "enableSystemLogQuery": false,
            "enableProfilingHandler": false,
            "enableDebugFlagsHandler": false,
            "nodeLeaseDurationSeconds": 40,
            "nodeStatusReportFrequency": "5m0s",
            "nodeStatusUpdateFrequency": "10s",
            "podLogsDir": format!("{data_dir}/{}", crate::pods::context::LOGS),
            "rotateCertificates": true,
            "serverTLSBootstrap": true,
        },
    }))
}
