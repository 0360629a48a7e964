//! What the tour asks for: tables of the API, a page of a pod.

use anyhow::{Context, bail};
use coracle_client::Client;
use http_body_util::{BodyExt, Empty, Limited};
use serde_json::Value;
use std::time::Duration;
use tokio::net::TcpStream;

/// The demo page is one line.
const PAGE_BYTES_MAX: usize = 64 * 1024;
const PAGE_MAX: Duration = Duration::from_secs(10);

/// Asks for a list as a Table, as kubectl does.
pub async fn table(client: &Client, path: &str) -> anyhow::Result<Value> {
    let request = http::Request::get(path)
        .header(
            http::header::ACCEPT,
            "application/json;as=Table;v=v1;g=meta.k8s.io",
        )
        .body(Vec::new())?;
    client
        .request(request)
        .await
        .with_context(|| format!("cannot list {path}"))
}

/// One GET over a connection of its own.
pub async fn page(address: &str, port: u16) -> anyhow::Result<String> {
    tokio::time::timeout(PAGE_MAX, get(address, port))
        .await
        .context("the demo pod did not answer in time")?
}

async fn get(address: &str, port: u16) -> anyhow::Result<String> {
    let stream = TcpStream::connect((address.parse::<std::net::IpAddr>()?, port)).await?;
    let io = hyper_util::rt::TokioIo::new(stream);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await?;
    let driver = tokio::spawn(connection);
    let request = http::Request::get("/")
        .header(http::header::HOST, format!("{address}:{port}"))
        .body(Empty::<bytes::Bytes>::new())?;
    let response = sender.send_request(request).await?;
    if !response.status().is_success() {
        bail!("the demo pod answered {}", response.status());
    }
    let body = Limited::new(response.into_body(), PAGE_BYTES_MAX)
        .collect()
        .await;
    driver.abort();
    match body {
        Ok(body) => Ok(String::from_utf8_lossy(&body.to_bytes()).into_owned()),
        Err(error) => bail!("the demo pod's answer broke off: {error}"),
    }
}
