//! `DELETE` of a collection: each object that the options choose, a page at a time.

use super::asked::Asked;
use super::delete;
use super::list::page::{Items, Page};
use super::list::{self, Refused, answer};
use crate::options::ListOptions;
use crate::tunnel::Body;
use crate::{Api, registry};
use bytes::Bytes;
use coracle_api::status::Status;
use http::Response;

pub async fn delete_collection(
    api: &Api,
    asked: &Asked<'_>,
    request_body: Body,
) -> Result<Response<Body>, Status> {
    answer::check_target(asked)?;
    let list = ListOptions::parse(asked.resource, &asked.query, "")?;
    let options = delete::options(asked, request_body).await?;
    delete::warn(asked, &options);
    let page = list::turn(api, asked, &list).await;
    let mut page = page.map_err(|refused| match refused {
        Refused::Plainly(status) => status,
        Refused::Stale(_) => Status::expired(list::TOO_OLD),
    })?;
    let mut items: Vec<Bytes> = Vec::new();
    while let Some(step) = page.items.step() {
        for value in step {
            let Some(object) = registry::decode(asked.resource, &value) else {
                continue;
            };
            match delete::one(api, asked, object.name(), &options).await {
                Ok(_) => {}
                // Somebody else was faster, which is as good.
                Err(status) if status.code == 404 => {}
                Err(status) => return Err(status),
            }
            items.push(value);
        }
    }
    // As they were found, as upstream shows them.
    let shown = Page {
        items: Items::Some(items.into_iter()),
        ..page
    };
    Ok(answer::answer(asked, shown).await)
}
