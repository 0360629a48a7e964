//! Sessions over WebSocket with a node that answers.

use super::*;
use bytes::BytesMut;
use coracle_api::frames::{Channel, Decoder, Encoder, Frame};
use coracle_streams::spdy;
use futures::{SinkExt, StreamExt};
use http::{Request, Response};
use http_body::Frame as BodyFrame;
use http_body_util::{Empty, StreamBody};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

type Socket = WebSocketStream<TokioIo<hyper::upgrade::Upgraded>>;

/// A server with one node, whose agent is `agent`; everything ends when it is dropped.
struct Cluster {
    streams: Arc<Streams>,
    requests: mpsc::Receiver<String>,
    _tasks: JoinSet<()>,
}

/// What the agent of a test does with a request: for `exec`, echoes stdin until it is closed, then
/// exits with 3; for logs, says two lines; `refuse` in the path is 400.
async fn agent(request: Request<Incoming>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    if path.contains("/refuse") {
        let text = "container \"refuse\" in pod \"p\" is waiting to start: ContainerCreating";
        return Response::builder().status(400).body(full(text)).unwrap();
    }
    if request.method() == http::Method::CONNECT {
        let text = "dial tcp 127.0.0.1:81: connect: connection refused";
        return Response::builder().status(502).body(full(text)).unwrap();
    }
    if path.starts_with("/containerLogs") {
        return Response::new(full("one\ntwo\n"));
    }
    let (output, chunks) = mpsc::channel::<Bytes>(4);
    tokio::spawn(echo(request.into_body(), output));
    let chunks = futures::stream::unfold(chunks, |mut chunks| async {
        let chunk = chunks.recv().await?;
        Some((Ok::<_, Infallible>(BodyFrame::data(chunk)), chunks))
    });
    let body = StreamBody::new(chunks).map_err(|never| match never {});
    Response::new(body.boxed_unsync())
}

async fn echo(mut input: Incoming, output: mpsc::Sender<Bytes>) {
    let say = |channel, text: &[u8]| {
        let mut bytes = BytesMut::new();
        Encoder.encode(channel, text, &mut bytes);
        bytes.freeze()
    };
    let mut buffer = BytesMut::new();
    'input: while let Some(Ok(chunk)) = input.frame().await {
        buffer.extend_from_slice(&chunk.into_data().unwrap_or_default());
        while let Some(Frame { channel, payload }) = Decoder.decode(&mut buffer).unwrap() {
            let answer = match channel {
                Channel::Stdin => say(Channel::Stdout, &payload),
                Channel::Resize => say(Channel::Stderr, &payload),
                _ => break 'input,
            };
            if output.send(answer).await.is_err() {
                return;
            }
        }
    }
    let status = json!({
        "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
        "message": "command terminated with non-zero exit code: 3",
        "details": { "causes": [{ "reason": "ExitCode", "message": "3" }] },
    });
    let _ = output
        .send(say(Channel::Error, status.to_string().as_bytes()))
        .await;
}

/// One HTTP/1.1 exchange on a fresh connection to `answer`.
async fn exchange<F, A>(
    tasks: &mut JoinSet<()>,
    request: Request<Empty<Bytes>>,
    answer: F,
) -> Response<Incoming>
where
    F: Fn(Parts) -> A + Send + 'static,
    A: Future<Output = Result<Response<Body>, Status>> + Send,
{
    let (near, far) = tokio::io::duplex(64 * 1024);
    let service = service_fn(move |request: Request<Incoming>| {
        let answer = answer(request.into_parts().0);
        async move {
            Ok::<_, Infallible>(answer.await.unwrap_or_else(|status| {
                let body = full(status.message);
                Response::builder().status(status.code).body(body).unwrap()
            }))
        }
    });
    tasks.spawn(async move {
        let served = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(far), service)
            .with_upgrades();
        let _ = served.await;
    });
    let near = TokioIo::new(near);
    let (mut sender, driver) = hyper::client::conn::http1::handshake(near).await.unwrap();
    tasks.spawn(async move { drop(driver.with_upgrades().await) });
    sender.send_request(request).await.unwrap()
}

