//! Which user and groups a container runs as, from the pod, the image's USER and the
//! /etc/passwd and /etc/group inside the image.
//!
//! Error texts are those of moby's user package, which containerd shows too.

use super::contract::Security;

/// Real files have some hundred lines; past this they are read no further.
pub const FILE_BYTES_MAX: u64 = 4 << 20;

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct User {
    pub uid: u32,
    pub gid: u32,
    pub groups: Vec<u32>,
    pub home: String,
}

#[derive(Debug, Eq, PartialEq, thiserror::Error)]
pub enum UserError {
    #[error("unable to find user {0}: no matching entries in passwd file")]
    NoUser(String),
    #[error("unable to find group {0}: no matching entries in group file")]
    NoGroup(String),
    #[error("uids and gids must be in range 0-2147483647")]
    Range,
}

struct Account<'a> {
    name: &'a str,
    uid: u32,
    gid: u32,
    home: &'a str,
}

/// `passwd` and `group` are the files' contents, empty when the image has none.
pub fn resolve(
    security: &Security,
    image_user: &str,
    passwd: &str,
    group: &str,
) -> Result<User, UserError> {
    let asked = match security.run_as_user {
        Some(uid) => uid.to_string(),
        None => image_user.to_owned(),
    };
    let (user, group_part) = match asked.split_once(':') {
        Some((user, group)) => (user, Some(group)),
        None => (asked.as_str(), None),
    };
    let user = if user.is_empty() { "0" } else { user };
    let account = accounts(passwd).find(|account| match user.parse::<u32>() {
        Ok(uid) => account.uid == uid,
        Err(_) => account.name == user,
    });
    let uid = match (&account, user.parse::<i64>()) {
        (Some(account), _) => account.uid,
        (None, Ok(uid)) => in_range(uid)?,
        (None, Err(_)) => return Err(UserError::NoUser(user.to_owned())),
    };
    let gid = match (security.run_as_group, group_part) {
        (Some(gid), _) => in_range(gid)?,
        (None, Some(part)) if !part.is_empty() => group_id(part, group)?,
        _ => account.as_ref().map_or(0, |account| account.gid),
    };
    let mut groups = vec![gid];
    if let Some(account) = &account
        && group_part.is_none()
        && !security.strict_groups
    {
        groups.extend(memberships(account.name, group));
    }
    for extra in &security.supplemental_groups {
        groups.push(in_range(*extra)?);
    }
    groups.sort_unstable();
    groups.dedup();
    let home = account
        .map(|account| account.home)
        .filter(|home| !home.is_empty());
    let fallback = if uid == 0 { "/root" } else { "/" };
    Ok(User {
        uid,
        gid,
        groups,
        home: home.unwrap_or(fallback).to_owned(),
    })
}

fn in_range(id: i64) -> Result<u32, UserError> {
    match i32::try_from(id) {
        Ok(id) if id >= 0 => Ok(id.cast_unsigned()),
        _ => Err(UserError::Range),
    }
}

fn accounts(passwd: &str) -> impl Iterator<Item = Account<'_>> {
    passwd.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let _password = fields.next()?;
        let (uid, gid) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        let _comment = fields.next();
        Some(Account {
            name,
            uid,
            gid,
            home: fields.next().unwrap_or_default(),
        })
    })
}

fn group_id(group: &str, file: &str) -> Result<u32, UserError> {
    let entry = groups(file)
        .find(|(name, _, _)| *name == group)
        .map(|(_, gid, _)| gid);
    match (entry, group.parse::<i64>()) {
        (Some(gid), _) => Ok(gid),
        (None, Ok(gid)) => in_range(gid),
        (None, Err(_)) => Err(UserError::NoGroup(group.to_owned())),
    }
}

fn groups(file: &str) -> impl Iterator<Item = (&str, u32, &str)> {
    file.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let _password = fields.next()?;
        let gid = fields.next()?.parse().ok()?;
        Some((name, gid, fields.next().unwrap_or_default()))
    })
}

fn memberships(user: &str, file: &str) -> Vec<u32> {
    let of_user = groups(file).filter(|(_, _, members)| members.split(',').any(|m| m == user));
    of_user.map(|(_, gid, _)| gid).collect()
}

#[cfg(test)]
mod tests;
