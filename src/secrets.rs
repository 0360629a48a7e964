//! `coracle secrets`: the key of Secrets on disk, through the API of the running server.

use crate::cli::{SecretsAction, SecretsCommand};
use crate::control_plane::told;
use crate::{Failure, logging, settings, show};
use anyhow::Context;
use coracle_client::connect;
use std::path::{Path, PathBuf};

pub fn run(command: SecretsCommand) -> Result<(), Failure> {
    let kubeconfig = command.kubeconfig.map_or_else(
        || settings::data_dir(command.data_dir.as_deref()).join("admin.kubeconfig"),
        PathBuf::from,
    );
    logging::start(None, "warn")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.context("cannot start")?.block_on(async {
        match command.action {
            SecretsAction::Rotate => rotate(&kubeconfig).await,
        }
    })?;
    Ok(())
}

async fn rotate(kubeconfig: &Path) -> anyhow::Result<()> {
    let loaded = connect::kubeconfig::load(kubeconfig, None)
        .with_context(|| format!("cannot use the kubeconfig {}", kubeconfig.display()))?;
    let client = connect::client(&loaded.endpoint);
    let request = http::Request::post("/coracle/v1/secrets/rotate").body(Vec::new())?;
    let answer: serde_json::Value = client
        .request(request)
        .await
        .map_err(told)
        .context("the key was not changed")?;
    let file = answer["keyFile"].as_str().unwrap_or_default();
    show::line(&format!(
        "{} records and {} snapshots are encrypted with a new key, which is in {file}: back it up",
        answer["records"], answer["snapshots"]
    ));
    Ok(())
}
