//! Asks `grpc.health.v1.Health/Check`. The words of a failure are upstream's.

use super::super::back_off::go_duration;
use super::ask::Answer;
use crate::grpc::{Channel, Code, Endpoint, Status};
use std::net::SocketAddr;
use std::time::Duration;

/// The answer is a few bytes; more is not an answer of this service.
const ANSWER_BYTES_MAX: usize = 4096;
const SERVING: i32 = 1;
/// The names of `HealthCheckResponse.ServingStatus`, by number.
const STATUSES: [&str; 4] = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"];

#[derive(Clone, PartialEq, prost::Message)]
struct HealthCheckRequest {
    #[prost(string, tag = "1")]
    service: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct HealthCheckResponse {
    #[prost(int32, tag = "1")]
    status: i32,
}

pub async fn check(address: SocketAddr, service: &str, bound: Duration) -> Answer {
    let channel = Channel::new(Endpoint::Tcp(address), ANSWER_BYTES_MAX);
    let mut is_connected = false;
    let asking = async {
        channel.connect().await.map_err(|error| {
            format!("error: failed to connect service at \"{address}\": {error}")
        })?;
        is_connected = true;
        let service = service.to_owned();
        let question = HealthCheckRequest { service };
        let path = "/grpc.health.v1.Health/Check";
        let answer = channel.unary(path, &question, bound).await;
        answer
            .map(|answer: HealthCheckResponse| answer.status)
            .map_err(|status| failed(&status, bound))
    };
    let asked = tokio::time::timeout(bound, asking).await;
    match asked {
        Ok(Ok(SERVING)) => Answer::Success,
        Ok(Ok(status)) => {
            let known = usize::try_from(status).ok().and_then(|n| STATUSES.get(n));
            let name = known.map_or_else(|| status.to_string(), |name| (*name).to_owned());
            Answer::Failure(format!("service unhealthy (responded with {name:?})"))
        }
        Ok(Err(message)) => Answer::Failure(message),
        Err(_) if is_connected => Answer::Failure(deadline(bound)),
        Err(_) => Answer::Failure(format!(
            "timeout: failed to connect service \"{address}\" within {}: context deadline exceeded",
            go_duration(bound)
        )),
    }
}

fn failed(status: &Status, bound: Duration) -> String {
    match status.code {
        Code::UNIMPLEMENTED => format!(
            "error: this server does not implement the grpc health protocol \
             (grpc.health.v1.Health): {}",
            status.message
        ),
        Code::DEADLINE_EXCEEDED => deadline(bound),
        _ => format!("error: health rpc probe failed: {status}"),
    }
}

fn deadline(bound: Duration) -> String {
    let within = go_duration(bound);
    format!("timeout: health rpc did not complete within {within}")
}

#[cfg(test)]
mod tests;
