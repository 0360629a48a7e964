//! What the server says, page by page.

use std::collections::BTreeSet;

use coracle_api::object::Object;
use coracle_api::quota::{self, DeviceClasses};
use coracle_client::Client;
use http::Request;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kube::api::{Api, ListParams, PostParams};
use kube::core::{ApiResource, DynamicObject, Resource as _};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

use super::{Kind, NewStatus};
use crate::discovery::Resource;
use crate::refusal;

/// Whole objects of one page: bounds the memory of a count of any size.
const OBJECTS_PER_PAGE: u32 = 100;
/// Of objects that are counted and not looked at.
const COUNTED_PER_PAGE: u32 = 500;
const CLAIMS_GROUP: &str = "resource.k8s.io";

#[derive(Debug, thiserror::Error)]
pub(super) enum LiveError {
    #[error("cannot discover whether there are {}", listed(.0))]
    Discover(BTreeSet<Kind>),
    #[error("cannot list {plural}")]
    List { plural: String, source: kube::Error },
    #[error("cannot write the status of the quota {name}")]
    Write { name: String, source: kube::Error },
    #[error("the quota {name} is no object that can be written")]
    Malformed {
        name: String,
        source: serde_json::Error,
    },
}

/// As quotas name them: `deployments.apps`.
fn listed(kinds: &BTreeSet<Kind>) -> String {
    let names = kinds.iter().map(|(group, plural)| {
        if group.is_empty() {
            plural.clone()
        } else {
            format!("{plural}.{group}")
        }
    });
    names.collect::<Vec<_>>().join(", ")
}

#[derive(Debug, Deserialize)]
#[serde(bound = "T: DeserializeOwned")]
struct Page<T> {
    #[serde(default)]
    metadata: ListMeta,
    #[serde(default)]
    items: Vec<T>,
}

pub(super) struct Live {
    client: Client,
}

/// The objects of a resource in a namespace that are still to come.
pub(super) struct Pages<'a> {
    client: &'a Client,
    resource: &'a ApiResource,
    path: String,
    /// `None` after the last page.
    params: Option<ListParams>,
}

impl Pages<'_> {
    async fn next_of<T: DeserializeOwned>(
        &mut self,
        request: impl Fn(&kube::core::Request, &ListParams) -> Built,
    ) -> Result<Option<Vec<T>>, LiveError> {
        let Some(params) = self.params.take() else {
            return Ok(None);
        };
        let failed = |source| LiveError::List {
            plural: self.resource.plural.clone(),
            source,
        };
        let asked = kube::core::Request::new(&self.path);
        let asked =
            request(&asked, &params).map_err(|error| failed(kube::Error::BuildRequest(error)));
        let page: Page<T> = self.client.request(asked?).await.map_err(failed)?;
        let more = page.metadata.continue_.filter(|token| !token.is_empty());
        self.params = more.map(|token| params.continue_token(&token));
        Ok(Some(page.items))
    }

    pub(super) async fn next(&mut self) -> Result<Option<Vec<Object>>, LiveError> {
        let page = self.next_of(kube::core::Request::list).await?;
        let objects = |items: Vec<Value>| items.into_iter().filter_map(Object::from_value);
        Ok(page.map(|items| objects(items).collect()))
    }
}

type Built = Result<Request<Vec<u8>>, kube::core::request::Error>;

