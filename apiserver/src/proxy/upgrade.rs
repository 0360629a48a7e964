//! WebSockets and other protocols that a request upgrades to, passed through as bytes.

use super::target::{Place, Target};
use super::{Proxy, headers, outgoing, unreachable};
use crate::respond;
use crate::tunnel::Body;
use coracle_api::status::Status;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;

impl Proxy {
    pub(super) async fn upgrade(
        &self,
        mut request: Parts,
        body: Body,
        target: &Target,
        path: &str,
    ) -> Result<Response<Body>, Status> {
        if matches!(target.place, Place::Agent(_)) {
            let why = "the node's own endpoints have no protocol to upgrade to";
            return Err(Status::bad_request(why));
        }
        let Some(client) = request.extensions.remove::<OnUpgrade>() else {
            let why = "this connection cannot be upgraded: HTTP/1.1 is needed";
            return Err(Status::bad_request(why));
        };
        headers::prepare_upgrade(&mut request);
        let dialled = self.dialer.dial(&target.place, target).await;
        let failed = |error: &dyn std::fmt::Display| {
            Status::internal(format!("error dialing backend: {error}"))
        };
        let stream = dialled.map_err(|error| failed(&error))?;
        switch(stream, outgoing(request, body, path)?, client).await
    }
}

/// Sends a request to upgrade, and joins both sides when it is granted.
pub async fn switch<S>(
    stream: S,
    request: Request<Body>,
    client: OnUpgrade,
) -> Result<Response<Body>, Status>
where
    S: hyper::rt::Read + hyper::rt::Write + Send + Unpin + 'static,
{
    let shaken = hyper::client::conn::http1::handshake(stream).await;
    let (mut sender, connection) = shaken.map_err(unreachable)?;
    // Its errors reach us through the response and the upgraded stream.
    tokio::spawn(connection.with_upgrades());
    let sent = sender.send_request(request).await;
    let failed = |error: hyper::Error| Status::internal(format!("error sending request: {error}"));
    let mut answer = sent.map_err(failed)?;
    let code = answer.status();
    if code != StatusCode::SWITCHING_PROTOCOLS {
        if code.as_u16() < 400 {
            let code = code.as_u16();
            let why = format!("invalid upgrade response: status code {code}");
            return Err(Status::internal(why));
        }
        let (mut parts, body) = answer.into_parts();
        headers::strip_answer(&mut parts.headers);
        parts.extensions.clear();
        let body = body.map_err(Into::into).boxed_unsync();
        return Ok(Response::from_parts(parts, body));
    }
    let far = hyper::upgrade::on(&mut answer);
    tokio::spawn(join(client, far));
    let (mut parts, _) = answer.into_parts();
    parts.extensions.clear();
    Ok(Response::from_parts(parts, respond::full("")))
}

/// Passes bytes on until one side ends, as upstream: then the other side is let go too.
async fn join(client: OnUpgrade, far: OnUpgrade) {
    let Ok((client, far)) = tokio::try_join!(client, far) else {
        return;
    };
    let halves = |stream: Upgraded| tokio::io::split(TokioIo::new(stream));
    let ((mut client_reads, mut client_writes), (mut far_reads, mut far_writes)) =
        (halves(client), halves(far));
    tokio::select! {
        _ = tokio::io::copy(&mut client_reads, &mut far_writes) => {}
        _ = tokio::io::copy(&mut far_reads, &mut client_writes) => {}
    }
    // What was read is written; either side may be gone already.
    let _ = tokio::io::AsyncWriteExt::shutdown(&mut client_writes).await;
}
