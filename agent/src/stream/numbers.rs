//! `/stats/summary` and the paths of metrics.

use super::answer::{Body, full, json, refuse};
use super::request::{Metrics, Query};
use super::serve::Server;
use crate::stats::Part;
use coracle_api::exposition::{Text, process};
use http::{HeaderValue, Response, StatusCode};

const METRICS_TYPE: HeaderValue =
    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8; escaping=underscores");

pub async fn summary(server: &Server, query: &Query) -> Response<Body> {
    let part = match query.all("only_cpu_and_memory").as_slice() {
        [only] if only == "true" => Part::CpuAndMemory,
        _ => Part::All,
    };
    match server.stats.summary(part).await {
        Ok(summary) => json(&summary),
        Err(error) => {
            let text = format!("Internal Error: failed to list pod stats: {error}");
            refuse(StatusCode::INTERNAL_SERVER_ERROR, text)
        }
    }
}

pub async fn metrics(server: &Server, metrics: Metrics) -> Response<Body> {
    let stats = &server.stats;
    let text = match metrics {
        Metrics::Own => stats.own_metrics().await,
        Metrics::Cadvisor => stats.cadvisor_metrics().await,
        Metrics::Resource => stats.resource_metrics().await,
        Metrics::Probes => {
            let mut text = Text::default();
            process::started(&mut text, stats.started());
            stats.context.tallies.text(&mut text);
            text.into_string()
        }
    };
    let mut response = Response::new(full(text));
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, METRICS_TYPE);
    response
}
