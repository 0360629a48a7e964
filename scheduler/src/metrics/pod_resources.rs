//! What each pod asks for and may use at most: upstream's `/metrics/resources`.
//!
//! Read from the API whenever somebody asks, page by page: of a pod on a node the scheduler keeps
//! neither limits nor whose scheduler placed it. Looks at the spec alone, as upstream does.

use coracle_api::amounts::Amounts;
use coracle_api::exposition::{Format, Text, go_number};
use coracle_api::pod_spec::resources;
use coracle_api::quantity::Quantity;
use coracle_client::Client;
use kube::api::ListParams;
use kube::core::Request;
use serde::Deserialize;
use serde_json::Value;

/// Pods a page: some megabytes of JSON at most.
const PAGE_PODS_MAX: u32 = 500;
/// Those the scheduler watches.
const LIVING: &str = "status.phase!=Succeeded,status.phase!=Failed";

const REQUEST: &str = "kube_pod_resource_request";
const LIMIT: &str = "kube_pod_resource_limit";

#[derive(Debug, Deserialize)]
struct Page {
    metadata: Position,
    items: Vec<Pod>,
}

#[derive(Debug, Deserialize)]
struct Position {
    #[serde(rename = "continue")]
    next: Option<String>,
}

/// What is looked at of a pod.
#[derive(Debug, Deserialize)]
struct Pod {
    metadata: Name,
    #[serde(default)]
    spec: Value,
}

#[derive(Debug, Deserialize)]
struct Name {
    #[serde(default)]
    namespace: String,
    name: String,
}

/// Of all pods, in Prometheus' format.
///
/// # Errors
///
/// The API server does not list pods.
pub async fn pod_resources(client: &Client) -> Result<String, kube::Error> {
    let mut sums = Sums::default();
    let mut params = ListParams::default().fields(LIVING).limit(PAGE_PODS_MAX);
    loop {
        let request = Request::new("/api/v1/pods")
            .list(&params)
            .map_err(kube::Error::BuildRequest)?;
        let page: Page = client.request(request).await?;
        page.items.iter().for_each(|pod| sums.add(pod));
        match page.metadata.next.filter(|next| !next.is_empty()) {
            Some(next) => params.continue_token = Some(next),
            None => return Ok(sums.into_string()),
        }
    }
}

/// The samples of both families; a family without one is not shown.
#[derive(Debug, Default)]
struct Sums {
    requests: Option<Text>,
    limits: Option<Text>,
}

impl Sums {
    fn add(&mut self, pod: &Pod) {
        let spec = &pod.spec;
        let overhead = Amounts::of(&spec["overhead"]);
        let mut requests = resources::of_pod(spec, "requests");
        requests.add(&overhead);
        let mut limits = resources::of_pod(spec, "limits");
        // What has no limit gets none by its overhead.
        let is_limited = |name: &str| limits.get(name).is_some_and(|amount| !amount.is_zero());
        let more = overhead.only(is_limited);
        limits.add(&more);
        for (name, amount) in requests.iter() {
            let text = &mut self.requests;
            sample(text, REQUEST, "Resources requested by", pod, name, amount);
        }
        for (name, amount) in limits.iter() {
            let text = &mut self.limits;
            sample(text, LIMIT, "Resources limit for", pod, name, amount);
        }
    }

    fn into_string(self) -> String {
        let both = [self.limits, self.requests].into_iter().flatten();
        both.map(Text::into_string).collect()
    }
}

fn sample(
    text: &mut Option<Text>,
    family: &str,
    what: &str,
    pod: &Pod,
    resource: &str,
    amount: Quantity,
) {
    if amount.is_zero() {
        return;
    }
    let text = text.get_or_insert_with(|| {
        let mut text = Text::new(Format::Prometheus);
        let help = format!(
            "{what} workloads on the cluster, broken down by pod. This shows the resource usage \
             the scheduler and kubelet expect per pod for resources along with the unit for the \
             resource if any."
        );
        text.family(family, "gauge", &help);
        text
    });
    let said = |name: &str| pod.spec[name].as_str().unwrap_or_default();
    let priority = pod.spec["priority"]
        .as_i64()
        .map(|priority| priority.to_string());
    let labels = [
        ("namespace", pod.metadata.namespace.as_str()),
        ("node", said("nodeName")),
        ("pod", &pod.metadata.name),
        ("priority", priority.as_deref().unwrap_or_default()),
        ("resource", resource),
        ("scheduler", said("schedulerName")),
        ("unit", unit(resource)),
    ];
    text.sample(family, &labels, go_number(number(amount)));
}

fn unit(resource: &str) -> &'static str {
    match resource {
        "cpu" => "cores",
        "memory" | "storage" | "ephemeral-storage" => "bytes",
        _ if resource.starts_with(resources::HUGE_PAGES) => "bytes",
        _ if resource.starts_with("attachable-volumes-") => "integer",
        _ => "",
    }
}

/// Validation keeps out what is finer than a thousandth.
fn number(amount: Quantity) -> f64 {
    match amount.is_whole() {
        true => amount.value() as f64,
        false => amount.milli_value() as f64 / 1000.0,
    }
}

#[cfg(test)]
mod tests;
