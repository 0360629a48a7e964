//! `/version`: the version of Kubernetes whose API is served, as every client looks it up.

use crate::respond;
use crate::tunnel::Body;
use http::{Response, StatusCode};
use serde_json::json;

const MAJOR: &str = "1";
const MINOR: &str = "36";
/// Build metadata after the plus does not count when versions are compared.
const GIT_VERSION: &str = concat!("v1.36.0+coracle", env!("CARGO_PKG_VERSION"));

/// The processor as Go names it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

pub fn answer() -> Response<Body> {
    let version = json!({
        "major": MAJOR,
        "minor": MINOR,
        "emulationMajor": MAJOR,
        "emulationMinor": MINOR,
        "minCompatibilityMajor": MAJOR,
        "minCompatibilityMinor": "35",
        "gitVersion": GIT_VERSION,
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, architecture()),
    });
    respond::json_bytes(StatusCode::OK, version.to_string())
}
