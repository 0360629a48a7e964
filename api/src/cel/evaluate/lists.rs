//! Functions of lists, and of lists that are taken for sets.

use super::Fault;
use super::call::count;
use super::loops::sort;
use super::machine::{Machine, Outcome};
use super::operators::compare;
use super::value::{List, Val};
use std::cmp::Ordering;
use std::rc::Rc;

type Found<'a> = Result<Option<Val<'a>>, Fault>;

/// `None` where a list has no such function.
pub fn call<'a>(
    machine: &mut Machine<'a>,
    name: &str,
    of: &Val<'a>,
    rest: &[Val<'a>],
) -> Found<'a> {
    let Some(list) = of.list() else {
        return Ok(None);
    };
    if !matches!(name, "first" | "last" | "slice") {
        machine.spend_on(list.len())?;
    }
    Ok(Some(match (name, rest) {
        ("first", []) => Val::Optional(list.get(0).map(Rc::new)),
        ("last", []) => {
            let last = list.len().checked_sub(1).and_then(|at| list.get(at));
            Val::Optional(last.map(Rc::new))
        }
        ("isSorted", []) => is_sorted(list)?,
        ("sum", []) => sum(machine, list)?,
        ("min" | "max", []) => extreme(name, list)?,
        ("indexOf", [value]) => place(machine, list, value, false)?,
        ("lastIndexOf", [value]) => place(machine, list, value, true)?,
        ("join", []) => join(machine, list, "")?,
        ("join", [Val::Text(between)]) => join(machine, list, between)?,
        ("reverse", []) => Val::own_list(list.iter().rev().collect()),
        ("distinct", []) => distinct(machine, list)?,
        ("sort", []) => {
            machine.spend_on_sort(list.len())?;
            let mut all: Vec<Val<'a>> = list.iter().collect();
            sort(&mut all, |one| one)?;
            Val::own_list(all)
        }
        ("slice", [Val::Int(from), Val::Int(to)]) => slice(machine, list, *from, *to)?,
        ("flatten", []) => flattened(machine, list, 1)?,
        ("flatten", [Val::Int(depth)]) => flattened(machine, list, *depth)?,
        ("unwrapOpt", []) => return Ok(unwrapped(of)),
        _ => return Ok(None),
    }))
}

fn is_sorted<'a>(list: List<'_, 'a>) -> Outcome<'a> {
    for at in 1..list.len() {
        let (Some(a), Some(b)) = (list.get(at - 1), list.get(at)) else {
            break;
        };
        match compare(&a, &b) {
            None => return Err(Fault::overload()),
            Some(Ordering::Greater) => return Ok(Val::Bool(false)),
            Some(_) => {}
        }
    }
    Ok(Val::Bool(true))
}

fn sum<'a>(machine: &mut Machine<'a>, list: List<'_, 'a>) -> Outcome<'a> {
    let mut all = list.iter();
    let Some(mut sum) = all.next() else {
        return Ok(Val::Int(0));
    };
    for one in all {
        sum = machine.arithmetic("_+_", &sum, &one)?;
    }
    match sum {
        Val::Int(_) | Val::Uint(_) | Val::Double(_) | Val::Duration(_) => Ok(sum),
        _ => Err(Fault::overload()),
    }
}

fn extreme<'a>(name: &str, list: List<'_, 'a>) -> Outcome<'a> {
    let wanted = if name == "min" {
        Ordering::Less
    } else {
        Ordering::Greater
    };
    let mut all = list.iter();
    let first = all.next();
    let mut best = first.ok_or_else(|| Fault::new(format!("{name} called on empty list")))?;
    for one in all {
        if compare(&one, &best).ok_or_else(Fault::overload)? == wanted {
            best = one;
        }
    }
    Ok(best)
}

fn place<'a>(
    machine: &mut Machine<'a>,
    list: List<'_, 'a>,
    value: &Val<'a>,
    is_last: bool,
) -> Outcome<'a> {
    let mut found = Val::Int(-1);
    for (at, one) in list.iter().enumerate() {
        if machine.equal(&one, value)? {
            found = count(at);
            if !is_last {
                break;
            }
        }
    }
    Ok(found)
}

