//! What calls of functions cost beside their arguments, and how large their results are.

use super::{
    CALL_COST, CHARACTER_COST, Entries, LIST_COST, Node, PATTERN_COST, STRUCT_COST, Size, scaled,
    sum,
};
use crate::cel::extents::{Extents, Place};
use crate::cel::types::Type;

/// Two are allowed for one expression.
const AUTHORIZATION_COST: u64 = 350_000;
/// As long as the pattern of a format is taken to be.
const FORMAT_PATTERN_LENGTH: f64 = 128.0;
/// A format's text is no longer.
const FORMAT_LENGTH_MAX: u64 = 64;
/// An address has so many bytes at most.
const ADDRESS_BYTES_MAX: u64 = 16;

/// Functions that cost the same whatever they look at, by upstream's library.
const NOMINAL: &[&str] = &[
    "add",
    "allowed",
    "asApproximateFloat",
    "asInteger",
    "compareTo",
    "error",
    "errored",
    "family",
    "format.named",
    "getEscapedPath",
    "getHost",
    "getHostname",
    "getPort",
    "getQuery",
    "getScheme",
    "group",
    "isGlobalUnicast",
    "isGreaterThan",
    "isInteger",
    "isLessThan",
    "isLinkLocalMulticast",
    "isLinkLocalUnicast",
    "isLoopback",
    "isUnspecified",
    "major",
    "masked",
    "minor",
    "name",
    "namespace",
    "patch",
    "path",
    "prefixLength",
    "reason",
    "resource",
    "serviceAccount",
    "sign",
    "sub",
    "subresource",
];
/// Types whose values are compared at once.
const COMPARED_AT_ONCE: &[&str] = &[
    "kubernetes.Quantity",
    "kubernetes.Semver",
    "kubernetes.authorization.Authorizer",
    "kubernetes.authorization.Decision",
    "kubernetes.authorization.GroupCheck",
    "kubernetes.authorization.PathCheck",
    "kubernetes.authorization.ResourceCheck",
    "net.CIDR",
    "net.IP",
];

/// A call of a function.
pub struct Call<'c, 'x> {
    pub name: &'c str,
    pub target: Option<&'c Node<'x>>,
    pub arguments: &'c [Node<'x>],
}

/// What one overload costs and gives.
#[derive(Debug)]
pub struct Found {
    pub cost: u64,
    pub size: Option<Size>,
    pub entries: Option<Entries>,
}

impl Found {
    fn of(cost: u64) -> Self {
        Self {
            cost,
            size: None,
            entries: None,
        }
    }

    fn sized(cost: u64, size: Size) -> Self {
        Self {
            size: Some(size),
            ..Self::of(cost)
        }
    }

    /// A list that is made.
    fn list(factor: f64, size: Size) -> Self {
        Self::sized(sum([size.cost(factor), CALL_COST, LIST_COST]), size)
    }
}

impl Call<'_, '_> {
    /// What the overload costs that takes such types, the target's first.
    pub fn cost(&self, types: &[Type], extents: &Extents) -> Found {
        self.of_lists(types)
            .or_else(|| self.of_library(types, extents))
            .or_else(|| self.of_strings(types))
            .unwrap_or_else(|| self.of_operators(types))
    }

