//! `/version`: the version of Kubernetes whose API is served, as every client looks it up.
//!
//! Commit, state of the tree and date are what the build was told in `CORACLE_GIT_COMMIT`,
//! `CORACLE_GIT_TREE_STATE` and `CORACLE_BUILD_DATE`.

use crate::respond;
use crate::tunnel::Body;
use http::{Response, StatusCode};
use serde::Serialize;

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

/// What upstream's `version.Info` holds, in its order.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Info {
    major: &'static str,
    minor: &'static str,
    emulation_major: &'static str,
    emulation_minor: &'static str,
    min_compatibility_major: &'static str,
    min_compatibility_minor: &'static str,
    git_version: &'static str,
    git_commit: &'static str,
    git_tree_state: &'static str,
    build_date: &'static str,
    go_version: &'static str,
    compiler: &'static str,
    platform: String,
}

pub fn answer() -> Response<Body> {
    let version = Info {
        major: MAJOR,
        minor: MINOR,
        emulation_major: MAJOR,
        emulation_minor: MINOR,
        min_compatibility_major: MAJOR,
        min_compatibility_minor: "35",
        git_version: GIT_VERSION,
        git_commit: option_env!("CORACLE_GIT_COMMIT").unwrap_or(""),
        git_tree_state: option_env!("CORACLE_GIT_TREE_STATE").unwrap_or(""),
        build_date: option_env!("CORACLE_BUILD_DATE").unwrap_or("1970-01-01T00:00:00Z"),
        go_version: concat!("rust", env!("CARGO_PKG_RUST_VERSION")),
        compiler: "rustc",
        platform: format!("{}/{}", std::env::consts::OS, architecture()),
    };
    let text = serde_json::to_string_pretty(&version).unwrap_or_default();
    respond::json_bytes(StatusCode::OK, text)
}
