//! What there is once for each IP family, such as a pod's addresses or a node's networks: none, one,
//! or one of each, in the order in which they were given. Pure.

use std::fmt;
use std::net::IpAddr;

/// Of one IP family.
pub trait OfFamily: Copy {
    fn is_ipv4(&self) -> bool;
}

impl OfFamily for IpAddr {
    fn is_ipv4(&self) -> bool {
        Self::is_ipv4(self)
    }
}

/// The second is there only beside a first, and is of the other family.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Families<T>([Option<T>; 2]);

impl<T> Default for Families<T> {
    fn default() -> Self {
        Self([None, None])
    }
}

impl<T: OfFamily> Families<T> {
    /// The one for those who want one.
    pub fn first(&self) -> Option<T> {
        self.0[0]
    }

    pub fn is_empty(&self) -> bool {
        self.first().is_none()
    }

    pub fn iter(&self) -> impl Iterator<Item = T> + use<T> {
        self.0.into_iter().flatten()
    }

    pub fn of(&self, is_ipv4: bool) -> Option<T> {
        self.iter().find(|one| one.is_ipv4() == is_ipv4)
    }

    pub fn contains(&self, other: &T) -> bool
    where
        T: PartialEq,
    {
        self.0.contains(&Some(*other))
    }
}

impl<T: OfFamily> From<T> for Families<T> {
    fn from(one: T) -> Self {
        Self([Some(one), None])
    }
}

/// The first of each family.
impl<T: OfFamily> FromIterator<T> for Families<T> {
    fn from_iter<I: IntoIterator<Item = T>>(all: I) -> Self {
        let mut families = Self::default();
        for one in all {
            if families.of(one.is_ipv4()).is_none() {
                let place = usize::from(!families.is_empty());
                families.0[place] = Some(one);
            }
        }
        families
    }
}

/// With a comma between them, as Kubernetes writes lists of them.
impl<T: OfFamily + fmt::Display> fmt::Display for Families<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for one in self.iter() {
            write!(f, "{separator}{one}")?;
            separator = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
