//! Makes what a pod's containers share: volumes, sandbox, network, hosts and resolver.

use super::context::Context;
use super::state::Retry;
use super::worker::Update;
use super::{container_config, files, groups, mount, resolver, state};
use crate::error::chain;
use crate::families::Families;
use crate::network::Resolvers;
use crate::runtime::{IdRange, SandboxConfig, SandboxId, SandboxStatus};
use coracle_client::events::EventType;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::node::v1::RuntimeClass;
use kube::Api;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

pub const HOSTS: &str = "etc-hosts";
pub const RESOLV_CONF: &str = "resolv.conf";

/// Which event tells of the failure, its message, and when to try again.
pub struct Failure {
    pub reason: &'static str,
    pub message: String,
    pub retry: Retry,
}

impl Failure {
    pub fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            retry: Retry::BackedOff,
        }
    }

    /// Somebody else tells of it.
    pub fn silent(retry: Retry) -> Self {
        Self {
            retry,
            ..Self::new("", "")
        }
    }

    fn of_sandbox(message: impl Into<String>) -> Self {
        Self::new("FailedCreatePodSandBox", message)
    }
}

/// `existing` is a sandbox that a former try left without its network.
pub async fn prepare(
    context: &Arc<Context>,
    pod: &Arc<Pod>,
    attempt: u32,
    existing: Option<SandboxId>,
    quality: &str,
    halt: &CancellationToken,
) -> Update {
    let failed = |failure: Failure, sandbox| {
        if !failure.message.is_empty() {
            context.event(pod, EventType::Warning, failure.reason, failure.message);
        }
        Update::PrepareFailed(failure.retry, sandbox)
    };
    let naming = match lay_out(context, pod, halt).await {
        Ok(naming) => naming,
        Err(failure) => return failed(failure, None),
    };
    let sandbox = match sandbox(context, pod, attempt, existing, quality).await {
        Ok(sandbox) => Box::new(sandbox),
        Err(failure) => return failed(failure, left(context, pod, attempt).await.map(Box::new)),
    };
    match connect(context, pod, &sandbox, &naming, halt).await {
        Ok(ips) => Update::Prepared(sandbox, ips),
        Err(failure) => failed(failure, Some(sandbox)),
    }
}

fn not_made(error: &dyn std::error::Error) -> Failure {
    Failure::of_sandbox(format!("Failed to create pod sandbox: {}", chain(error)))
}

fn unwritten(error: std::io::Error) -> Failure {
    Failure::of_sandbox(error.to_string())
}

/// Volumes and files, which are there before the sandbox.
async fn lay_out(
    context: &Arc<Context>,
    pod: &Arc<Pod>,
    halt: &CancellationToken,
) -> Result<Naming, Failure> {
    let is_host_network = state::spec(pod).host_network.unwrap_or(false);
    if let Some(problem) = context.network.problem().filter(|_| !is_host_network) {
        let message = format!("network is not ready: {problem}");
        return Err(Failure {
            // Costs the server nothing.
            retry: Retry::Soon,
            ..Failure::new("NetworkNotReady", message)
        });
    }
    mount::mount(context, pod, halt).await?;
    let naming = naming(context, pod).map_err(unwritten)?;
    if is_host_network {
        // Such a sandbox counts as prepared once it is there: the files come first.
        write_files(context, pod, Families::default(), &naming.resolvers).map_err(unwritten)?;
    } else {
        forget_files(&context.pod_directory(pod)).map_err(unwritten)?;
    }
    Ok(naming)
}

/// The sandbox without its network.
async fn sandbox(
    context: &Context,
    pod: &Pod,
    attempt: u32,
    existing: Option<SandboxId>,
    quality: &str,
) -> Result<SandboxStatus, Failure> {
    let sandbox = match existing {
        Some(sandbox) => sandbox,
        None => {
            if attempt > 0 {
                let message = "Pod sandbox changed, it will be killed and re-created.";
                context.event(pod, EventType::Normal, "SandboxChanged", message);
                let uid = pod.metadata.uid.as_deref().unwrap_or_default();
                let stopped = stop_former(context, uid).await;
                stopped.map_err(|error| {
                    Failure::new("FailedKillPod", format!("error killing pod: {error}"))
                })?;
            }
            let config = sandbox_config(context, pod, attempt, quality).await;
            let config = config.map_err(|error| {
                Failure::of_sandbox(format!("Failed to create pod sandbox: {error}"))
            })?;
            let made = context.runtime.run_sandbox(config).await;
            made.map_err(|error| not_made(&error))?
        }
    };
    let status = context.runtime.sandbox_status(&sandbox).await;
    status.map_err(|error| not_made(&error))
}

/// What a runtime made although it said that it failed, or did not answer in time.
async fn left(context: &Context, pod: &Pod, attempt: u32) -> Option<SandboxStatus> {
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let (sandboxes, _) = context.runtime.of_pod(uid).await.ok()?;
    let of_this_try = sandboxes.into_iter();
    of_this_try
        .filter(|sandbox| sandbox.config.attempt == attempt)
        .max_by_key(|sandbox| sandbox.created_at)
}

/// Its network, and what depends on that.
async fn connect(
    context: &Context,
    pod: &Pod,
    sandbox: &SandboxStatus,
    naming: &Naming,
    halt: &CancellationToken,
) -> Result<Families<IpAddr>, Failure> {
    let attached = tokio::select! {
        attached = context.network.attach(sandbox, &naming.resolvers) => attached,
        // A plugin may take long, and nobody needs the pod any more.
        () = halt.cancelled() => return Err(Failure::silent(Retry::Soon)),
    };
    let ips = attached.map_err(|error| not_made(&error))?;
    if !state::spec(pod).host_network.unwrap_or(false) {
        write_files(context, pod, ips, &naming.resolvers).map_err(unwritten)?;
    }
    naming.tell(context, pod);
    Ok(ips)
}