    /// Of the extension for lists, and that for sets.
    fn of_lists(&self, types: &[Type]) -> Option<Found> {
        let whole = |node: &Node<'_>, default: u64| match node.int {
            Some(int) => u64::try_from(int).unwrap_or(0),
            None => default,
        };
        let is_list = matches!(types.first(), Some(Type::List(_)));
        Some(match (self.name, self.target, self.arguments) {
            ("slice", Some(target), [start, end]) if is_list => {
                let end = whole(end, target.size().max);
                let length = end.wrapping_sub(whole(start, 0));
                Found::list(1.0, Size::exactly(length))
            }
            ("flatten", Some(target), depth @ ([] | [_])) => {
                let depth = depth.first().map_or(1, |depth| whole(depth, u64::MAX));
                Found::list(depth as f64, target.size())
            }
            ("lists.range", None, [length]) => {
                Found::list(1.0, Size::exactly(whole(length, u64::MAX)))
            }
            ("reverse", Some(target), []) if is_list => Found::list(1.0, target.size()),
            ("distinct", Some(target), []) => Found::list(2.0, target.size().times(target.size())),
            ("sort", Some(target), []) => sorted(target.size(), types.first()),
            ("sets.contains" | "sets.intersects", None, [a, b]) => {
                Found::of(a.size().times(b.size()).cost(1.0).saturating_add(CALL_COST))
            }
            ("sets.equivalent", None, [a, b]) => {
                Found::of(a.size().times(b.size()).cost(2.0).saturating_add(CALL_COST))
            }
            _ => return None,
        })
    }

    /// Of upstream's own library.
    fn of_library(&self, types: &[Type], extents: &Extents) -> Option<Found> {
        if NOMINAL.contains(&self.name) {
            return Some(Found::of(1));
        }
        let walked = |node: &Node<'_>| node.size().cost(CHARACTER_COST);
        let first = self.arguments.first();
        Some(match (self.name, self.target, self.arguments) {
            ("check", ..) => Found::of(AUTHORIZATION_COST),
            ("fieldSelector" | "labelSelector", _, [text]) => {
                let requirements = text.size().cost(0.5);
                let each = (LIST_COST + STRUCT_COST) as f64;
                let cost = [LIST_COST, walked(text), scaled(requirements, each)];
                Found::of(sum(cost))
            }
            ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", Some(target), _) => {
                Found::of(traversed(target, extents))
            }
            ("url" | "jsonpatch.escapeKey", _, [text]) => Found::sized(walked(text), text.size()),
            ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(target), _) => {
                Found::sized(walked(target), target.size())
            }
            ("replace", Some(text), [from, to, ..]) => {
                let size = replaced(text.size(), from.size(), to.size());
                Found::sized(text.size().cost(2.0 * CHARACTER_COST), size)
            }
            ("split", Some(text), arguments) => {
                let most = arguments.get(1).and_then(|most| most.int);
                let most = most.map_or(text.size().max, |most| most as u64);
                let cost = text.size().cost(2.0 * CHARACTER_COST);
                Found::sized(cost, Size::up_to(most))
            }
            ("join", Some(list), arguments) => {
                let size = joined(list, arguments.first(), extents);
                Found::sized(size.cost(CHARACTER_COST), size)
            }
            ("find" | "findAll", Some(text), [pattern, ..]) => {
                let size = Size::up_to(text.size().max);
                Found::sized(matched(text.size(), pattern.size()), size)
            }
            ("ip", Some(_), []) => Found::of(1),
            (
                "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver"
                | "isSemver",
                _,
                [text, ..],
            ) => Found::of(walked(text)),
            ("ip.isCanonical", _, [text, ..]) => Found::of(text.size().cost(2.0 * CHARACTER_COST)),
            ("containsIP", _, [other, ..]) => {
                let compared = scaled(2 * ADDRESS_BYTES_MAX, CHARACTER_COST);
                Found::of(compared.saturating_add(parsed(other, types)))
            }
            ("containsCIDR", _, [other, ..]) => {
                let compared = scaled(2 * ADDRESS_BYTES_MAX, CHARACTER_COST);
                let masked = scaled(ADDRESS_BYTES_MAX, CHARACTER_COST) + 1;
                Found::of(sum([compared, masked, parsed(other, types)]))
            }
            ("validate", _, [_, ..]) => {
                let walked = first.map_or(0, walked);
                Found::of(scaled(walked, FORMAT_PATTERN_LENGTH * PATTERN_COST))
            }
            ("_==_", _, [a, b]) if a.of == b.of => Found::of(compared_at_once(a, b)?),
            _ => return None,
        })
    }

    /// Of the language, and of the extension for strings.
    fn of_strings(&self, types: &[Type]) -> Option<Found> {
        let walked = |node: &Node<'_>| node.size().cost(CHARACTER_COST);
        Some(match (self.name, self.target, self.arguments, types) {
            ("format", Some(text), ..) => Found::of(walked(text)),
            ("bytes", None, [text], [Type::String]) => {
                let size = text.size();
                let max = size.max.wrapping_mul(4);
                Found::sized(walked(text), Size { max, ..size })
            }
            ("string", None, [bytes], [Type::Bytes]) => {
                let size = bytes.size();
                let min = size.min / 4;
                Found::sized(walked(bytes), Size { min, ..size })
            }
            ("strings.quote", None, [text], _) => {
                let Size { min, max } = text.size();
                let (min, max) = (min.wrapping_add(2), max.wrapping_mul(2).wrapping_add(2));
                Found::sized(walked(text), Size { min, max })
            }
            ("startsWith" | "endsWith", _, [part], _) => Found::of(walked(part)),
            ("matches", Some(text), [pattern], _) => {
                Found::of(matched(text.size(), pattern.size()))
            }
            ("contains", Some(text), [part], _) => {
                Found::of(walked(text).saturating_mul(walked(part)))
            }
            _ => return None,
        })
    }

    fn of_operators(&self, types: &[Type]) -> Found {
        let is_text = matches!(types.first(), Some(Type::String | Type::Bytes));
        match (self.name, self.arguments, types) {
            ("@in", [_, list], [_, Type::List(_)]) => Found::of(list.size().cost(1.0)),
            ("_+_", [a, b], [Type::List(_), _]) => {
                let entries = a.known.entries.zip(b.known.entries);
                Found {
                    entries: entries.map(|(a, b)| a.or(b)),
                    ..Found::sized(CALL_COST, a.size().plus(b.size()))
                }
            }
            ("_+_", [a, b], _) if is_text => {
                let size = a.size().plus(b.size());
                Found::sized(size.cost(CHARACTER_COST), size)
            }
            ("_==_" | "_!=_", [a, b], _) => Found::of(compared(a, b)),
            ("_<_" | "_<=_" | "_>_" | "_>=_", [a, b], _) if is_text => Found::of(compared(a, b)),
            _ => Found::of(CALL_COST),
        }
    }
}