impl Live {
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    fn pages_of<'a>(
        &'a self,
        resource: &'a ApiResource,
        namespace: Option<&str>,
        page_size: u32,
    ) -> Pages<'a> {
        Pages {
            client: &self.client,
            resource,
            path: DynamicObject::url_path(resource, namespace),
            params: Some(ListParams::default().limit(page_size)),
        }
    }

    pub(super) fn pages<'a>(&'a self, resource: &'a Resource, namespace: &str) -> Pages<'a> {
        self.pages_of(&resource.api, Some(namespace), OBJECTS_PER_PAGE)
    }

    /// All at once, for kinds of which there are few.
    pub(super) async fn all(
        &self,
        resource: &Resource,
        namespace: &str,
    ) -> Result<Vec<Object>, LiveError> {
        every(self.pages(resource, namespace)).await
    }

    pub(super) async fn count(
        &self,
        resource: &Resource,
        namespace: &str,
    ) -> Result<usize, LiveError> {
        let mut pages = self.pages_of(&resource.api, Some(namespace), COUNTED_PER_PAGE);
        let mut count = 0;
        while let Some(page) = pages
            .next_of::<IgnoredAny>(kube::core::Request::list_metadata)
            .await?
        {
            count += page.len();
        }
        Ok(count)
    }

    pub(super) async fn quotas(&self, namespace: &str) -> Result<Vec<Object>, LiveError> {
        let quotas = core("ResourceQuota", "resourcequotas");
        every(self.pages_of(&quotas, Some(namespace), OBJECTS_PER_PAGE)).await
    }

    /// Asks only if one of these names may have to do with classes.
    pub(super) async fn device_classes(
        &self,
        mut names: impl Iterator<Item = &String>,
    ) -> Result<DeviceClasses, LiveError> {
        if !names.any(|name| quota::depends_on_classes(name)) {
            return Ok(DeviceClasses::default());
        }
        let classes = ApiResource {
            group: CLAIMS_GROUP.to_owned(),
            version: "v1".to_owned(),
            api_version: format!("{CLAIMS_GROUP}/v1"),
            kind: "DeviceClass".to_owned(),
            plural: "deviceclasses".to_owned(),
        };
        match every(self.pages_of(&classes, None, OBJECTS_PER_PAGE)).await {
            Ok(all) => Ok(DeviceClasses::of(&all)),
            // A server may do without.
            Err(LiveError::List { source, .. }) if refusal::is_not_found(&source) => {
                Ok(DeviceClasses::default())
            }
            Err(error) => Err(error),
        }
    }

    /// The pods that these claims of the namespace were made for, as far as they are there.
    pub(super) async fn pods_of(
        &self,
        claims: &[Object],
        namespace: &str,
    ) -> Result<Vec<Object>, LiveError> {
        let served = claims.iter().filter_map(quota::pod_served);
        let served: BTreeSet<&str> = served.map(|(_, uid)| uid).collect();
        let mut found = Vec::new();
        if served.is_empty() {
            return Ok(found);
        }
        let pods = core("Pod", "pods");
        let mut pages = self.pages_of(&pods, Some(namespace), OBJECTS_PER_PAGE);
        while let Some(mut page) = pages.next().await? {
            page.retain(|pod| served.contains(pod.uid()));
            found.append(&mut page);
        }
        Ok(found)
    }

    /// Fails with a conflict when the quota was changed since it was read.
    pub(super) async fn write_status(
        &self,
        quota: &Object,
        status: &NewStatus,
    ) -> Result<(), LiveError> {
        let mut changed = quota.clone();
        changed.set(&["status"], status.to_value());
        changed.set(&["apiVersion"], "v1".into());
        changed.set(&["kind"], "ResourceQuota".into());
        let name = || quota.key().to_string();
        let changed: DynamicObject =
            serde_json::from_value(changed.into_value()).map_err(|source| {
                LiveError::Malformed {
                    name: name(),
                    source,
                }
            })?;
        let resource = core("ResourceQuota", "resourcequotas");
        let quotas: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), quota.namespace(), &resource);
        let params = PostParams::default();
        let written = quotas.replace_status(quota.name(), &params, &changed);
        match written.await {
            Err(error) if !refusal::is_not_found(&error) => Err(LiveError::Write {
                name: name(),
                source: error,
            }),
            // It is gone: nobody asks what was used of it.
            _ => Ok(()),
        }
    }
}

async fn every(mut pages: Pages<'_>) -> Result<Vec<Object>, LiveError> {
    let mut all = Vec::new();
    while let Some(page) = pages.next().await? {
        all.extend(page);
    }
    Ok(all)
}

fn core(kind: &str, plural: &str) -> ApiResource {
    ApiResource {
        group: String::new(),
        version: "v1".to_owned(),
        api_version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}