async fn cluster() -> Cluster {
    let view = Objects::new([("pods", pod(&["main", "refuse"], "n1"))]);
    let authorizer = Arc::new(Authorizer::new(view.clone()));
    let tunnels = Tunnels::new(CancellationToken::new());
    let streams = Arc::new(Streams::new(view, authorizer, tunnels.clone()));
    let mut tasks = JoinSet::new();
    let dial = Request::get("/coracle/v1/nodes/n1/tunnel")
        .header("connection", "Upgrade")
        .header("upgrade", crate::tunnel::PROTOCOL)
        .body(Empty::new())
        .unwrap();
    let accepting = tunnels.clone();
    let response = exchange(&mut tasks, dial, move |parts| {
        let accepted = accepting.accept(parts, &User::named("system:node:n1"), "n1");
        async { accepted.map(|response| response.map(|()| full(""))) }
    })
    .await;
    assert_eq!(response.status(), 101);
    let upgraded = hyper::upgrade::on(response).await.unwrap();
    let (seen, requests) = mpsc::channel(16);
    tasks.spawn(async move {
        let service = service_fn(move |request: Request<Incoming>| {
            let seen = seen.clone();
            async move {
                let _ = seen
                    .send(format!(
                        "{} {}",
                        request.method(),
                        request
                            .uri()
                            .path_and_query()
                            .map_or("", |path| path.as_str())
                    ))
                    .await;
                Ok::<_, Infallible>(agent(request).await)
            }
        });
        let served = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
            .serve_connection(upgraded, service);
        let _ = served.await;
    });
    for _ in 0..1000 {
        if tunnels.is_connected("n1") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Cluster {
        streams,
        requests,
        _tasks: tasks,
    }
}

impl Cluster {
    async fn get(
        &mut self,
        subresource: &'static str,
        query: &str,
        headers: &[(&str, &str)],
    ) -> Response<Incoming> {
        let streams = Arc::clone(&self.streams);
        let mut request = Request::get(format!("/x/{subresource}?{query}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Empty::new()).unwrap();
        exchange(&mut self._tasks, request, move |parts| {
            let streams = Arc::clone(&streams);
            async move {
                let query = Query::parse(parts.uri.query().unwrap_or(""));
                let (info, user) = (info(subresource), admin());
                streams.connect(parts, &query, &info, &user).await
            }
        })
        .await
    }

    async fn socket(&mut self, subresource: &'static str, query: &str, protocol: &str) -> Socket {
        let headers = [
            ("connection", "Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("sec-websocket-protocol", protocol),
        ];
        let response = self.get(subresource, query, &headers).await;
        assert_eq!(response.status(), 101);
        assert_eq!(
            response.headers()["sec-websocket-accept"],
            "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
        );
        assert!(
            protocol.contains(
                response.headers()["sec-websocket-protocol"]
                    .to_str()
                    .unwrap()
            )
        );
        let upgraded = hyper::upgrade::on(response).await.unwrap();
        WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Client, None).await
    }
}

/// Everything up to the close, as `channel:text`; pings and greetings left out.
async fn read_all(socket: &mut Socket) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(Ok(message)) = socket.next().await {
        match message {
            Message::Binary(data) if data.len() > 1 => {
                let text = String::from_utf8_lossy(&data[1..]).into_owned();
                lines.push(format!("{}:{text}", data[0]));
            }
            Message::Text(text) if text.len() > 1 => lines.push(text.to_string()),
            Message::Close(frame) => {
                // client-go takes a close without the normal code for a failure.
                assert_eq!(frame.map(|frame| frame.code), Some(CloseCode::Normal));
                break;
            }
            _ => {}
        }
    }
    lines
}

fn to(channel: u8, text: &str) -> Message {
    let mut bytes = vec![channel];
    bytes.extend_from_slice(text.as_bytes());
    Message::binary(bytes)
}

#[tokio::test]
async fn exec_speaks_v5() {
    let mut cluster = cluster().await;
    let query = "command=sh&command=a%20b&container=main&stdin=true&stdout=true&stderr=true";
    let protocols = "v5.channel.k8s.io, v4.channel.k8s.io";
    let mut socket = cluster.socket("exec", query, protocols).await;
    assert_eq!(
        cluster.requests.recv().await.unwrap(),
        "POST /exec/web/p/u1/main?command=sh&command=a%20b&stdin=true&stdout=true&stderr=true"
    );
    socket.send(to(0, "hello")).await.unwrap();
    // Not a channel of the client: ignored.
    socket.send(to(1, "forged")).await.unwrap();
    // No terminal was asked for: ignored.
    socket.send(to(4, "{}")).await.unwrap();
    socket.send(Message::binary(vec![255, 0])).await.unwrap();
    let lines = read_all(&mut socket).await;
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(lines[0], "1:hello");
    let status: serde_json::Value =
        serde_json::from_str(lines[1].strip_prefix("3:").unwrap()).unwrap();
    assert_eq!(status["reason"], "NonZeroExitCode");
    assert_eq!(status["details"]["causes"][0]["message"], "3");
}

#[tokio::test]
async fn a_terminal_is_resized() {
    let mut cluster = cluster().await;
    let query = "command=sh&container=main&stdin=1&stdout=1&stderr=1&tty=1";
    let mut socket = cluster.socket("exec", query, "v5.channel.k8s.io").await;
    let seen = cluster.requests.recv().await.unwrap();
    assert!(seen.ends_with("stdin=true&stdout=true&tty=true"), "{seen}");
    socket.send(to(4, "{\"Width\":80}")).await.unwrap();
    socket.send(to(0, "x")).await.unwrap();
    socket.send(Message::binary(vec![255, 0])).await.unwrap();
    let lines = read_all(&mut socket).await;
    // The agent of the test says sizes on stderr, which a terminal does not have.
    assert_eq!(lines[0], "1:x");
}

#[tokio::test]
async fn older_subprotocols_say_errors_as_text_and_base64() {
    let mut cluster = cluster().await;
    let query = "command=sh&container=refuse&stdout=1";
    let message = "container \"refuse\" in pod \"p\" is waiting to start: ContainerCreating";
    let mut socket = cluster.socket("exec", query, "channel.k8s.io").await;
    assert_eq!(read_all(&mut socket).await, [format!("3:{message}")]);
    let mut socket = cluster.socket("exec", query, "base64.channel.k8s.io").await;
    let encoded = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, message);
    assert_eq!(read_all(&mut socket).await, [format!("3{encoded}")]);
    let mut socket = cluster.socket("exec", query, "v4.channel.k8s.io").await;
    let lines = read_all(&mut socket).await;
    assert!(lines[0].contains("\"reason\":\"BadRequest\""), "{lines:?}");
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_session() {
    let mut cluster = cluster().await;
    let query = "command=sh&container=main&stdin=1&stdout=1";
    let socket = cluster.socket("exec", query, "v5.channel.k8s.io").await;
    let _ = cluster.requests.recv().await.unwrap();
    drop(socket);
    // The node is still there for the next one.
    let mut socket = cluster
        .socket(
            "attach",
            "container=main&stdin=1&stdout=1",
            "v5.channel.k8s.io",
        )
        .await;
    let seen = cluster.requests.recv().await.unwrap();
    assert_eq!(seen, "POST /attach/web/p/u1/main?stdin=true&stdout=true");
    socket.send(Message::binary(vec![255, 0])).await.unwrap();
    assert!(read_all(&mut socket).await[0].starts_with("3:"));
}

#[tokio::test]
async fn logs_pass_through_and_refusals_are_told() {
    let mut cluster = cluster().await;
    let query = "container=main&tailLines=5&follow&sinceTime=2026-01-01T00:00:00%2B01:00";
    let response = cluster.get("log", query, &[]).await;
    assert_eq!(response.headers()["content-type"], "text/plain");
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(&body[..], b"one\ntwo\n");
    assert_eq!(
        cluster.requests.recv().await.unwrap(),
        "GET /containerLogs/web/p/main?follow=true&tailLines=5\
         &sinceTime=2026-01-01T00%3A00%3A00%2B01%3A00"
    );
    let response = cluster.get("log", "container=refuse", &[]).await;
    assert_eq!(response.status(), 400);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let text = "container \"refuse\" in pod \"p\" is waiting to start: ContainerCreating";
    assert_eq!(String::from_utf8_lossy(&body), text);
}

#[tokio::test]
async fn logs_come_over_a_websocket_too() {
    let mut cluster = cluster().await;
    let mut socket = cluster
        .socket("log", "container=main", "binary.k8s.io")
        .await;
    let mut text = Vec::new();
    while let Some(Ok(Message::Binary(data))) = socket.next().await {
        text.extend_from_slice(&data);
    }
    assert_eq!(text, b"one\ntwo\n");
}

#[tokio::test]
async fn a_request_without_a_known_upgrade_is_refused() {
    let mut cluster = cluster().await;
    let query = "command=sh&container=main&stdout=1";
    assert_eq!(cluster.get("exec", query, &[]).await.status(), 400);
    let other = [("connection", "Upgrade"), ("upgrade", "h2c")];
    assert_eq!(cluster.get("exec", query, &other).await.status(), 400);
    let spdy = [
        ("connection", "Upgrade"),
        ("upgrade", "SPDY/3.1"),
        ("x-stream-protocol-version", "v9.channel.k8s.io"),
    ];
    assert_eq!(cluster.get("exec", query, &spdy).await.status(), 403);
    let unknown = [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("sec-websocket-protocol", "v9.channel.k8s.io"),
    ];
    assert_eq!(cluster.get("exec", query, &unknown).await.status(), 400);
}

/// What a Go client with SPDY says when it opens a stream, with its headers stored unpacked.
fn opened(id: u32, headers: &[(&str, &str)]) -> Vec<u8> {
    let mut block: Vec<u8> = Vec::new();
    block.extend_from_slice(&(headers.len() as u32).to_be_bytes());
    for text in headers.iter().flat_map(|(name, value)| [name, value]) {
        block.extend_from_slice(&(text.len() as u32).to_be_bytes());
        block.extend_from_slice(text.as_bytes());
    }
    let length = u16::try_from(block.len()).unwrap();
    let mut packed = if id == 1 {
        vec![0x78, 0x01]
    } else {
        Vec::new()
    };
    packed.push(0);
    packed.extend_from_slice(&length.to_le_bytes());
    packed.extend_from_slice(&(!length).to_le_bytes());
    packed.extend_from_slice(&block);
    let mut frame = vec![0x80, 3, 0, 1];
    frame.extend_from_slice(&(packed.len() as u32 + 10).to_be_bytes());
    frame.extend_from_slice(&id.to_be_bytes());
    frame.extend_from_slice(&[0; 6]);
    frame.extend_from_slice(&packed);
    frame
}

fn said(id: u32, text: &str, is_last: bool) -> Vec<u8> {
    spdy::frame::data(id, text.as_bytes(), is_last).to_vec()
}

/// The data of each stream, until the connection ends.
async fn read_streams(near: &mut (impl tokio::io::AsyncRead + Unpin)) -> Vec<(u32, String)> {
    let mut all = Vec::new();
    tokio::io::AsyncReadExt::read_to_end(near, &mut all)
        .await
        .unwrap();
    let mut buffer = BytesMut::from(&all[..]);
    let mut lines = Vec::new();
    while let Some(frame) = spdy::frame::decode(&mut buffer).unwrap() {
        if let spdy::frame::Frame::Data { id, payload, .. } = frame
            && !payload.is_empty()
        {
            lines.push((id, String::from_utf8_lossy(&payload).into_owned()));
        }
    }
    lines
}

#[tokio::test]
async fn exec_speaks_spdy() {
    let mut cluster = cluster().await;
    let query = "command=sh&container=main&stdin=1&stdout=1";
    let headers = [
        ("connection", "Upgrade"),
        ("upgrade", "SPDY/3.1"),
        ("x-stream-protocol-version", "v5.channel.k8s.io"),
        ("x-stream-protocol-version", "v4.channel.k8s.io"),
    ];
    let response = cluster.get("exec", query, &headers).await;
    assert_eq!(response.status(), 101);
    assert_eq!(
        response.headers()["x-stream-protocol-version"],
        "v4.channel.k8s.io"
    );
    let mut near = TokioIo::new(hyper::upgrade::on(response).await.unwrap());
    let mut out = Vec::new();
    for (id, kind) in [(1, "error"), (3, "stdin"), (5, "stdout")] {
        out.extend_from_slice(&opened(id, &[("streamtype", kind)]));
    }
    out.extend_from_slice(&said(3, "hello", false));
    out.extend_from_slice(&said(3, "", true));
    tokio::io::AsyncWriteExt::write_all(&mut near, &out)
        .await
        .unwrap();
    let lines = read_streams(&mut near).await;
    assert_eq!(lines[0], (5, "hello".to_owned()));
    assert_eq!(lines[1].0, 1);
    assert!(lines[1].1.contains("NonZeroExitCode"), "{lines:?}");
    let seen = cluster.requests.recv().await.unwrap();
    assert_eq!(
        seen,
        "POST /exec/web/p/u1/main?command=sh&stdin=true&stdout=true"
    );
}

#[tokio::test]
async fn a_port_that_the_node_cannot_reach_is_told_on_the_error_stream() {
    let mut cluster = cluster().await;
    let headers = [
        ("connection", "Upgrade"),
        ("upgrade", "SPDY/3.1"),
        ("x-stream-protocol-version", "portforward.k8s.io"),
    ];
    let response = cluster.get("portforward", "", &headers).await;
    assert_eq!(response.status(), 101);
    let near = TokioIo::new(hyper::upgrade::on(response).await.unwrap());
    let (mut reads, mut writes) = tokio::io::split(near);
    let mut out = Vec::new();
    for (id, kind) in [(1, "error"), (3, "data")] {
        let headers = [("streamtype", kind), ("port", "81"), ("requestid", "0")];
        out.extend_from_slice(&opened(id, &headers));
    }
    tokio::io::AsyncWriteExt::write_all(&mut writes, &out)
        .await
        .unwrap();
    let mut buffer = BytesMut::new();
    let told = loop {
        match spdy::frame::decode(&mut buffer).unwrap() {
            Some(spdy::frame::Frame::Data { id: 1, payload, .. }) => break payload,
            Some(_) => {}
            None => {
                let count = tokio::io::AsyncReadExt::read_buf(&mut reads, &mut buffer).await;
                assert!(count.unwrap() > 0, "the connection ended");
            }
        }
    };
    let told = String::from_utf8_lossy(&told).into_owned();
    assert!(
        told.starts_with("error forwarding port 81 to pod p, uid u1: "),
        "{told}"
    );
    assert!(told.ends_with("connection refused"), "{told}");
    let seen = cluster.requests.recv().await.unwrap();
    assert!(seen.starts_with("CONNECT "), "{seen}");
}

#[tokio::test]
async fn fixed_ports_are_named_on_their_channels() {
    let mut cluster = cluster().await;
    let query = "ports=81&ports=82";
    let mut socket = cluster
        .socket("portforward", query, "v4.channel.k8s.io")
        .await;
    let mut numbers = Vec::new();
    let mut errors = 0;
    while let Some(Ok(Message::Binary(data))) = socket.next().await {
        match data.len() {
            3 => numbers.push((data[0], u16::from_le_bytes([data[1], data[2]]))),
            _ => errors += usize::from(data[0] % 2),
        }
    }
    numbers.sort_unstable();
    assert_eq!(numbers, [(0, 81), (1, 81), (2, 82), (3, 82)]);
    assert_eq!(errors, 2);
}
