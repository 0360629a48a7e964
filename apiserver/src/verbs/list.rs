//! `GET` of a collection: which objects, of which state, and how many of them.
//!
//! The objects go out while they are walked over: a list of any size holds a snapshot, which is
//! shared, and a piece. Nothing is parsed unless a selector or another form than JSON needs it.

use super::asked::Asked;
use crate::Api;
use crate::custom::convert::Converter;
use crate::options::{ListOptions, Match};
use crate::registry;
use crate::tunnel::Body;
use coracle_api::status::Status;
use coracle_store::{Revision, Snapshot, SnapshotError};
use http::{Response, StatusCode};
use serde_json::json;

pub mod answer; // A page in the form that the client takes.
pub mod page; // The objects of a page.
mod token; // What `continue` carries.

use page::Page;
use token::Token;

pub const TOO_OLD: &str = "The resourceVersion for the provided list is too old.";
/// With a token that goes on from the same place in the newest state.
const INCONSISTENT: &str = "The provided continue parameter is too old to display a consistent \
    list result. You can start a new list without the continue parameter, or use the continue \
    token in this response to retrieve the remainder of the results. Continuing with the provided \
    token results in an inconsistent list - objects that were created, modified, or deleted \
    between the time the first chunk was returned and now may show up in the list.";

/// Why there is no list.
#[derive(Debug)]
pub enum Refused {
    Plainly(Status),
    /// The state of the earlier pages is gone; the token takes the newest one from there.
    Stale(String),
}

impl From<Status> for Refused {
    fn from(status: Status) -> Self {
        Self::Plainly(status)
    }
}

pub async fn list(api: &Api, asked: &Asked<'_>) -> Result<Response<Body>, Status> {
    answer::check_target(asked)?;
    let options = ListOptions::parse(asked.resource, &asked.query, &asked.info.name)?;
    match turn(api, asked, &options).await {
        Ok(page) => Ok(answer::answer(asked, page).await),
        Err(Refused::Plainly(status)) => Err(status),
        Err(Refused::Stale(token)) => Ok(stale(asked, &token)),
    }
}

/// The page that the options ask for.
pub async fn turn(api: &Api, asked: &Asked<'_>, options: &ListOptions) -> Result<Page, Refused> {
    let (snapshot, after) = snapshot(api, asked, options).await?;
    if !Converter::is_needed(asked.resource) {
        return Ok(Page::new(asked, options, snapshot, &after));
    }
    let mut page = Page::new(asked, &options.before_conversion(), snapshot, &after);
    let values = api.converter.in_version(asked.resource, page.items.all());
    let mut values = values.await?;
    values.retain(|value| options.selection.matches_stored(asked.resource, value));
    Ok(Page {
        items: page::Items::Some(values.into_iter()),
        ..page
    })
}

fn stale(asked: &Asked<'_>, token: &str) -> Response<Body> {
    let mut status = Status::expired(INCONSISTENT).to_value();
    status["metadata"] = json!({ "continue": token });
    asked.shape.document(StatusCode::GONE, &status)
}

/// The state to show, and the key after which the page begins.
async fn snapshot(
    api: &Api,
    asked: &Asked<'_>,
    options: &ListOptions,
) -> Result<(Snapshot, String), Refused> {
    let newest = || api.registry.snapshot(asked.resource);
    let at = |revision| {
        let partition = registry::partition(asked.resource);
        api.registry.store.snapshot_at(&partition, revision)
    };
    if !options.continue_token.is_empty() {
        let token = Token::decode(&options.continue_token)?;
        if !matches!(options.resource_version.as_str(), "" | "0") {
            let why = "specifying resource version is not allowed when using continue";
            return Err(Status::bad_request(why).into());
        }
        let after = format!("{}{}", registry::prefix(asked.namespace()), token.after);
        let Some(revision) = token.revision else {
            return Ok((newest(), after));
        };
        return match at(revision) {
            Ok(snapshot) => Ok((snapshot, after)),
            Err(SnapshotError::Compacted { .. }) => {
                Err(Refused::Stale(Token::encode(None, &token.after)))
            }
            Err(error) => Err(unreadable(error).into()),
        };
    }
    let snapshot = match options.list_match()? {
        Match::Newest => newest(),
        Match::Exact(revision) => at(revision).map_err(unreadable)?,
        Match::NotOlderThan(revision) => {
            let fresh = api.registry.snapshot_not_older(asked.resource, revision);
            fresh.await.map_err(|newest| too_new(revision, newest))?
        }
    };
    Ok((snapshot, String::new()))
}

pub fn too_new(asked: Revision, current: Revision) -> Status {
    let mut status = Status::timeout(
        format!("Timeout: Too large resource version: {asked}, current: {current}"),
        1,
    );
    status.details["causes"] = json!([{
        "reason": "ResourceVersionTooLarge",
        "message": "Too large resource version",
    }]);
    status
}

fn unreadable(error: SnapshotError) -> Status {
    match error {
        SnapshotError::Compacted { .. } => Status::expired(TOO_OLD),
        // This one state is not waited for, and nothing says when it will be there.
        SnapshotError::Future { asked, current } => {
            let mut status = too_new(asked, current);
            if let Some(details) = status.details.as_object_mut() {
                details.remove("retryAfterSeconds");
            }
            status
        }
        SnapshotError::Backend(why) => Status::internal(why),
    }
}
