//! A request for a resource, with all that a verb needs of it.

use crate::admission::{Attributes, How, Operation};
use crate::audit;
use crate::authenticate::User;
use crate::deadline;
use crate::fairness::Seat;
use crate::query::Query;
use crate::request_info::RequestInfo;
use crate::respond::Shape;
use crate::warnings::Warnings;
use coracle_api::object::Object;
use coracle_api::resource::{Part, Resource, Subresource, SubresourceKind};
use coracle_api::status::{Status, Subject};
use http::request::Parts;
use jiff::Timestamp;
use parking_lot::Mutex;

#[derive(Debug)]
pub struct Asked<'a> {
    pub request: &'a Parts,
    pub info: &'a RequestInfo,
    pub user: &'a User,
    pub resource: &'static Resource,
    pub subresource: Option<&'static Subresource>,
    pub query: Query,
    pub shape: Shape,
    pub now: Timestamp,
    pub warnings: Warnings,
    /// Held until the answer is made; a watch takes it along until it has begun.
    pub seat: Mutex<Option<Seat>>,
}

impl<'a> Asked<'a> {
    pub fn namespace(&self) -> &'a str {
        // `namespaces/NAME` names a namespace and is itself in none.
        if self.resource.is_namespaced() {
            &self.info.namespace
        } else {
            ""
        }
    }

    pub fn subject<'b>(&self, name: &'b str) -> Subject<'b> {
        Subject {
            group: self.resource.group,
            resource: self.resource.plural,
            name,
        }
    }

    pub fn part(&self) -> Part<'static> {
        match self.subresource {
            None => Part::Main,
            Some(one) if one.kind == SubresourceKind::Status => Part::Status,
            Some(one) if one.kind == SubresourceKind::Scale => Part::Main,
            Some(one) => Part::Other(one.name),
        }
    }

    pub fn attributes<'b>(
        &'b self,
        operation: Operation,
        name: &'b str,
        old: Option<&'b Object>,
        dry_run: bool,
    ) -> Attributes<'b> {
        Attributes {
            user: self.user,
            operation,
            resource: self.resource,
            subresource: &self.info.subresource,
            namespace: &self.info.namespace,
            name,
            old,
            dry_run,
            warnings: &self.warnings,
            trail: audit::trail::of(self.request).map(AsRef::as_ref),
            how: How::Write(&self.query),
            deadline: deadline::noted(self.request),
        }
    }

    /// `metadata` of a namespaced object must agree with the URL.
    pub fn settle_namespace(&self, object: &mut Object) -> Result<(), Status> {
        if !self.resource.is_namespaced() {
            object.remove(&["metadata", "namespace"]);
            return Ok(());
        }
        let namespace = self.namespace();
        match object.namespace() {
            "" => object.set(&["metadata", "namespace"], namespace.into()),
            own if own == namespace => {}
            _ => {
                return Err(Status::bad_request(
                    "the namespace of the provided object does not match the namespace sent on \
                     the request",
                ));
            }
        }
        Ok(())
    }
}
