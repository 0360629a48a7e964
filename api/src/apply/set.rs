//! A set of fields: a tree of path steps, some of which are members.
//!
//! Invariant: steps are strictly rising, and a step that is no member has children. The parent of
//! a member is not a member by that. Reads and writes `fieldsV1` documents.

use super::element::{Element, ElementError};
use serde_json::{Map, Value};
use std::cmp::Ordering;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Set<'a>(Vec<Node<'a>>);

#[derive(Clone, Debug, PartialEq)]
pub struct Node<'a> {
    pub element: Element<'a>,
    pub is_member: bool,
    pub children: Set<'a>,
}

impl Node<'_> {
    fn is_empty(&self) -> bool {
        !self.is_member && self.children.is_empty()
    }
}

/// Why a `fieldsV1` document cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldsError {
    #[error("expected an object")]
    NoObject,
    #[error(transparent)]
    Element(#[from] ElementError),
}

impl<'a> Set<'a> {
    /// The set of the given paths of field names.
    pub fn of_fields(paths: &[&[&'a str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            set.insert_fields(path);
        }
        set
    }

    pub fn insert_fields(&mut self, path: &[&'a str]) {
        let Some((first, rest)) = path.split_first() else {
            return;
        };
        let node = self.node_mut(Element::field(first));
        if rest.is_empty() {
            node.is_member = true;
        } else {
            node.children.insert_fields(rest);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn nodes(&self) -> &[Node<'a>] {
        &self.0
    }

    pub fn get(&self, element: &Element<'_>) -> Option<&Node<'a>> {
        let found = self.0.binary_search_by(|node| node.element.cmp(element));
        found.ok().map(|index| &self.0[index])
    }

    pub fn is_member(&self, element: &Element<'_>) -> bool {
        self.get(element).is_some_and(|node| node.is_member)
    }

    pub fn has(&self, path: &[Element<'_>]) -> bool {
        match path.split_first() {
            None => false,
            Some((last, [])) => self.is_member(last),
            Some((first, rest)) => self.get(first).is_some_and(|node| node.children.has(rest)),
        }
    }

    pub fn has_fields(&self, path: &[&str]) -> bool {
        let path: Vec<Element<'_>> = path.iter().map(|name| Element::field(name)).collect();
        self.has(&path)
    }

    fn node_mut(&mut self, element: Element<'a>) -> &mut Node<'a> {
        let found = self.0.binary_search_by(|node| node.element.cmp(&element));
        let index = found.unwrap_or_else(|index| {
            let node = Node {
                element,
                is_member: false,
                children: Set::default(),
            };
            self.0.insert(index, node);
            index
        });
        &mut self.0[index]
    }

    /// Adds a step with what is below it; nothing when that is nothing.
    pub fn add(&mut self, element: Element<'a>, is_member: bool, children: Set<'a>) {
        if !is_member && children.is_empty() {
            return;
        }
        let rises = self.0.last().is_none_or(|last| last.element < element);
        if rises {
            self.0.push(Node {
                element,
                is_member,
                children,
            });
            return;
        }
        let node = self.node_mut(element);
        node.is_member |= is_member;
        let own = std::mem::take(&mut node.children);
        node.children = own.union(children);
    }

    pub fn insert_path(&mut self, path: &[Element<'a>]) {
        match path.split_first() {
            None => {}
            Some((last, [])) => self.node_mut(last.clone()).is_member = true,
            Some((first, rest)) => self.node_mut(first.clone()).children.insert_path(rest),
        }
    }

    /// What is in either.
    #[must_use]
    pub fn union(self, other: Set<'a>) -> Self {
        if other.is_empty() {
            return self;
        }
        if self.is_empty() {
            return other;
        }
        let mut merged = Vec::with_capacity(self.0.len() + other.0.len());
        let (mut left, mut right) = (
            self.0.into_iter().peekable(),
            other.0.into_iter().peekable(),
        );
        loop {
            let order = match (left.peek(), right.peek()) {
                (Some(a), Some(b)) => a.element.cmp(&b.element),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return Self(merged),
            };
            match order {
                Ordering::Less => merged.extend(left.next()),
                Ordering::Greater => merged.extend(right.next()),
                Ordering::Equal => {
                    merged.extend(left.next().zip(right.next()).map(|(a, b)| Node {
                        element: a.element,
                        is_member: a.is_member || b.is_member,
                        children: a.children.union(b.children),
                    }));
                }
            }
        }
    }

    /// What is in both.
    #[must_use]
    pub fn intersection(&self, other: &Set<'_>) -> Self {
        self.against(other, |mine, theirs| {
            let theirs = theirs?;
            Some(Node {
                element: mine.element.clone(),
                is_member: mine.is_member && theirs.is_member,
                children: mine.children.intersection(&theirs.children),
            })
        })
    }

    /// What is in this and not in the other. A member keeps its children when it goes.
    #[must_use]
    pub fn difference(&self, other: &Set<'_>) -> Self {
        self.against(other, |mine, theirs| {
            let Some(theirs) = theirs else {
                return Some(mine.clone());
            };
            Some(Node {
                element: mine.element.clone(),
                is_member: mine.is_member && !theirs.is_member,
                children: mine.children.difference(&theirs.children),
            })
        })
    }

    /// As [`Set::difference`], but what is below a member of the other goes with it.
    #[must_use]
    pub fn recursive_difference(&self, other: &Set<'_>) -> Self {
        self.against(other, |mine, theirs| match theirs {
            None => Some(mine.clone()),
            Some(theirs) if theirs.is_member => None,
            Some(theirs) => Some(Node {
                element: mine.element.clone(),
                is_member: mine.is_member,
                children: mine.children.recursive_difference(&theirs.children),
            }),
        })
    }

    /// Decides each step by its counterpart in `other`.
    fn against<'o>(
        &self,
        other: &Set<'o>,
        decide: impl Fn(&Node<'a>, Option<&Node<'o>>) -> Option<Node<'a>>,
    ) -> Self {
        let mut kept = Vec::with_capacity(self.0.len());
        let mut theirs = other.0.iter().peekable();
        for mine in &self.0 {
            while theirs.next_if(|node| node.element < mine.element).is_some() {}
            let same = theirs.peek().filter(|node| node.element == mine.element);
            kept.extend(decide(mine, same.copied()).filter(|node| !node.is_empty()));
        }
        Self(kept)
    }

    /// Calls `visit` with the path of each member, a level's members before what is below them.
    pub fn each_path(&self, visit: &mut impl FnMut(&[Element<'a>])) {
        self.each_path_below(&mut Vec::new(), visit);
    }

    fn each_path_below(
        &self,
        prefix: &mut Vec<Element<'a>>,
        visit: &mut impl FnMut(&[Element<'a>]),
    ) {
        for node in self.0.iter().filter(|node| node.is_member) {
            prefix.push(node.element.clone());
            visit(prefix);
            prefix.pop();
        }
        for node in self.0.iter().filter(|node| !node.children.is_empty()) {
            prefix.push(node.element.clone());
            node.children.each_path_below(prefix, visit);
            prefix.pop();
        }
    }

    /// The `fieldsV1` document.
    pub fn to_fields(&self) -> Value {
        Value::Object(self.fields_below(false))
    }

    fn fields_below(&self, is_member: bool) -> Map<String, Value> {
        let mut map = Map::new();
        if is_member && !self.is_empty() {
            map.insert(".".to_owned(), Value::Object(Map::new()));
        }
        for node in &self.0 {
            let below = node.children.fields_below(node.is_member);
            map.insert(node.element.to_text(), Value::Object(below));
        }
        map
    }

    /// Reads a `fieldsV1` document.
    pub fn from_fields(fields: &'a Value) -> Result<Self, FieldsError> {
        Ok(Self::read(fields)?.0)
    }

    /// The set below a step, and whether the step itself is a member.
    fn read(fields: &'a Value) -> Result<(Self, bool), FieldsError> {
        let map = match fields {
            Value::Object(map) => map,
            Value::Null => return Ok((Self::default(), true)),
            _ => return Err(FieldsError::NoObject),
        };
        let (mut set, mut is_member) = (Self::default(), false);
        for (key, below) in map {
            if key == "." {
                is_member = true;
                continue;
            }
            let Some(element) = Element::parse(key)? else {
                continue;
            };
            let (children, is_member) = Self::read(below)?;
            set.add(element, is_member, children);
        }
        let is_member = is_member || set.is_empty();
        Ok((set, is_member))
    }

    pub fn into_owned(self) -> Set<'static> {
        let nodes = self.0.into_iter().map(|node| Node {
            element: node.element.into_owned(),
            is_member: node.is_member,
            children: node.children.into_owned(),
        });
        Set(nodes.collect())
    }
}

/// One path a line, as messages show them.
impl std::fmt::Display for Set<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut result = Ok(());
        self.each_path(&mut |path| {
            if result.is_ok() {
                result = writeln!(f, "{}", path_text(path));
            }
        });
        result
    }
}

/// `.spec.containers[name="web"].image`
pub fn path_text(path: &[Element<'_>]) -> String {
    path.iter().map(ToString::to_string).collect()
}
