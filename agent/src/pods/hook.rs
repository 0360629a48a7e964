//! Runs what a container's lifecycle or a probe asks for: a command, a request, a pause.

mod http;

pub use http::{get, tcp};

use super::context::Context;
use crate::runtime::{ContainerId, ExecConfig, Runtime, RuntimeError};
use k8s_openapi::api::core::v1::{Container, HTTPGetAction, LifecycleHandler};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use std::net::IpAddr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Of a command's output, this much is kept for a message.
const OUTPUT_BYTES_MAX: u64 = 10 * 1024;
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
            target.ip.unwrap_or(target.context.host_ip),
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
    let config = ExecConfig {
        command,
        stdout: true,
        stderr: true,
        ..ExecConfig::default()
    };
    let streams = runtime.exec(id, config).await?;
    let (stdout, stderr) = (streams.stdout, streams.stderr);
    let reading = async { tokio::join!(head(stdout), head(stderr)) };
    tokio::pin!(reading);
    let mut exit = streams.exit;
    let mut read = None;
    // Goes on reading, so that a talkative command does not stand still.
    let code = loop {
        tokio::select! {
            code = &mut exit => break code?,
            both = &mut reading, if read.is_none() => read = Some(both),
        }
    };
    // A grandchild may hold the outputs open: what is there by now is enough.
    let (mut output, errors) = match read {
        Some(both) => both,
        None => tokio::time::timeout(Duration::from_millis(100), reading)
            .await
            .unwrap_or_default(),
    };
    output.extend(errors);
    Ok((code, String::from_utf8_lossy(&output).into_owned()))
}

async fn head(stream: Option<Box<dyn AsyncRead + Send + Unpin>>) -> Vec<u8> {
    let mut kept = Vec::new();
    if let Some(mut stream) = stream {
        let mut first = (&mut stream).take(OUTPUT_BYTES_MAX);
        if first.read_to_end(&mut kept).await.is_ok() {
            let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
        }
    }
    kept
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
