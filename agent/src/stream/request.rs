//! The paths and queries of the kubelet's API. Pure.

use http::Uri;

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Route {
    /// With the name of a check; empty for all of them.
    Health(String),
    Pods,
    RunningPods,
    Configz,
    Summary,
    Metrics(Metrics),
    /// A path below the node's own logs.
    NodeLogs(String),
    /// The directory of a volume, by the volume's name.
    LocalVolume(String),
    Logs {
        namespace: String,
        pod: String,
        container: String,
    },
    Exec(Command),
    Attach(Command),
    PortForward {
        namespace: String,
        pod: String,
        /// Empty for any pod of the name.
        uid: String,
    },
    /// Runs a command and answers with what it says.
    Run(Command),
    /// What others have and this node has not, with upstream's words for that.
    Off(&'static str),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Metrics {
    Own,
    Cadvisor,
    Resource,
    Probes,
}

/// Which container a command goes to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Command {
    pub namespace: String,
    pub pod: String,
    /// Empty for any pod of the name.
    pub uid: String,
    pub container: String,
}

/// A decoded query. Names may come several times.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(String, String)>);

/// Where a request goes stands in its first part as it is: whoever decides upon rights by the
/// path's beginning sees what is meant here.
pub fn route(uri: &Uri) -> Option<Route> {
    let path = uri.path().strip_prefix('/')?;
    let (top, below) = match path.split_once('/') {
        Some((top, below)) => (top, Some(below)),
        None => (path, None),
    };
    let below: Vec<String> = below
        .into_iter()
        .flat_map(|path| path.split('/'))
        .map(decode)
        .collect();
    let below = below.iter().map(String::as_str);
    let parts: Vec<&str> = std::iter::once(top).chain(below).collect();
    Some(match parts.as_slice() {
        ["healthz"] => Route::Health(String::new()),
        ["healthz", check] => Route::Health((*check).to_owned()),
        ["pods", ""] | ["pods"] => Route::Pods,
        ["runningpods", ""] | ["runningpods"] => Route::RunningPods,
        ["configz"] => Route::Configz,
        ["stats", "summary"] => Route::Summary,
        ["metrics"] => Route::Metrics(Metrics::Own),
        ["metrics", "cadvisor"] => Route::Metrics(Metrics::Cadvisor),
        ["metrics", "resource"] => Route::Metrics(Metrics::Resource),
        ["metrics", "probes"] => Route::Metrics(Metrics::Probes),
        ["logs", path @ ..] => Route::NodeLogs(path.join("/")),
        ["localvolumes", name] => Route::LocalVolume((*name).to_owned()),
        ["debug", "flags", "v"] => Route::Off("flags endpoint is disabled."),
        ["debug", "pprof", ..] => Route::Off("profiling endpoint is disabled."),
        ["containerLogs", namespace, pod, container] => Route::Logs {
            namespace: (*namespace).to_owned(),
            pod: (*pod).to_owned(),
            container: (*container).to_owned(),
        },
        ["exec", namespace, pod, uid, container] => {
            Route::Exec(command(namespace, pod, uid, container))
        }
        ["exec", namespace, pod, container] => Route::Exec(command(namespace, pod, "", container)),
        ["run", namespace, pod, uid, container] => {
            Route::Run(command(namespace, pod, uid, container))
        }
        ["run", namespace, pod, container] => Route::Run(command(namespace, pod, "", container)),
        ["attach", namespace, pod, uid, container] => {
            Route::Attach(command(namespace, pod, uid, container))
        }
        ["attach", namespace, pod, container] => {
            Route::Attach(command(namespace, pod, "", container))
        }
        ["portForward", namespace, pod, uid] => port_forward(namespace, pod, uid),
        ["portForward", namespace, pod] => port_forward(namespace, pod, ""),
        _ => return None,
    })
}

fn port_forward(namespace: &str, pod: &str, uid: &str) -> Route {
    Route::PortForward {
        namespace: namespace.to_owned(),
        pod: pod.to_owned(),
        uid: uid.to_owned(),
    }
}

fn command(namespace: &str, pod: &str, uid: &str, container: &str) -> Command {
    Command {
        namespace: namespace.to_owned(),
        pod: pod.to_owned(),
        uid: uid.to_owned(),
        container: container.to_owned(),
    }
}

impl Query {
    pub fn parse(uri: &Uri) -> Self {
        let query = uri.query().unwrap_or_default();
        Self(
            form_urlencoded::parse(query.as_bytes())
                .into_owned()
                .collect(),
        )
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub fn all(&self, name: &str) -> Vec<String> {
        let found = self.0.iter().filter(|(known, _)| known == name);
        found.map(|(_, value)| value.clone()).collect()
    }

    /// Go's booleans, and a name alone.
    pub fn flag(&self, name: &str) -> bool {
        matches!(
            self.get(name),
            Some("" | "1" | "t" | "T" | "true" | "TRUE" | "True")
        )
    }

    /// None when absent; an error names what is wrong.
    pub fn number(&self, name: &str) -> Result<Option<i64>, String> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        let number = text
            .parse()
            .map_err(|_| format!("{name}: {text:?} is no number"))?;
        Ok(Some(number))
    }
}

fn decode(text: &str) -> String {
    let decoded = percent_encoding::percent_decode_str(text);
    decoded.decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests;