/// A sandbox that broke off, since its own process died, still has its network and its namespaces.
async fn stop_former(context: &Context, uid: &str) -> Result<(), String> {
    let sandboxes = context.runtime.list_sandboxes().await;
    let sandboxes = sandboxes.map_err(|error| chain(&error))?;
    for former in sandboxes.iter().filter(|one| one.config.pod_uid == uid) {
        let stopped = context.stop_sandbox(&former.id).await;
        stopped.map_err(|error| chain(&error))?;
    }
    Ok(())
}

async fn sandbox_config(
    context: &Context,
    pod: &Pod,
    attempt: u32,
    quality: &str,
) -> Result<SandboxConfig, String> {
    let handler = handler(context, pod).await?;
    let hostname = match state::spec(pod).host_network {
        Some(true) => String::new(),
        _ => files::hostname(pod, &context.cluster_domain())?,
    };
    let mut config = container_config::sandbox(pod, attempt, hostname, quality);
    config.resources.pids_limit = context.confines.pod_pids_max;
    config.resources.huge_page_limits = groups::huge_pages_of_pod(pod);
    Ok(SandboxConfig {
        id_range: id_range(context, pod).await?,
        log_directory: context.log_directory(pod),
        handler,
        ..config
    })
}

/// Of the pod's RuntimeClass, which must be there. Whether the runtime has it, the runtime says.
async fn handler(context: &Context, pod: &Pod) -> Result<String, String> {
    let name = state::spec(pod).runtime_class_name.as_deref();
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Ok(String::new());
    };
    let classes: Api<RuntimeClass> = Api::all(context.client.clone());
    let found = classes.get_opt(name).await;
    let found = found.map_err(|error| format!("failed to lookup RuntimeClass {name}: {error}"))?;
    match found {
        Some(class) => Ok(class.handler),
        None => Err(format!("runtimeclass.node.k8s.io {name:?} not found")),
    }
}

/// Of a pod that is not to have the node's users; errors in upstream's words.
async fn id_range(context: &Context, pod: &Pod) -> Result<Option<IdRange>, String> {
    if state::spec(pod).host_users != Some(false) {
        return Ok(None);
    }
    if !context.runtime.has_user_namespaces().await {
        let handler = state::spec(pod).runtime_class_name.as_deref();
        return Err(match handler.filter(|handler| !handler.is_empty()) {
            Some(handler) => format!(
                "can't set `spec.hostUsers: false`, RuntimeClass handler {handler:?} does not \
                 support user namespaces"
            ),
            None => "can't set `spec.hostUsers: false`, runtime does not support user namespaces"
                .to_owned(),
        });
    }
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let find = {
        let (ranges, pods) = (context.confines.id_ranges.clone(), context.pods_directory());
        let uid = uid.to_owned();
        move || ranges.of_pod(&pods, &uid, rand::random())
    };
    let failed = |error: &dyn std::fmt::Display| format!("create user namespace: {error}");
    let found = context.volume_writes.run(uid, find).await;
    let range = found.map_err(|error| failed(&error))?;
    range.map(Some).map_err(|error| failed(&error))
}

/// True when a sandbox with a network of its own was prepared to the end, as an agent that starts
/// anew must know: an address is taken at the beginning, the resolver's file is written last.
pub fn is_complete(directory: &Path) -> bool {
    directory.join(RESOLV_CONF).is_file()
}

fn forget_files(directory: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(directory.join(RESOLV_CONF)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn write_files(
    context: &Context,
    pod: &Pod,
    ips: Families<IpAddr>,
    resolvers: &Resolvers,
) -> std::io::Result<()> {
    let directory = context.pod_directory(pod);
    std::fs::create_dir_all(&directory)?;
    let hosts = files::hosts(pod, ips, &of_node("/etc/hosts"), &context.cluster_domain());
    std::fs::write(directory.join(HOSTS), hosts)?;
    // After a power cut there is no sandbox either, and it is written anew.
    let path = directory.join(RESOLV_CONF);
    crate::atomic_file::write_soon(&path, resolvers.text().as_bytes(), 0o644)
}

fn of_node(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Who answers names for a pod, and what it asks for besides and cannot have.
struct Naming {
    resolvers: Resolvers,
    problems: Vec<resolver::Problem>,
}

impl Naming {
    /// Once for a sandbox, however often its network is tried.
    fn tell(&self, context: &Context, pod: &Pod) {
        for problem in &self.problems {
            if problem.reason == resolver::MISSING_CLUSTER_DNS {
                let node = crate::node::reference(&context.node_name);
                let said = problem.of_node.unwrap_or(&problem.message);
                let type_ = EventType::Warning;
                context.recorder.event(&node, type_, problem.reason, said);
            }
            let message = problem.message.as_str();
            context.event(pod, EventType::Warning, problem.reason, message);
        }
    }
}

fn naming(context: &Context, pod: &Pod) -> std::io::Result<Naming> {
    let text_of_node = match &context.resolv_conf {
        Some(path) => std::fs::read_to_string(path)?,
        // systemd-resolved's stub on 127.0.0.53 is not reachable from a pod's own network.
        None => match of_node("/run/systemd/resolve/resolv.conf") {
            text if text.is_empty() => of_node("/etc/resolv.conf"),
            text => text,
        },
    };
    let cluster = context.cluster_dns();
    let (resolvers, problems) = resolver::of_pod(pod, &text_of_node, cluster.as_ref());
    Ok(Naming {
        resolvers,
        problems,
    })
}

#[cfg(test)]
mod tests;
