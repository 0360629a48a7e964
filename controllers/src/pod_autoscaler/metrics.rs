//! Reads metrics, as a client of whoever serves the three metrics APIs behind the API server.
//!
//! Failures are in upstream's words, which end up in conditions and events.

use std::collections::BTreeMap;
use std::time::Duration;

use coracle_api::go_duration;
use coracle_api::quantity::Quantity;
use coracle_client::Client;
use http::Request;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroup, ObjectMeta, Time};
use kube::Error;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::refusal;

const RESOURCE: &str = "/apis/metrics.k8s.io/v1beta1";
const EXTERNAL: &str = "/apis/external.metrics.k8s.io/v1beta1";
const CUSTOM_GROUP: &str = "custom.metrics.k8s.io";
/// Those that are understood.
const CUSTOM_VERSIONS: [&str; 2] = [
    "custom.metrics.k8s.io/v1beta2",
    "custom.metrics.k8s.io/v1beta1",
];
/// Of a metric that does not say over which time it was taken.
const WINDOW: Duration = Duration::from_secs(60);

/// What a pod uses, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PodMetric {
    pub at: Timestamp,
    pub window: Duration,
    pub milli: i64,
}

/// By the pod's name.
pub(super) type PodMetrics = BTreeMap<String, PodMetric>;

/// What a metric is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Query<'a> {
    pub namespace: &'a str,
    pub metric: &'a str,
    /// Of the metric's own labels.
    pub labels: &'a str,
}

#[derive(Deserialize)]
struct List<T> {
    #[serde(default = "Vec::new")]
    items: Vec<T>,
}

#[derive(Deserialize)]
struct Usage {
    metadata: ObjectMeta,
    timestamp: Time,
    #[serde(default)]
    window: String,
    #[serde(default)]
    containers: Vec<ContainerUsage>,
}

#[derive(Deserialize)]
struct ContainerUsage {
    name: String,
    #[serde(default)]
    usage: BTreeMap<String, Text>,
}

/// Of either version, which differ in the name of the window.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CustomValue {
    described_object: Described,
    timestamp: Time,
    #[serde(alias = "window")]
    window_seconds: Option<u64>,
    value: Text,
}

#[derive(Deserialize)]
struct Described {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct ExternalValue {
    value: Text,
}

#[derive(Clone)]
pub(super) struct MetricsClient {
    client: Client,
}

impl MetricsClient {
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }

    /// What pods use of a resource, together or in one container.
    pub(super) async fn resource(
        &self,
        namespace: &str,
        selector: &str,
        resource: &str,
        container: Option<&str>,
    ) -> Result<PodMetrics, String> {
        let path = format!("{RESOURCE}/namespaces/{namespace}/pods");
        let query = [("labelSelector", selector)];
        let about = "pods.metrics.k8s.io";
        let list: List<Usage> = self
            .get(&path, &query, about)
            .await
            .map_err(|why| format!("unable to fetch metrics from resource metrics API: {why}"))?;
        if list.items.is_empty() {
            return Err("no metrics returned from resource metrics API".to_owned());
        }
        let mut metrics = PodMetrics::new();
        for usage in &list.items {
            let milli = match container {
                Some(name) => of_container(usage, resource, name),
                None => of_pod(usage, resource),
            };
            if let (Some(milli), Some(name)) = (milli, &usage.metadata.name) {
                let nanoseconds = go_duration::parse(&usage.window).unwrap_or(0);
                let metric = PodMetric {
                    at: usage.timestamp.0,
                    window: Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(0)),
                    milli,
                };
                metrics.insert(name.clone(), metric);
            }
        }
        Ok(metrics)
    }

    /// A metric of each pod that is selected.
    pub(super) async fn of_pods(
        &self,
        query: Query<'_>,
        selector: &str,
    ) -> Result<PodMetrics, String> {
        let path = format!("namespaces/{}/pods/*/{}", query.namespace, query.metric);
        let parameters = [
            ("labelSelector", selector),
            ("metricLabelSelector", query.labels),
        ];
        let values = self
            .custom(&path, &parameters, "pods")
            .await
            .map_err(from_custom)?;
        if values.is_empty() {
            return Err("no metrics returned from custom metrics API".to_owned());
        }
        let metric = |value: CustomValue| {
            let metric = PodMetric {
                at: value.timestamp.0,
                window: value.window_seconds.map_or(WINDOW, Duration::from_secs),
                milli: milli(&value.value),
            };
            (value.described_object.name, metric)
        };
        Ok(values.into_iter().map(metric).collect())
    }

    /// A metric of one object; `object` is its resource and name, `None` for the namespace.
    pub(super) async fn of_object(
        &self,
        query: Query<'_>,
        object: Option<(&str, &str)>,
    ) -> Result<i64, String> {
        let Query {
            namespace, metric, ..
        } = query;
        let (path, about) = match object {
            Some((resource, name)) => {
                let path = format!("namespaces/{namespace}/{resource}/{name}/{metric}");
                (path, resource)
            }
            None => (
                format!("namespaces/{namespace}/metrics/{metric}"),
                "metrics",
            ),
        };
        let parameters = [("metricLabelSelector", query.labels)];
        let values = self.custom(&path, &parameters, about).await;
        match values.map_err(from_custom)?.as_slice() {
            [one] => Ok(milli(&one.value)),
            others => Err(from_custom(format!(
                "the custom metrics API server returned {} results when we asked for exactly one",
                others.len()
            ))),
        }
    }

    /// Every value of a metric of no object.
    pub(super) async fn external(&self, query: Query<'_>) -> Result<Vec<i64>, String> {
        let (namespace, metric) = (query.namespace, query.metric);
        let path = format!("{EXTERNAL}/namespaces/{namespace}/{metric}");
        let about = format!("{metric}.external.metrics.k8s.io");
        let list: List<ExternalValue> = self
            .get(&path, &[("labelSelector", query.labels)], &about)
            .await
            .map_err(|why| format!("unable to fetch metrics from external metrics API: {why}"))?;
        if list.items.is_empty() {
            return Err("no metrics returned from external metrics API".to_owned());
        }
        Ok(list.items.iter().map(|one| milli(&one.value)).collect())
    }

    async fn custom(
        &self,
        path: &str,
        parameters: &[(&str, &str)],
        resource: &str,
    ) -> Result<Vec<CustomValue>, String> {
        let groups = self.client.list_api_groups().await;
        let groups = groups.map_err(|error| refusal::message(&error))?.groups;
        let group = groups.iter().find(|group| group.name == CUSTOM_GROUP);
        let version = custom_version(group)?;
        let about = format!("{resource}.{CUSTOM_GROUP}");
        let path = format!("/apis/{version}/{path}");
        let list: List<CustomValue> = self.get(&path, parameters, &about).await?;
        Ok(list.items)
    }

    async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        parameters: &[(&str, &str)],
        about: &str,
    ) -> Result<T, String> {
        let request = Request::get(with_query(path, parameters)).body(Vec::new());
        let request = request.map_err(|error| error.to_string())?;
        let answer = self.client.request(request).await;
        answer.map_err(|error| failure(&error, about))
    }
}

