//! The call, against a server of the health service in this process.

use super::super::ask::Answer;
use super::check;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;

const BOUND: Duration = Duration::from_secs(20);

async fn answer(request: Request<Incoming>) -> Result<Response<Answered>, Infallible> {
    assert_eq!(request.uri().path(), "/grpc.health.v1.Health/Check");
    let asked = request.into_body().collect().await.unwrap().to_bytes();
    let (status, body): (&'static str, &'static [u8]) = match &asked[..] {
        b"\0\0\0\0\0" => ("0", b"\0\0\0\0\x02\x08\x01"),
        b"\0\0\0\0\x06\x0a\x04lame" => ("0", b"\0\0\0\0\x02\x08\x02"),
        b"\0\0\0\0\x05\x0a\x03odd" => ("0", b"\0\0\0\0\x02\x09\x01"),
        _ => ("12", b""),
    };
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static(status));
    let body = Full::new(Bytes::from_static(body)).with_trailers(async { Some(Ok(trailers)) });
    Ok(Response::new(body.boxed()))
}

type Answered = http_body_util::combinators::BoxBody<Bytes, Infallible>;

async fn serve() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(
                hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service_fn(answer)),
            );
        }
    });
    address
}

fn failure(answer: Answer) -> String {
    match answer {
        Answer::Failure(message) => message,
        Answer::Success => panic!("the check succeeded"),
    }
}

#[tokio::test]
async fn a_serving_service_succeeds_and_others_fail_in_upstreams_words() {
    let address = serve().await;
    assert_eq!(check(address, "", BOUND).await, Answer::Success);
    assert_eq!(
        failure(check(address, "lame", BOUND).await),
        "service unhealthy (responded with \"NOT_SERVING\")"
    );
    let odd = failure(check(address, "odd", BOUND).await);
    assert!(
        odd.starts_with("error: health rpc probe failed: rpc error: code = Internal desc = "),
        "{odd}"
    );
    assert!(
        failure(check(address, "none", BOUND).await)
            .starts_with("error: this server does not implement the grpc health protocol")
    );
}

#[tokio::test]
async fn who_does_not_listen_or_answer_fails() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    // Accepted by the kernel, never answered.
    assert_eq!(
        failure(check(address, "", Duration::from_millis(50)).await),
        "timeout: health rpc did not complete within 0s"
    );
    drop(listener);
    assert!(
        failure(check(address, "", BOUND).await).starts_with(&format!(
            "error: failed to connect service at \"{address}\""
        ))
    );
}
