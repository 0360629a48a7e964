//! Images, which the runtime keeps.

use super::super::{RuntimeError, contract::*};
use super::messages::*;
use super::{Inner, PULL_MAX, failed};
use crate::grpc::Code;
use crate::images::digest;
use crate::images::pull::credentials_for;
use crate::images::reference::{self, Reference};

/// A name as the runtime knows it, or an id as it is.
fn named(image: &str) -> Result<String, RuntimeError> {
    let id = format!("sha256:{}", digest::digits(image));
    if reference::is_digest(&id) {
        return Ok(id);
    }
    let parsed = Reference::parse(image);
    let parsed = parsed.map_err(|error| RuntimeError::Invalid(error.to_string()))?;
    Ok(parsed.canonical())
}

pub fn spec(image: String) -> ImageSpec {
    ImageSpec {
        image,
        ..ImageSpec::default()
    }
}

fn info(image: Image) -> ImageInfo {
    ImageInfo {
        user: match &image.uid {
            Some(uid) => uid.value.to_string(),
            None => image.username,
        },
        id: image.id,
        names: image.repo_tags,
        digests: image.repo_digests,
        size_bytes: image.size,
        // The runtime does not tell who brought it; one to be kept is pinned there.
        imported: false,
        pinned: image.pinned,
    }
}

impl Inner {
    /// As the runtime tells of it.
    pub async fn image(&self, image: &str) -> Result<Option<Image>, RuntimeError> {
        let image = Some(spec(named(image)?));
        let answer = self.call(ImageStatusRequest { image }).await;
        let found = answer.map_err(failed)?.image;
        Ok(found.filter(|image| !image.id.is_empty()))
    }

    pub async fn image_status(&self, image: &str) -> Result<Option<ImageInfo>, RuntimeError> {
        Ok(self.image(image).await?.map(info))
    }

    pub async fn list_images(&self) -> Result<Vec<ImageInfo>, RuntimeError> {
        let answer = self.call(ListImagesRequest {}).await;
        Ok(answer
            .map_err(failed)?
            .images
            .into_iter()
            .map(info)
            .collect())
    }

    /// Tries one credential after the other, as upstream does.
    pub async fn pull_image(
        &self,
        image: &str,
        credentials: &[RegistryCredentials],
    ) -> Result<ImageInfo, RuntimeError> {
        let name = named(image)?;
        let mut refused = None;
        for auth in auths(&name, credentials) {
            let request = PullImageRequest {
                image: Some(spec(name.clone())),
                auth,
            };
            match self.call_within(request, PULL_MAX).await {
                Ok(answer) => {
                    let found = self.image_status(&answer.image_ref).await?;
                    return found.ok_or(RuntimeError::ImageNotPresent(name));
                }
                Err(status) => refused = Some(status),
            }
        }
        let why = refused.map(|status| status.to_string()).unwrap_or_default();
        Err(RuntimeError::Pull(why))
    }

    pub async fn remove_image(&self, image: &str) -> Result<(), RuntimeError> {
        let image = Some(spec(named(image)?));
        match self.call(RemoveImageRequest { image }).await {
            Err(status) if status.code != Code::NOT_FOUND => Err(failed(status)),
            _ => Ok(()),
        }
    }
}

/// None is anonymous.
fn auths(name: &str, credentials: &[RegistryCredentials]) -> Vec<Option<AuthConfig>> {
    let Ok(reference) = Reference::parse(name) else {
        return vec![None];
    };
    let fitting = credentials_for(&reference, credentials);
    let mut all: Vec<_> = fitting
        .into_iter()
        .map(|(username, password)| Some(AuthConfig { username, password }))
        .collect();
    if all.is_empty() {
        all.push(None);
    }
    all
}
