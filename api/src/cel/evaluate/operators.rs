//! Arithmetic, equality and order, over all types that have them.

use super::Fault;
use super::machine::{Machine, Outcome};
use super::times;
use super::value::{Key, Val};
use std::cmp::Ordering;
use std::rc::Rc;

impl<'a> Machine<'a> {
    pub fn arithmetic(&mut self, operator: &str, left: &Val<'a>, right: &Val<'a>) -> Outcome<'a> {
        match (left, right) {
            (Val::Int(a), Val::Int(b)) => of_ints(operator, *a, *b),
            (Val::Uint(a), Val::Uint(b)) => of_uints(operator, *a, *b),
            (Val::Double(a), Val::Double(b)) => of_doubles(operator, *a, *b),
            (Val::Duration(_) | Val::Timestamp(_), _) | (_, Val::Timestamp(_)) => {
                times::arithmetic(operator, left, right)
            }
            _ if operator == "_+_" => self.joined(left, right),
            _ => Err(Fault::overload()),
        }
    }

    fn joined(&mut self, left: &Val<'a>, right: &Val<'a>) -> Outcome<'a> {
        match (left, right) {
            (Val::Text(a), Val::Text(b)) => {
                self.spend_on(a.len() + b.len())?;
                Ok(Val::own_text([&**a, &**b].concat()))
            }
            (Val::Bytes(a), Val::Bytes(b)) => {
                self.spend_on(a.len() + b.len())?;
                Ok(Val::Bytes([&**a, &**b].concat().into()))
            }
            _ => {
                let lists = left.list().zip(right.list());
                let (a, b) = lists.ok_or_else(Fault::overload)?;
                self.spend_on(a.len() + b.len())?;
                Ok(Val::own_list(a.iter().chain(b.iter()).collect()))
            }
        }
    }

    pub fn negated(&mut self, value: &Val<'a>) -> Outcome<'a> {
        match value {
            Val::Int(number) => {
                let negated = number.checked_neg().map(Val::Int);
                negated.ok_or_else(|| Fault::new("integer overflow"))
            }
            Val::Double(number) => Ok(Val::Double(-number)),
            _ => Err(Fault::overload()),
        }
    }

    /// Costs what of both there is to look at.
    pub fn equal(&mut self, left: &Val<'a>, right: &Val<'a>) -> Result<bool, Fault> {
        if let (Some(a), Some(b)) = (left.list(), right.list()) {
            self.spend_on(a.len().min(b.len()))?;
            if a.len() != b.len() {
                return Ok(false);
            }
            for (a, b) in a.iter().zip(b.iter()) {
                if !self.equal(&a, &b)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        if let (Some(a), Some(b)) = (left.table(), right.table()) {
            self.spend_on(a.len().min(b.len()))?;
            if a.len() != b.len() {
                return Ok(false);
            }
            for (key, value) in a.entries() {
                match b.get(&key) {
                    Some(other) if self.equal(&value, &other)? => {}
                    _ => return Ok(false),
                }
            }
            return Ok(true);
        }
        if let (Val::Optional(a), Val::Optional(b)) = (left, right) {
            return match (a, b) {
                (Some(a), Some(b)) => self.equal(a, b),
                (a, b) => Ok(a.is_none() && b.is_none()),
            };
        }
        self.spend_on(left.size().min(right.size()).saturating_sub(1))?;
        Ok(same(left, right))
    }

    /// Whether a list or the keys of a map have a value.
    pub fn is_in(&mut self, value: &Val<'a>, all: &Val<'a>) -> Result<bool, Fault> {
        if let Some(list) = all.list() {
            for one in list.iter() {
                self.spend(1)?;
                if self.equal(value, &one)? {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        let table = all.table().ok_or_else(Fault::overload)?;
        Ok(Key::of(value).is_some_and(|key| table.get(&key).is_some()))
    }

    pub fn index(&mut self, of: &Val<'a>, at: &Val<'a>) -> Outcome<'a> {
        match of {
            Val::Optional(None) => return Ok(Val::Optional(None)),
            Val::Optional(Some(inner)) => return self.optional_index(inner, at),
            _ => {}
        }
        if let Some(found) = self.find_at(of, at)? {
            return Ok(found);
        }
        let shown = match at {
            Val::Text(text) => text.to_string(),
            Val::Int(number) => number.to_string(),
            Val::Uint(number) => number.to_string(),
            Val::Double(number) => number.to_string(),
            Val::Bool(is_true) => is_true.to_string(),
            _ => return Err(Fault::overload()),
        };
        if of.list().is_some() {
            return Err(Fault::new(format!("index out of bounds: {shown}")));
        }
        Err(Fault::new(format!("no such key: {shown}")))
    }

    pub fn optional_index(&mut self, of: &Val<'a>, at: &Val<'a>) -> Outcome<'a> {
        match of {
            Val::Optional(None) => Ok(Val::Optional(None)),
            Val::Optional(Some(inner)) => self.optional_index(inner, at),
            of => Ok(Val::Optional(self.find_at(of, at)?.map(Rc::new))),
        }
    }

    fn find_at(&mut self, of: &Val<'a>, at: &Val<'a>) -> Result<Option<Val<'a>>, Fault> {
        if let (Val::Variables, Val::Text(_)) = (of, at) {
            return Err(Fault::overload());
        }
        if let Some(list) = of.list() {
            let Some(Key::Int(_) | Key::Uint(_)) = Key::of(at) else {
                return Err(Fault::overload());
            };
            let index = match Key::of(at) {
                Some(Key::Int(index)) => usize::try_from(index).ok(),
                Some(Key::Uint(index)) => usize::try_from(index).ok(),
                _ => None,
            };
            return Ok(index.and_then(|index| list.get(index)));
        }
        let key = Key::of(at).ok_or_else(Fault::overload)?;
        let found = of.table().and_then(|table| table.get(&key));
        Ok(found.or_else(|| of.missing()))
    }
}

fn of_ints<'a>(operator: &str, a: i64, b: i64) -> Outcome<'a> {
    let made = match operator {
        "_+_" => a.checked_add(b),
        "_-_" => a.checked_sub(b),
        "_*_" => a.checked_mul(b),
        "_/_" if b == 0 => return Err(Fault::new("division by zero")),
        "_/_" => a.checked_div(b),
        "_%_" if b == 0 => return Err(Fault::new("modulus by zero")),
        "_%_" => a.checked_rem(b),
        _ => return Err(Fault::overload()),
    };
    made.map(Val::Int)
        .ok_or_else(|| Fault::new("integer overflow"))
}

fn of_uints<'a>(operator: &str, a: u64, b: u64) -> Outcome<'a> {
    let made = match operator {
        "_+_" => a.checked_add(b),
        "_-_" => a.checked_sub(b),
        "_*_" => a.checked_mul(b),
        "_/_" if b == 0 => return Err(Fault::new("division by zero")),
        "_/_" => a.checked_div(b),
        "_%_" if b == 0 => return Err(Fault::new("modulus by zero")),
        "_%_" => a.checked_rem(b),
        _ => return Err(Fault::overload()),
    };
    made.map(Val::Uint)
        .ok_or_else(|| Fault::new("unsigned integer overflow"))
}

fn of_doubles<'a>(operator: &str, a: f64, b: f64) -> Outcome<'a> {
    Ok(Val::Double(match operator {
        "_+_" => a + b,
        "_-_" => a - b,
        "_*_" => a * b,
        "_/_" => a / b,
        _ => return Err(Fault::overload()),
    }))
}

/// Of what holds no other values.
fn same(left: &Val<'_>, right: &Val<'_>) -> bool {
    match (left, right) {
        (Val::Null, Val::Null) => true,
        (Val::Type(a), Val::Type(b)) => a == b,
        (Val::Ip(a), Val::Ip(b)) => a.to_canonical() == b.to_canonical(),
        (Val::Cidr(a), Val::Cidr(b)) => a == b,
        (Val::Url(a), Val::Url(b)) => a == b,
        (Val::Format(a), Val::Format(b)) => a == b,
        (Val::Asking(a), Val::Asking(b)) => a == b,
        (left, right) => compare(left, right) == Some(Ordering::Equal),
    }
}

/// `None` where there is no order.
pub fn compare(left: &Val<'_>, right: &Val<'_>) -> Option<Ordering> {
    Some(match (left, right) {
        (Val::Bool(a), Val::Bool(b)) => a.cmp(b),
        (Val::Text(a), Val::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Val::Bytes(a), Val::Bytes(b)) => a.cmp(b),
        (Val::Duration(a), Val::Duration(b)) => a.cmp(b),
        (Val::Timestamp(a), Val::Timestamp(b)) => a.cmp(b),
        (Val::Quantity(a), Val::Quantity(b)) => a.cmp(b),
        (Val::Semver(a), Val::Semver(b)) => a.cmp(b),
        (Val::Double(a), Val::Double(b)) => return a.partial_cmp(b),
        (Val::Double(a), b) => return whole_number(b).and_then(|b| of_mixed(*a, b)),
        (a, Val::Double(b)) => {
            let a = whole_number(a)?;
            return of_mixed(*b, a).map(Ordering::reverse);
        }
        (a, b) => whole_number(a)?.cmp(&whole_number(b)?),
    })
}

fn whole_number(value: &Val<'_>) -> Option<i128> {
    match value {
        Val::Int(number) => Some(i128::from(*number)),
        Val::Uint(number) => Some(i128::from(*number)),
        _ => None,
    }
}

/// A double against a whole number, without rounding the latter.
fn of_mixed(double: f64, whole: i128) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "saturates, as wanted")]
    let floor = double.floor() as i128;
    Some(
        floor
            .cmp(&whole)
            .then(if double.fract() == 0.0 || double.is_infinite() {
                Ordering::Equal
            } else {
                Ordering::Greater
            }),
    )
}