fn join<'a>(machine: &mut Machine<'a>, list: List<'_, 'a>, between: &str) -> Outcome<'a> {
    let mut made = String::new();
    for (at, one) in list.iter().enumerate() {
        let text = one.text().ok_or_else(Fault::overload)?;
        machine.spend_on(text.len() + between.len())?;
        if at > 0 {
            made.push_str(between);
        }
        made.push_str(text);
    }
    machine.made_text(made)
}

fn distinct<'a>(machine: &mut Machine<'a>, list: List<'_, 'a>) -> Outcome<'a> {
    let mut all: Vec<Val<'a>> = Vec::new();
    for one in list.iter() {
        let mut is_known = false;
        for known in &all {
            machine.spend(1)?;
            is_known = machine.equal(known, &one)?;
            if is_known {
                break;
            }
        }
        if !is_known {
            all.push(one);
        }
    }
    Ok(Val::own_list(all))
}

fn slice<'a>(machine: &mut Machine<'a>, list: List<'_, 'a>, from: i64, to: i64) -> Outcome<'a> {
    let length = list.len();
    let wrong = |why: &str| Fault::new(format!("cannot slice({from}, {to}), {why}"));
    if from < 0 || to < 0 {
        return Err(wrong("negative indexes not supported"));
    }
    if from > to {
        return Err(wrong("start index must be less than or equal to end index"));
    }
    let (Ok(from), Ok(to)) = (usize::try_from(from), usize::try_from(to)) else {
        return Err(wrong("list is of another length"));
    };
    if to > length {
        return Err(wrong(&format!("list is length {length}")));
    }
    machine.spend_on(to - from)?;
    Ok(Val::own_list(
        (from..to).filter_map(|at| list.get(at)).collect(),
    ))
}

fn flattened<'a>(machine: &mut Machine<'a>, list: List<'_, 'a>, depth: i64) -> Outcome<'a> {
    if depth < 0 {
        return Err(Fault::new("level must be non-negative"));
    }
    let mut all: Vec<Val<'a>> = list.iter().collect();
    // No list nests deeper than what it was read from or made by.
    for _ in 0..depth {
        if !all.iter().any(|one| one.list().is_some()) {
            break;
        }
        let mut next = Vec::with_capacity(all.len());
        for one in all {
            machine.spend_on(one.size())?;
            match one.list() {
                Some(inner) => next.extend(inner.iter()),
                None => next.push(one),
            }
        }
        all = next;
    }
    Ok(Val::own_list(all))
}

/// What those hold that hold something.
pub fn unwrapped<'a>(list: &Val<'a>) -> Option<Val<'a>> {
    let mut all = Vec::new();
    for one in list.list()?.iter() {
        match one {
            Val::Optional(inner) => all.extend(inner.map(|inner| (*inner).clone())),
            _ => return None,
        }
    }
    Some(Val::own_list(all))
}

pub fn range<'a>(machine: &mut Machine<'a>, length: i64) -> Outcome<'a> {
    let length = usize::try_from(length).unwrap_or(0);
    machine.spend(length as u64)?;
    Ok(Val::own_list((0..length).map(count).collect()))
}

pub fn of_sets<'a>(machine: &mut Machine<'a>, name: &str, a: &Val<'a>, b: &Val<'a>) -> Found<'a> {
    let (Some(left), Some(right)) = (a.list(), b.list()) else {
        return Ok(None);
    };
    let has_all = |machine: &mut Machine<'a>, all: &Val<'a>, wanted: List<'_, 'a>| {
        for one in wanted.iter() {
            if !machine.is_in(&one, all)? {
                return Ok(false);
            }
        }
        Ok::<_, Fault>(true)
    };
    Ok(Some(Val::Bool(match name {
        "contains" => has_all(machine, a, right)?,
        "equivalent" => has_all(machine, a, right)? && has_all(machine, b, left)?,
        "intersects" => {
            let mut is_shared = false;
            for one in left.iter() {
                is_shared = is_shared || machine.is_in(&one, b)?;
            }
            is_shared
        }
        _ => return Ok(None),
    })))
}