/// Comparing ends with the smaller one.
fn compared(a: &Node<'_>, b: &Node<'_>) -> u64 {
    scaled(a.size().max.min(b.size().max), CHARACTER_COST)
}

/// `None` for types whose values are compared as others.
fn compared_at_once(a: &Node<'_>, b: &Node<'_>) -> Option<u64> {
    let (Type::Opaque(name, _) | Type::Struct(name)) = &a.of else {
        return None;
    };
    match &**name {
        name if COMPARED_AT_ONCE.contains(&name) => Some(1),
        "kubernetes.NamedFormat" => Some(scaled(FORMAT_LENGTH_MAX, CHARACTER_COST)),
        "kubernetes.URL" => {
            let max = b.known.size.map_or(1, |size| size.max);
            Some(scaled(max, CHARACTER_COST))
        }
        _ => None,
    }
}

/// A string has to be parsed first.
fn parsed(node: &Node<'_>, types: &[Type]) -> u64 {
    match types {
        [_, Type::String] => node.size().cost(CHARACTER_COST),
        _ => 0,
    }
}

fn matched(text: Size, pattern: Size) -> u64 {
    // An empty text costs something too.
    let text = text.plus(Size::exactly(1)).cost(CHARACTER_COST);
    text.saturating_mul(pattern.cost(PATTERN_COST))
}

pub fn sorted(list: Size, of: Option<&Type>) -> Found {
    let is_text = match of {
        Some(Type::List(item)) => matches!(&**item, Type::String | Type::Bytes),
        _ => false,
    };
    let of_text = if is_text { CHARACTER_COST } else { 0.0 };
    Found::list(2.0 + of_text, list.times(list))
}

/// The size of an element of a list; `None` for what has none.
fn element(list: &Node<'_>, extents: &Extents) -> Option<(Size, bool)> {
    let of = list.of.parameters().into_iter().next()?;
    let size = match list.known.place {
        Place::Nowhere => None,
        place => place.values(extents).most(),
    };
    let is_text = matches!(of, Type::String | Type::Bytes);
    Some((size.map_or(Size::UNKNOWN, Size::up_to), is_text))
}

fn traversed(target: &Node<'_>, extents: &Extents) -> u64 {
    match element(target, extents) {
        None => target.size().cost(CHARACTER_COST),
        Some((size, is_text)) => {
            let of_text = if is_text {
                size.cost(CHARACTER_COST)
            } else {
                0
            };
            let each = of_text.saturating_add(1);
            target.size().max.saturating_mul(each)
        }
    }
}

fn joined(list: &Node<'_>, between: Option<&Node<'_>>, extents: &Extents) -> Size {
    let count = list.size();
    let mut size = Size::exactly(0);
    if let Some((each, _)) = element(list, extents) {
        size = count.times(each);
    }
    if let Some(between) = between {
        let gaps = Size {
            min: count.min.saturating_sub(1),
            max: count.max.saturating_sub(1),
        };
        size = size.plus(between.size().times(gaps));
    }
    size
}

fn replaced(text: Size, from: Size, to: Size) -> Size {
    let parts = |whole: u64, part: u64| (whole as f64 / part as f64).ceil() as u64;
    let (mut count, mut kept) = (Size::exactly(0), Size::exactly(0));
    if from.min == 0 {
        // What replaces nothing stands around all characters.
        count.max = text.max.saturating_add(1);
        kept.max = text.max;
    } else if to.max <= from.min {
        kept.max = text.max;
    } else {
        count.max = parts(text.max, from.min);
    }
    if from.max == 0 {
        count.min = text.min.saturating_add(1);
        kept.min = text.min;
    } else if from.max <= to.min {
        kept.min = text.min;
    } else {
        count.min = parts(text.min, from.max);
    }
    count.times(to).plus(kept)
}
