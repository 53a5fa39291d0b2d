//! Places in the output: where members are put, and what is taken out of the rest.

use std::borrow::Cow;

use portway_json::Path;
use portway_sdk::Problem;

use crate::made::Made;

/// Stands for every member or element in a path of `remove`.
const EVERY: &str = "*";

/// A name, and what it is in an array.
type Part<'p> = (&'p str, Option<usize>);

/// Puts a value where a path leads; objects on the way are made.
pub(crate) fn put<'m>(output: &mut Made<'m>, to: &'m Path, value: Made<'m>) -> Result<(), Problem> {
    let parts: Vec<Part<'m>> = to.parts().collect();
    put_at(output, &parts, value).map_err(|kind| {
        let text = format!("nothing can be put at `{to}`, since {kind} stands on the way");
        Problem::quarantine("no-place", text)
    })
}

/// An error is what stands where an object is needed.
fn put_at<'m>(output: &mut Made<'m>, parts: &[Part<'m>], value: Made<'m>) -> Result<(), &'static str> {
    let Some(((name, index), rest)) = parts.split_first() else {
        *output = value;
        return Ok(());
    };
    open(output);
    let kind = output.kind();
    match output {
        Made::Object(members) => match members.iter_mut().find(|(known, _)| known == name) {
            Some((_, member)) => put_at(member, rest, value),
            None => {
                let mut member = Made::Object(Vec::new());
                put_at(&mut member, rest, value)?;
                members.push((Cow::Borrowed(name), member));
                Ok(())
            }
        },
        Made::Array(elements) => match index.and_then(|index| elements.get_mut(index)) {
            Some(element) => put_at(element, rest, value),
            None => Err(kind),
        },
        Made::Given(_) | Made::Literal(_) | Made::Bool(_) | Made::Number(_) | Made::Text(_) => Err(kind),
    }
}

/// Takes out what a path leads to, if it is there; `*` is every member or element.
pub(crate) fn remove(output: &mut Made<'_>, path: &Path) {
    let parts: Vec<Part<'_>> = path.parts().collect();
    remove_at(output, &parts);
}

fn remove_at(output: &mut Made<'_>, parts: &[Part<'_>]) {
    let Some(((name, index), rest)) = parts.split_first() else { return };
    open(output);
    match output {
        Made::Object(members) if rest.is_empty() => {
            members.retain(|(known, _)| known != name && *name != EVERY)
        }
        Made::Object(members) => {
            let wanted = members.iter_mut().filter(|(known, _)| known == name || *name == EVERY);
            wanted.for_each(|(_, member)| remove_at(member, rest));
        }
        Made::Array(elements) if rest.is_empty() => {
            let mut number = 0_usize..;
            elements.retain(|_| number.next() != *index && *name != EVERY);
        }
        Made::Array(elements) if *name == EVERY => {
            elements.iter_mut().for_each(|element| remove_at(element, rest))
        }
        Made::Array(elements) => {
            if let Some(element) = index.and_then(|index| elements.get_mut(index)) {
                remove_at(element, rest);
            }
        }
        Made::Given(_) | Made::Literal(_) | Made::Bool(_) | Made::Number(_) | Made::Text(_) => {}
    }
}

fn open(output: &mut Made<'_>) {
    let closed = std::mem::replace(output, Made::null());
    *output = closed.opened();
}
