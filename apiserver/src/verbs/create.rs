//! `POST` of a collection.

use super::asked::Asked;
use super::decode::Expected;
use super::write;
use crate::options::WriteOptions;
use crate::respond;
use crate::reviews::{self, Question};
use crate::tunnel::Body;
use crate::{Api, body};
use coracle_api::status::Status;
use http::{Response, StatusCode};

pub async fn create(
    api: &Api,
    asked: &Asked<'_>,
    request_body: Body,
) -> Result<Response<Body>, Status> {
    let options = WriteOptions::parse(&asked.query, "CreateOptions")?;
    let bytes = body::read_object(&asked.request.headers, request_body).await?;
    let (mut object, mut warnings) =
        Expected::of(asked.resource).decode(&bytes, options.field_validation)?;
    drop(bytes);
    let rules = asked.resource.rules;
    rules.default(&mut object);
    let created = if reviews::is_review(asked.resource) {
        let namespace = asked.namespace();
        let (resource, user, now) = (asked.resource, asked.user, asked.now);
        api.access.reviews.answer(
            &Question {
                resource,
                user,
                namespace,
                now,
            },
            object,
        )?
    } else {
        warnings.extend(rules.warnings(&object));
        write::create(api, asked, object, options.dry_run).await?
    };
    let mut response = asked
        .shape
        .object(StatusCode::CREATED, asked.resource, &created);
    respond::warn(response.headers_mut(), &warnings);
    Ok(response)
}
