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

pub fn route(uri: &Uri) -> Option<Route> {
    let parts: Vec<String> = uri
        .path()
        .trim_start_matches('/')
        .split('/')
        .map(decode)
        .collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
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
        let pairs = uri.query().unwrap_or_default().split('&');
        let pairs = pairs.filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let plus = |text: &str| decode(&text.replace('+', " "));
            (plus(name), plus(value))
        });
        Self(pairs.collect())
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
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        if let Some(byte) = code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            out.push(byte);
            at += 3;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests;
