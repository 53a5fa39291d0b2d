//! Routes between interfaces: their targets exist, and no message comes back to where it was.

use std::collections::{BTreeMap, BTreeSet};

use portway_model::code;

use crate::problem::suggest;
use crate::{At, InterfaceSettings, Name, Problem};

/// The interface files of a project, also those that could not be read.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) names: BTreeSet<Name>,
    /// Their files have problems: what they lack is perhaps only mistyped.
    pub(crate) unclear: BTreeSet<Name>,
}

/// What is wrong with a project's routes.
pub(crate) fn check(interfaces: &[InterfaceSettings], known: &Known) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut routes: BTreeMap<&Name, Vec<&At<Name>>> = BTreeMap::new();
    let mut targets = BTreeSet::new();
    for interface in interfaces {
        for route in interface.destinations.iter().filter_map(|destination| destination.route.as_ref()) {
            targets.insert(&route.value);
            if known.names.contains(&route.value) {
                routes.entry(&interface.name).or_default().push(route);
            } else {
                let text = format!("there is no interface `{}` to route to", route.value);
                let hint = suggest(&route.value, known.names.iter().map(Name::as_str));
                problems.push(Problem::new(route.place.clone(), code::UNKNOWN_ROUTE, text).hint(hint));
            }
        }
    }
    problems.extend(find_loops(&routes));
    let clear = interfaces.iter().filter(|interface| !known.unclear.contains(&interface.name));
    let unfed = clear.filter(|interface| interface.source.is_none() && !targets.contains(&interface.name));
    problems.extend(unfed.map(|interface| {
        let text = format!("interface `{}` receives nothing", interface.name);
        Problem::new(interface.place.clone(), code::INTERFACE_UNFED, text)
            .hint("add `[source]`, or a route in another interface")
    }));
    problems
}

/// Each loop once, at the route that closes it. A walk without recursion: a chain may be as
/// long as there are interfaces.
fn find_loops(routes: &BTreeMap<&Name, Vec<&At<Name>>>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut finished: BTreeSet<&Name> = BTreeSet::new();
    for start in routes.keys().copied() {
        // The way from `start` to where the walk is, and how many routes of each were taken.
        let mut way: Vec<(&Name, usize)> = vec![(start, 0)];
        let mut on_way: BTreeSet<&Name> = BTreeSet::from([start]);
        if finished.contains(start) {
            continue;
        }
        while let Some((name, taken)) = way.last_mut() {
            let name = *name;
            let Some(route) = routes.get(name).and_then(|out| out.get(*taken)) else {
                finished.insert(name);
                on_way.remove(name);
                way.pop();
                continue;
            };
            *taken += 1;
            if on_way.contains(&route.value) {
                problems.push(closes_loop(&way, route));
            } else if !finished.contains(&route.value) {
                on_way.insert(&route.value);
                way.push((&route.value, 0));
            }
        }
    }
    problems
}

fn closes_loop(way: &[(&Name, usize)], route: &At<Name>) -> Problem {
    let names = way.iter().map(|(name, _)| name.as_str()).skip_while(|name| *name != route.value.as_str());
    let mut names: Vec<&str> = names.collect();
    names.push(&route.value);
    // A loop through a thousand interfaces needs no list of all.
    let shown =
        if names.len() > 12 { format!("{} interfaces", names.len() - 1) } else { names.join(" → ") };
    let text = format!("this route closes a loop: {shown}");
    Problem::new(route.place.clone(), code::ROUTE_LOOP, text)
        .hint("a message must not come back to an interface it was in; remove one of these routes")
}
