//! Requests over HTTP/2, as the API server makes them, against the real runtime without pods.

use super::{Server, Way};
use crate::pods::Pods;
use crate::pods::context::testing::bare;
use crate::stats::Stats;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Empty};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::path::Path;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

fn server(data_dir: &Path, stop: &CancellationToken) -> Server {
    let context = Arc::new(bare(data_dir, stop));
    let pods = Pods::new(context.clone(), stop.clone());
    Server {
        stats: Arc::new(Stats::new(context, pods, "edge".to_owned())),
    }
}

async fn ask(server: &Server, method: &str, path: &str) -> (u16, String) {
    ask_by(Way::Tunnel, server, method, path).await
}

async fn ask_by(way: Way, server: &Server, method: &str, path: &str) -> (u16, String) {
    let (near, far) = tokio::io::duplex(1 << 16);
    let server = server.clone();
    let service = service_fn(move |request| {
        let server = server.clone();
        async move { Ok::<_, std::convert::Infallible>(server.answer(request, way).await) }
    });
    tokio::spawn(
        hyper::server::conn::http2::Builder::new(TokioExecutor::new())
            .serve_connection(TokioIo::new(far), service),
    );
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(near))
            .await
            .unwrap();
    tokio::spawn(connection);
    let request = Request::builder()
        .method(method)
        .uri(format!("http://node{path}"))
        .body(Empty::<Bytes>::new())
        .unwrap();
    let answer = sender.send_request(request).await.unwrap();
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn what_is_not_there_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let stop = CancellationToken::new();
    let server = server(scratch.path(), &stop);
    assert_eq!(
        ask(&server, "GET", "/healthz").await,
        (200, "ok".to_owned())
    );
    let (status, pods) = ask(&server, "GET", "/pods").await;
    assert!(status == 200 && pods.contains("\"items\":[]"), "{pods}");
    let missing = ask(&server, "GET", "/containerLogs/default/web/c").await;
    assert_eq!(missing.0, 404);
    let missing = ask(
        &server,
        "POST",
        "/exec/default/web/uid/c?command=ls&stdout=true",
    )
    .await;
    assert_eq!(missing.0, 404);
    let bad = ask(&server, "GET", "/containerLogs/default/web/c?tailLines=x").await;
    assert_eq!(bad.0, 400);
    assert_eq!(ask(&server, "DELETE", "/pods").await.0, 405);
    let read = ask(
        &server,
        "GET",
        "/exec/default/web/uid/c?command=ls&stdout=true",
    )
    .await;
    assert_eq!(read.0, 405);
    // On the node's own port a WebSocket begins with a GET.
    let path = "/exec/default/web/c?command=ls&output=1";
    let missing = ask_by(Way::Port, &server, "GET", path).await;
    assert!(missing.0 == 404 && missing.1.contains("web"), "{missing:?}");
    let nothing = ask_by(Way::Port, &server, "GET", "/exec/default/web/c").await;
    assert_eq!(nothing.0, 400);
    let ports = ask_by(Way::Port, &server, "POST", "/portForward/default/web").await;
    assert_eq!(ports.0, 404);
    assert_eq!(ask(&server, "GET", "/spec/").await.0, 404);
    let off = ask(&server, "GET", "/debug/pprof/heap").await;
    assert_eq!(off, (405, "profiling endpoint is disabled.\n".to_owned()));
    stop.cancel();
}

#[tokio::test]
async fn a_node_without_pods_tells_of_itself() {
    let scratch = tempfile::tempdir().unwrap();
    let stop = CancellationToken::new();
    let server = server(scratch.path(), &stop);
    let (status, summary) = ask(&server, "GET", "/stats/summary").await;
    assert_eq!(status, 200, "{summary}");
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    let node = &summary["node"];
    assert_eq!(node["nodeName"], "edge");
    for path in [
        "/cpu/usageNanoCores",
        "/cpu/usageCoreNanoSeconds",
        "/memory/availableBytes",
        "/memory/workingSetBytes",
        "/fs/capacityBytes",
        "/fs/inodesUsed",
        "/runtime/imageFs/usedBytes",
        "/runtime/containerFs/availableBytes",
        "/rlimit/maxpid",
        "/rlimit/curproc",
    ] {
        let value = node.pointer(path).and_then(serde_json::Value::as_u64);
        assert!(value.is_some(), "{path}: {node}");
    }
    assert_eq!(summary["pods"], serde_json::json!([]));
    let (_, little) = ask(&server, "GET", "/stats/summary?only_cpu_and_memory=true").await;
    assert!(
        !little.contains("\"fs\"") && little.contains("\"workingSetBytes\""),
        "{little}"
    );
    for (path, line) in [
        ("/metrics", "kubelet_node_name{node=\"edge\"} 1\n"),
        ("/metrics", "kubelet_running_pods 0\n"),
        ("/metrics/resource", "resource_scrape_error 0\n"),
        ("/metrics/resource", "\nnode_memory_working_set_bytes "),
        (
            "/metrics/cadvisor",
            "container_cpu_usage_seconds_total{container=\"\",cpu=\"total\",",
        ),
        ("/metrics/cadvisor", "\nmachine_cpu_cores 1 "),
        ("/metrics/probes", "process_start_time_seconds "),
        ("/runningpods/", "\"items\":[]"),
        ("/healthz?verbose", "[+]syncloop ok\n"),
    ] {
        let (status, text) = ask(&server, "GET", path).await;
        assert!(status == 200 && text.contains(line), "{path}: {text}");
    }
    stop.cancel();
}
