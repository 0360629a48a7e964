//! How a node joins a cluster that is not Coracle's, and what does not go together with that.

use super::{BadSetting, parse};
use crate::cli::AgentArgs;
use coracle_agent::Joining;

/// The kubelet's.
const PORT: u16 = 10250;

/// `is_agent` is false for `up`, which has a server of its own.
pub fn joining(args: &AgentArgs, is_agent: bool) -> Result<Option<Joining>, BadSetting> {
    let (flag, path) = match (&args.kubeconfig, &args.bootstrap_kubeconfig) {
        (Some(_), Some(path)) => {
            let expected = "cannot be used together with --kubeconfig: the node keeps the \
                            certificate that it gets";
            return Err(BadSetting::new("bootstrap-kubeconfig", path, expected));
        }
        (Some(path), None) => ("kubeconfig", path),
        (None, Some(path)) => ("bootstrap-kubeconfig", path),
        (None, None) => return without(args),
    };
    let others = [
        (
            "up, which runs its own server; use coracle agent",
            !is_agent,
        ),
        (
            "--server: it names its server itself",
            args.server.is_some(),
        ),
        (
            "--token: tokens are of Coracle's own servers",
            args.token.is_some() || args.token_file.is_some(),
        ),
    ];
    if let Some((other, _)) = others.into_iter().find(|(_, is_given)| *is_given) {
        let expected = format!("cannot be used with {other}");
        return Err(BadSetting::new(flag, path, expected));
    }
    let client_ca = args.client_ca_file.as_deref();
    let client_ca = client_ca.map(|path| parse::file("client-ca-file", path));
    Ok(Some(Joining {
        kubeconfig: parse::file(flag, path)?,
        is_bootstrap: flag == "bootstrap-kubeconfig",
        port: port(args.kubelet_port.as_deref())?,
        client_ca: client_ca.transpose()?,
        pod_networks: pod_networks(args.non_masquerade_cidr.as_deref())?,
    }))
}

/// A node of ours listens nowhere, and knows where pods are, so that none means anything.
fn without(args: &AgentArgs) -> Result<Option<Joining>, BadSetting> {
    const NOWHERE: &str = "the node listens nowhere";
    const KNOWN: &str = "the node knows the networks of all pods";
    let given = [
        ("kubelet-port", &args.kubelet_port, NOWHERE),
        ("client-ca-file", &args.client_ca_file, NOWHERE),
        ("non-masquerade-cidr", &args.non_masquerade_cidr, KNOWN),
    ];
    for (flag, value, why) in given {
        if let Some(value) = value {
            let expected = format!(
                "needs --kubeconfig or --bootstrap-kubeconfig: with a server of Coracle's {why}"
            );
            return Err(BadSetting::new(flag, value, expected));
        }
    }
    Ok(None)
}

fn pod_networks(given: Option<&str>) -> Result<Vec<String>, BadSetting> {
    if given.is_none() {
        return Ok(Vec::new());
    }
    let networks = parse::cidrs("non-masquerade-cidr", given, "")?;
    Ok(networks.into_iter().map(|network| network.text).collect())
}

fn port(text: Option<&str>) -> Result<u16, BadSetting> {
    let Some(text) = text else {
        return Ok(PORT);
    };
    let port = text.parse().ok().filter(|port| *port > 0);
    port.ok_or_else(|| {
        let expected = "must be the number of a port, such as 10250";
        BadSetting::new("kubelet-port", text, expected)
    })
}

#[cfg(test)]
mod tests;