fn from_custom(why: String) -> String {
    format!("unable to fetch metrics from custom metrics API: {why}")
}

/// The version that the server prefers, if it is understood; else the first that is.
fn custom_version(group: Option<&APIGroup>) -> Result<String, String> {
    let group =
        group.ok_or_else(|| format!("no custom metrics API ({CUSTOM_GROUP}) registered"))?;
    let preferred = group.preferred_version.iter();
    let mut offered = preferred.chain(&group.versions);
    let known = offered.find(|one| CUSTOM_VERSIONS.contains(&one.group_version.as_str()));
    let known = known.ok_or("no known available metric versions found")?;
    Ok(known.group_version.clone())
}

/// None where a container does not tell: the pod counts as one without metrics.
fn of_pod(usage: &Usage, resource: &str) -> Option<i64> {
    if usage.containers.is_empty() {
        return None;
    }
    let of_each = usage.containers.iter().map(|one| one.usage.get(resource));
    let total: Option<i64> = of_each.map(|amount| amount.map(milli)).sum();
    total
}

fn of_container(usage: &Usage, resource: &str, name: &str) -> Option<i64> {
    let container = usage.containers.iter().find(|one| one.name == name)?;
    container.usage.get(resource).map(milli)
}

/// In thousandths; what is no quantity is nothing.
pub(super) fn milli(text: &Text) -> i64 {
    Quantity::parse(&text.0).map_or(0, |amount| amount.milli_value())
}

/// The server's words; those of upstream's client where it answered with no `Status`.
fn failure(error: &Error, about: &str) -> String {
    let Error::Api(status) = error else {
        return error.to_string();
    };
    if status.reason != "Failed to parse error data" {
        return status.message.clone();
    }
    match status.code {
        404 => format!("the server could not find the requested resource (get {about})"),
        503 => format!("the server is currently unable to handle the request (get {about})"),
        code => format!(
            "the server responded with the status code {code} but did not return more \
             information (get {about})"
        ),
    }
}

/// A path with those parameters that say something.
fn with_query(path: &str, parameters: &[(&str, &str)]) -> String {
    let mut url = escaped(path, b"/*");
    let said = parameters.iter().filter(|(_, value)| !value.is_empty());
    for (index, (name, value)) in said.enumerate() {
        url.push(if index == 0 { '?' } else { '&' });
        url.push_str(name);
        url.push('=');
        url.push_str(&escaped(value, b""));
    }
    url
}

fn escaped(text: &str, kept: &[u8]) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || kept.contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests;
