//! `coracle image`: the image store of a node, with and without a running agent.

use crate::cli::{ImageAction, ImageCommand};
use crate::settings::BadSetting;
use crate::{Failure, logging, runtime, settings, show};
use anyhow::Context;
use coracle_agent::images::ImageStore;
use std::path::Path;

pub fn run(command: ImageCommand) -> Result<(), Failure> {
    let data_dir = settings::parse::directory("data-dir", command.data_dir.as_deref())?;
    logging::start(None, "warn")?;
    let directory = data_dir.join("agent/images");
    let needs_images = matches!(
        command.action,
        ImageAction::List
            | ImageAction::Remove { .. }
            | ImageAction::Pin { .. }
            | ImageAction::Unpin { .. }
    );
    if needs_images && !directory.is_dir() {
        let expected = "no node has kept images there";
        let given = data_dir.display().to_string();
        return Err(BadSetting::new("data-dir", &given, expected).into());
    }
    let store = ImageStore::open(&directory)
        .with_context(|| format!("cannot open the images in {}", directory.display()))?;
    match command.action {
        ImageAction::Pin { image } => {
            store
                .pin(&image, true)
                .with_context(|| format!("cannot pin {image}"))?;
            show::line(&format!("pinned {image}"));
        }
        ImageAction::Unpin { image } => {
            store
                .pin(&image, false)
                .with_context(|| format!("cannot unpin {image}"))?;
            show::line(&format!("unpinned {image}"));
        }
        ImageAction::Import { file } => import(&store, Path::new(&file))?,
        ImageAction::Pull { image } => {
            let pulled = runtime()?
                .block_on(store.pull(&image, &[]))
                .with_context(|| format!("cannot pull {image}"))?;
            show::line(&format!("pulled {image} {}", pulled.id));
        }
        ImageAction::List => list(&store)?,
        ImageAction::Remove { image } => {
            store
                .remove(&image)
                .with_context(|| format!("cannot remove {image}"))?;
            show::line(&format!("removed {image}"));
        }
    }
    Ok(())
}

fn import(store: &ImageStore, file: &Path) -> anyhow::Result<()> {
    let imported = store
        .import(file)
        .with_context(|| format!("cannot import {}", file.display()))?;
    for image in imported {
        for name in &image.names {
            show::line(&format!("imported {name} {}", image.id));
        }
    }
    Ok(())
}

fn list(store: &ImageStore) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for image in store.list().context("cannot read the images")? {
        let size = format!("{:.1} MB", image.size_bytes as f64 / 1e6);
        let id = image.id.trim_start_matches("sha256:");
        let short = id.get(..12).unwrap_or(id).to_owned();
        for name in &image.names {
            rows.push(vec![name.clone(), short.clone(), size.clone()]);
        }
    }
    rows.sort();
    show::line(&show::columns(&["IMAGE", "ID", "SIZE"], &rows));
    Ok(())
}
