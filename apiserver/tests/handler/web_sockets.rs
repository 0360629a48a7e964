//! Watches as messages of a WebSocket, over a connection in this process.

use super::custom_webhooks::{V1, V2, first, with_hosts};
use super::site::{CONFIG_MAPS, PATIENCE, config_map, site};
use coracle_apiserver::InProcess;
use futures::{SinkExt, StreamExt};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde_json::Value;
use tokio::io::DuplexStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

type Socket = WebSocketStream<DuplexStream>;

async fn open(
    admin: InProcess,
    path: &str,
    headers: &[(&'static str, &str)],
) -> (Socket, http::HeaderMap) {
    let (ours, theirs) = tokio::io::duplex(1024 * 1024);
    tokio::spawn(async move {
        hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(theirs), TowerToHyperService::new(admin))
            .with_upgrades()
            .await
    });
    let mut request = format!("ws://localhost{path}")
        .into_client_request()
        .unwrap();
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    let (socket, response) = tokio_tungstenite::client_async(request, ours)
        .await
        .unwrap();
    (socket, response.headers().clone())
}

async fn next(socket: &mut Socket) -> Message {
    let message = tokio::time::timeout(PATIENCE, socket.next()).await;
    message
        .expect("a message in time")
        .expect("a stream that goes on")
        .unwrap()
}

#[tokio::test]
async fn events_in_json_are_texts() {
    let site = site().await;
    site.post(CONFIG_MAPS, &config_map("a", "1")).await.ok();
    let path = format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=60");
    let protocol = [(
        "sec-websocket-protocol",
        "base64url.bearer.authorization.k8s.io.eA, own",
    )];
    let (mut socket, headers) = open(site.admin.clone(), &path, &protocol).await;
    assert_eq!(headers["sec-websocket-protocol"], "own");
    assert_eq!(headers["content-type"], "application/json");
    for name in ["a", "b"] {
        let Message::Text(text) = next(&mut socket).await else {
            panic!("an event is a text");
        };
        let event: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(event["object"]["metadata"]["name"], name);
        if name == "a" {
            site.post(CONFIG_MAPS, &config_map("b", "1")).await.ok();
        }
    }
}

#[tokio::test]
async fn events_in_protobuf_are_binary_and_have_no_length() {
    let site = site().await;
    site.post(CONFIG_MAPS, &config_map("a", "1")).await.ok();
    let path = format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=1");
    let accept = [("accept", "application/vnd.kubernetes.protobuf")];
    let (mut socket, headers) = open(site.admin.clone(), &path, &accept).await;
    assert_eq!(
        headers["content-type"],
        "application/vnd.kubernetes.protobuf;stream=watch"
    );
    let Message::Binary(bytes) = next(&mut socket).await else {
        panic!("an event is binary");
    };
    assert_eq!(&bytes[..7], b"\x0a\x05ADDED");
    assert!(
        matches!(next(&mut socket).await, Message::Close(_)),
        "its time is over"
    );
}

#[tokio::test]
async fn a_ping_takes_no_event_that_is_being_converted() {
    let (site, hooks) = with_hosts().await;
    site.post(V1, &first("a")).await.ok();
    let mut held = hooks.hold().await;
    let path = format!("{V2}?watch=1&resourceVersion=0&timeoutSeconds=60");
    let (mut socket, _) = open(site.admin.clone(), &path, &[]).await;
    // What was there, then what changes.
    for (count, name) in [(1, "a"), (2, "b")] {
        if name == "b" {
            site.post(V1, &first(name)).await.ok();
        }
        hooks.until_asked("/convert", count).await;
        let ping = Message::Ping("still there?".into());
        socket.send(ping).await.unwrap();
        assert!(
            matches!(next(&mut socket).await, Message::Pong(_)),
            "the ping was read before the webhook answered"
        );
        drop(held);
        let Message::Text(text) = next(&mut socket).await else {
            panic!("an event is a text");
        };
        let event: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(event["object"]["metadata"]["name"], name);
        assert_eq!(event["object"]["port"], "8080");
        held = hooks.hold().await;
    }
    drop(held);
}
