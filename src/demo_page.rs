//! The page that the demo's containers serve: which pod answered, from which address.
//!
//! Runs inside an image that holds nothing but this binary.

use anyhow::Context;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;

/// A demo page serves people; past this, callers wait in the listen queue.
const CONNECTIONS_MAX: usize = 64;

pub fn serve(listen: &str) -> anyhow::Result<()> {
    let listen: SocketAddr = listen
        .parse()
        .context("--listen must be an address and a port")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(listen).await?;
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            result = accept(listener) => result,
            _ = terminate.recv() => Ok(()),
        }
    })
}

async fn accept(listener: TcpListener) -> anyhow::Result<()> {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let place = Arc::clone(&places).acquire_owned().await?;
        let (stream, _) = listener.accept().await?;
        let address = stream.local_addr()?;
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(request, address));
            let connection = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service);
            // A caller that goes away in the middle is of no interest to a demo.
            drop(connection.await);
            drop(place);
        });
    }
}

async fn answer(
    _request: Request<Incoming>,
    address: SocketAddr,
) -> Result<Response<Full<bytes::Bytes>>, Infallible> {
    let host = nix::unistd::gethostname().map_or_else(
        |_| "unknown".to_owned(),
        |name| name.to_string_lossy().into_owned(),
    );
    let text = format!("Hello from pod {host} at {}\n", address.ip());
    Ok(Response::new(Full::new(text.into())))
}
