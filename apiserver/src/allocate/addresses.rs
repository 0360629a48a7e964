//! Which addresses a Service gets, keeps and gives back.
//!
//! Its families are settled: an address a family, in their order.

use super::families::stays_as_preferred;
use super::objects::{Full, Pool};
use super::{address, cluster_addresses};
use coracle_api::field::{FieldError, Path};
use coracle_api::kinds::service::view::Service;
use coracle_api::object::Object;
use serde_json::Value;
use std::net::IpAddr;

const ADDRESSES: [&str; 2] = ["spec", "clusterIPs"];
const FAMILIES: [&str; 2] = ["spec", "ipFamilies"];

/// What the writing of a Service means for addresses.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct AddressChange {
    pub gets: Vec<IpAddr>,
    pub gives_back: Vec<IpAddr>,
}

/// Why a Service cannot have the addresses it asks for.
#[derive(Debug)]
pub enum Fault {
    Field(FieldError),
    Full,
}

pub fn assign(
    object: &mut Object,
    old: Option<&Object>,
    pool: &Pool<'_>,
) -> Result<AddressChange, Fault> {
    let is_external = |object: &Object| object.str(&["spec", "type"]) == "ExternalName";
    let is_headless = |object: &Object| Service::of(object).is_headless();
    let Some(old) = old else {
        return if is_external(object) || is_headless(object) {
            Ok(AddressChange::default())
        } else {
            fill(object, 0, pool)
        };
    };
    if stays_as_preferred(object, Some(old)) {
        return Ok(AddressChange::default());
    }
    let had = cluster_addresses(&Service::of(old));
    match (is_external(old), is_external(object)) {
        (true, true) => Ok(AddressChange::default()),
        (true, false) if is_headless(object) => Ok(AddressChange::default()),
        (true, false) => fill(object, 0, pool),
        _ if is_headless(old) => Ok(AddressChange::default()),
        (false, true) => Ok(AddressChange {
            gets: Vec::new(),
            gives_back: had,
        }),
        (false, false) => {
            let [before, now] = [old, &*object].map(|object| object.list(&FAMILIES).len());
            match (before, now) {
                (1, 2) => fill(object, 1, pool),
                (2, 1) => Ok(AddressChange {
                    gets: Vec::new(),
                    gives_back: had.into_iter().skip(1).collect(),
                }),
                _ => Ok(AddressChange::default()),
            }
        }
    }
}

/// Gives the Service an address for each of its families from the `first` on.
fn fill(object: &mut Object, first: usize, pool: &Pool<'_>) -> Result<AddressChange, Fault> {
    let families = object.list(&FAMILIES).to_vec();
    let mut addresses = object.list(&ADDRESSES).to_vec();
    addresses.resize(families.len().max(addresses.len()), "".into());
    let mut change = AddressChange::default();
    for index in first..families.len() {
        let asked = addresses[index].as_str().unwrap_or("").to_owned();
        let chosen = if asked.is_empty() {
            let family = families[index].as_str().unwrap_or("");
            pool.any(family).map_err(|Full| Fault::Full)?
        } else {
            // Validation has said what is no address.
            let Some(wanted) = address(&addresses[index]) else {
                continue;
            };
            pool.this(wanted).map_err(|why| {
                let path = Path::root("spec").child("clusterIPs");
                let detail = format!("failed to allocate IP {asked}: {why}");
                let value = Value::from(addresses.clone());
                Fault::Field(FieldError::invalid(&path, value, detail))
            })?;
            wanted
        };
        change.gets.push(chosen);
        addresses[index] = if asked.is_empty() {
            chosen.to_string().into()
        } else {
            asked.into()
        };
    }
    if let Some(one) = addresses.first().filter(|_| first == 0) {
        object.set(&["spec", "clusterIP"], one.clone());
    }
    object.set(&ADDRESSES, addresses.into());
    Ok(change)
}
