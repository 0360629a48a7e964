//! Runs what a container's lifecycle or a probe asks for: a command, a request, a pause.

mod http;

pub use http::{get, tcp};

use super::context::Context;
use crate::runtime::{ContainerId, Runtime, RuntimeError};
use k8s_openapi::api::core::v1::{Container, HTTPGetAction, LifecycleHandler};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use std::net::IpAddr;
use std::time::Duration;

/// Of a command's output, this much is kept for a message.
const OUTPUT_BYTES_MAX: usize = 20 * 1024;
/// Of a request that a hook makes.
const REQUEST_MAX: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct Target<'a> {
    pub context: &'a Context,
    pub container: &'a Container,
    pub id: &'a ContainerId,
    pub ip: Option<IpAddr>,
}

/// Ends when the hook has; the caller bounds the time. The error is fit for a message.
pub async fn run(target: &Target<'_>, handler: &LifecycleHandler) -> Result<(), String> {
    if let Some(action) = &handler.exec {
        let command = action.command.clone().unwrap_or_default();
        let done = exec(target.context.runtime.as_ref(), target.id, command.clone()).await;
        let (code, output) = done.map_err(|error| error.to_string())?;
        return if code == 0 {
            Ok(())
        } else {
            Err(format!("command {command:?} exited with {code}: {output}"))
        };
    }
    if let Some(action) = &handler.http_get {
        let url = http_url(
            action,
            target.container,
            target.ip.unwrap_or_else(|| target.context.host.first()),
        )?;
        let answer = tokio::time::timeout(REQUEST_MAX, get(&url, action)).await;
        return match answer {
            Ok(Ok((status, _))) if status < 400 => Ok(()),
            Ok(Ok((status, _))) => Err(format!("HTTP hook failed with statuscode: {status}")),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("Get {url:?}: no answer in time")),
        };
    }
    if let Some(action) = &handler.sleep {
        let seconds = u64::try_from(action.seconds).unwrap_or(0);
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }
    Ok(())
}

/// The exit code and the first of both outputs.
pub async fn exec(
    runtime: &dyn Runtime,
    id: &ContainerId,
    command: Vec<String>,
) -> Result<(i32, String), RuntimeError> {
    let (code, mut output) = runtime.exec_sync(id, command).await?;
    output.truncate(OUTPUT_BYTES_MAX);
    Ok((code, String::from_utf8_lossy(&output).into_owned()))
}

/// The number of a port that may be given by its name.
pub fn port(port: &IntOrString, container: &Container) -> Result<u16, String> {
    let number = match port {
        IntOrString::Int(number) => Some(*number),
        IntOrString::String(name) => {
            let ports = container.ports.as_deref().unwrap_or_default();
            let named = ports.iter().find(|port| port.name.as_ref() == Some(name));
            named
                .map(|port| port.container_port)
                .or_else(|| name.parse().ok())
        }
    };
    let number = number.and_then(|number| u16::try_from(number).ok());
    number
        .filter(|number| *number > 0)
        .ok_or_else(|| match port {
            IntOrString::Int(number) => format!("invalid port number: {number}"),
            IntOrString::String(name) => format!("couldn't find port: {name:?}"),
        })
}

/// `scheme://host:port/path`, on the pod's address where no host is named.
pub fn http_url(
    action: &HTTPGetAction,
    container: &Container,
    ip: IpAddr,
) -> Result<String, String> {
    let port = port(&action.port, container)?;
    let scheme = action.scheme.as_deref().unwrap_or("HTTP").to_lowercase();
    let host = match action.host.as_deref().filter(|host| !host.is_empty()) {
        Some(host) => host.to_owned(),
        None if ip.is_ipv6() => format!("[{ip}]"),
        None => ip.to_string(),
    };
    let path = action.path.as_deref().unwrap_or("/");
    let slash = if path.starts_with('/') { "" } else { "/" };
    Ok(format!("{scheme}://{host}:{port}{slash}{path}"))
}
