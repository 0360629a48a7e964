//! A node dials in, answers, and is replaced by its newest connection.

use super::*;
use crate::authenticate::User;
use http_body_util::{BodyExt, Empty, Full};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;

/// An agent that answers each request with its name and the path; ends when dropped.
pub struct Agent {
    pub status: u16,
    _connection: tokio::task::JoinSet<()>,
}

type Answer = Result<Response<Full<Bytes>>, Infallible>;

/// Dials a server that has nothing but the tunnel, as `user`.
async fn dial(tunnels: &Tunnels, user: User, node: &'static str, name: &'static str) -> Agent {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let mut tasks = tokio::task::JoinSet::new();
    let tunnels = tunnels.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let (parts, _) = request.into_parts();
        let answer = tunnels.accept(parts, &user, node);
        async move {
            Ok::<_, Infallible>(match answer {
                Ok(response) => response.map(|()| Full::new(Bytes::new())),
                Err(status) => {
                    let body = Full::new(Bytes::from(status.message));
                    Response::builder().status(status.code).body(body).unwrap()
                }
            })
        }
    });
    tasks.spawn(async move {
        let served = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(far), service)
            .with_upgrades();
        let _ = served.await;
    });
    let (mut sender, driver) = hyper::client::conn::http1::handshake(TokioIo::new(near))
        .await
        .unwrap();
    tasks.spawn(async move { drop(driver.with_upgrades().await) });
    let request = Request::get("/coracle/v1/nodes/x/tunnel")
        .header("connection", "Upgrade")
        .header("upgrade", PROTOCOL)
        .body(Empty::<Bytes>::new())
        .unwrap();
    let response = sender.send_request(request).await.unwrap();
    let status = response.status().as_u16();
    if status == 101 {
        let upgraded = hyper::upgrade::on(response).await.unwrap();
        let service = service_fn(move |request: Request<Incoming>| async move {
            let text = format!("{name} {}", request.uri().path());
            Answer::Ok(Response::new(Full::new(Bytes::from(text))))
        });
        tasks.spawn(async move {
            let served = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                .serve_connection(upgraded, service);
            let _ = served.await;
        });
    }
    Agent {
        status,
        _connection: tasks,
    }
}

fn node(name: &str) -> User {
    User::named(&format!("system:node:{name}"))
}

async fn until(what: &str, mut predicate: impl FnMut() -> bool) {
    for _ in 0..1000 {
        if predicate() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("never: {what}");
}

async fn ask(tunnels: &Tunnels, node: &str) -> Result<String, Status> {
    let body = Empty::new().map_err(|never| match never {}).boxed_unsync();
    let request = Request::get("http://node/healthz").body(body).unwrap();
    let response = tunnels.request(node, request).await?;
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    Ok(String::from_utf8(bytes.to_vec()).unwrap())
}

#[tokio::test]
async fn a_node_dials_in_and_answers() {
    let tunnels = Tunnels::new(CancellationToken::new());
    let missing = ask(&tunnels, "n1").await.unwrap_err();
    assert_eq!(
        (missing.code, missing.message.as_str()),
        (503, "node \"n1\" is not connected")
    );
    let agent = dial(&tunnels, node("n1"), "n1", "first").await;
    assert_eq!(agent.status, 101);
    until("connected", || tunnels.is_connected("n1")).await;
    assert_eq!(ask(&tunnels, "n1").await.unwrap(), "first /healthz");
    assert_eq!(ask(&tunnels, "n2").await.unwrap_err().code, 503);
    drop(agent);
    until("gone", || tunnels.connected() == 0).await;
    assert_eq!(ask(&tunnels, "n1").await.unwrap_err().code, 503);
}

#[tokio::test]
async fn the_newest_connection_wins_and_survives_the_end_of_the_older() {
    let tunnels = Tunnels::new(CancellationToken::new());
    let first = dial(&tunnels, node("n1"), "n1", "first").await;
    until("connected", || tunnels.is_connected("n1")).await;
    let _second = dial(&tunnels, node("n1"), "n1", "second").await;
    until("two", || tunnels.next_id.load(Ordering::Relaxed) == 2).await;
    assert_eq!(ask(&tunnels, "n1").await.unwrap(), "second /healthz");
    drop(first);
    assert_eq!(ask(&tunnels, "n1").await.unwrap(), "second /healthz");
    assert_eq!(tunnels.connected(), 1);
}

#[tokio::test]
async fn only_the_node_itself_opens_its_tunnel() {
    let tunnels = Tunnels::new(CancellationToken::new());
    for user in [node("n2"), User::named("jane"), User::anonymous()] {
        assert_eq!(dial(&tunnels, user, "n1", "x").await.status, 403);
    }
    assert_eq!(tunnels.connected(), 0);
}

#[tokio::test]
async fn a_request_that_does_not_upgrade_is_told_so() {
    let tunnels = Tunnels::new(CancellationToken::new());
    let ask = |upgrade: &str| {
        let request = Request::get("/")
            .header("upgrade", upgrade)
            .body(())
            .unwrap();
        tunnels
            .accept(request.into_parts().0, &node("n1"), "n1")
            .unwrap_err()
    };
    assert_eq!(ask("websocket").code, 400);
    assert!(ask(PROTOCOL).message.contains("HTTP/1.1 is needed"));
}

#[tokio::test]
async fn shutdown_ends_the_connections() {
    let shutdown = CancellationToken::new();
    let tunnels = Tunnels::new(shutdown.clone());
    let _agent = dial(&tunnels, node("n1"), "n1", "first").await;
    until("connected", || tunnels.is_connected("n1")).await;
    shutdown.cancel();
    until("gone", || tunnels.connected() == 0).await;
}
