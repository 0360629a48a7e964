//! Asks a container how it is: a command, an HTTP request, a TCP connection,
//! gRPC's health service.

use super::super::back_off::go_duration;
use super::super::context::Context;
use super::super::hook;
use super::grpc;
use crate::runtime::ContainerId;
use k8s_openapi::api::core::v1::{Container, Probe};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Answer {
    Success,
    /// With the words of the event.
    Failure(String),
}

pub async fn ask(
    context: &Context,
    probe: &Probe,
    container: &Container,
    id: &ContainerId,
    ip: IpAddr,
    bound: Duration,
) -> Answer {
    if let Some(action) = &probe.exec {
        let command = action.command.clone().unwrap_or_default();
        let asked = hook::exec(context.runtime.as_ref(), id, command.clone());
        return match tokio::time::timeout(bound, asked).await {
            Ok(Ok((0, _))) => Answer::Success,
            Ok(Ok((_, output))) => Answer::Failure(output),
            Ok(Err(error)) => Answer::Failure(error.to_string()),
            Err(_) => Answer::Failure(format!(
                "command timed out: {:?} timed out after {}",
                command.join(" "),
                go_duration(bound)
            )),
        };
    }
    if let Some(action) = &probe.http_get {
        let url = match hook::http_url(action, container, ip) {
            Ok(url) => url,
            Err(message) => return Answer::Failure(message),
        };
        return match tokio::time::timeout(bound, hook::get(&url, action)).await {
            Ok(Ok((status, _))) if (200..400).contains(&status) => Answer::Success,
            Ok(Ok((status, _))) => {
                Answer::Failure(format!("HTTP probe failed with statuscode: {status}"))
            }
            Ok(Err(error)) => Answer::Failure(error.to_string()),
            Err(_) => Answer::Failure(format!(
                "Get {url:?}: context deadline exceeded (Client.Timeout exceeded while awaiting \
                 headers)"
            )),
        };
    }
    if let Some(action) = &probe.tcp_socket {
        let port = match hook::port(&action.port, container) {
            Ok(port) => port,
            Err(message) => return Answer::Failure(message),
        };
        let host = action.host.clone().filter(|host| !host.is_empty());
        let host = host.unwrap_or_else(|| ip.to_string());
        return match tokio::time::timeout(bound, hook::tcp(&host, port)).await {
            Ok(Ok(())) => Answer::Success,
            Ok(Err(message)) => Answer::Failure(message),
            Err(_) => Answer::Failure(format!("dial tcp {host}:{port}: i/o timeout")),
        };
    }
    if let Some(action) = &probe.grpc {
        let Some(port) = u16::try_from(action.port).ok().filter(|port| *port > 0) else {
            return Answer::Failure(format!("invalid port number: {}", action.port));
        };
        let service = action.service.as_deref().unwrap_or("");
        return grpc::check(SocketAddr::new(ip, port), service, bound).await;
    }
    Answer::Failure("missing probe handler".to_owned())
}
