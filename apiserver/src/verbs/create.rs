//! `POST` of a collection.

use super::asked::Asked;
use super::decode::Expected;
use super::write::{New, create as insert};
use super::write_options::{Kind, WriteOptions};
use crate::Api;
use crate::body::Encoded;
use crate::reviews::{self, Question};
use crate::tokens::Remarks;
use crate::tunnel::Body;
use coracle_api::apply::{Writer, put_managed_fields};
use coracle_api::object::Object;
use coracle_api::status::Status;
use coracle_api::timestamp::format_time;
use http::{Response, StatusCode};
use serde_json::Value;

pub async fn create(
    api: &Api,
    asked: &Asked<'_>,
    request_body: Body,
) -> Result<Response<Body>, Status> {
    let body = Encoded::read(&asked.request.headers, request_body).await?;
    let options = WriteOptions::parse(asked, Kind::Create)?;
    let (mut object, unknown) =
        Expected::of(asked.resource).decode(&body, options.field_validation)?;
    asked.warnings.add(unknown);
    drop(body);
    asked.resource.default(&mut object);
    let created = if reviews::is_review(asked.resource) {
        asked.settle_namespace(&mut object)?;
        let managers = managers(asked, &options, &object);
        put_managed_fields(object.root_mut(), managers);
        let namespace = asked.namespace();
        let (resource, user, now) = (asked.resource, asked.user, asked.now);
        let question = Question {
            resource,
            user,
            namespace,
            now,
        };
        let mut remarks = Remarks::default();
        let reviews = &api.access.reviews;
        let answered = reviews.answer(&question, object, &mut remarks).await;
        // Whoever shows the token to another server uses it here.
        api.remark(asked.request, &remarks);
        answered?
    } else {
        insert(api, asked, New::unmanaged(object), &options).await?
    };
    Ok(asked
        .shape
        .object(StatusCode::CREATED, asked.resource, &created))
}

/// Who asks manages what is asked, although nothing is kept.
fn managers(asked: &Asked<'_>, options: &WriteOptions, object: &Object) -> Option<Value> {
    let (resource, now) = (asked.resource, format_time(asked.now));
    let version = resource.api_version();
    let manager = options.manager.as_str();
    Writer::of(resource, &version, asked.part(), "", manager, &now).update(None, object)
}
