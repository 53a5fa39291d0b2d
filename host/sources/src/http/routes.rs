//! Which interface of a listener a request is for.

use std::sync::{Arc, Mutex, PoisonError};

use portway_model::Timestamp;

use crate::counters::Counters;
use crate::http::auth::Auth;
use crate::http::ports::Respond;
use crate::refusals::{Refusal, Refusals};

/// The interface of one path.
#[derive(Clone)]
pub struct Route<I, E> {
    pub path: RoutePath,
    pub methods: Methods,
    pub auth: Option<Auth>,
    pub serves: Serves<I, E>,
    pub counters: Counters,
    /// Bytes of a body.
    pub body_bytes_max: usize,
    pub refusals: KeptRefusals,
    /// Whether anybody wants to know which trace a request belongs to.
    pub traced: bool,
}

/// Who answers on a route.
#[derive(Clone)]
pub enum Serves<I, E> {
    /// What a source finds in a request is stored, then it answers.
    Source { endpoint: E, intake: I },
    /// Nothing is stored.
    Component(Arc<dyn Respond>),
}

/// The methods of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Methods {
    Any,
    /// Such as `POST`, in upper case.
    These(Vec<String>),
}

/// The paths of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoutePath {
    /// This one.
    Exact(String),
    /// All that begin with this, which ends in `/`; and it without the `/`.
    Below(String),
}

/// The newest refusals of one interface. Cheap to clone.
#[derive(Clone, Default)]
pub struct KeptRefusals(Arc<Mutex<Refusals>>);

/// What a listener does with a method and path.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Choice {
    Route(usize),
    /// The methods that are taken there.
    WrongMethod(String),
    None,
}

impl RoutePath {
    /// How well it fits; none: not at all.
    fn fit(&self, path: &str) -> Option<usize> {
        match self {
            RoutePath::Exact(own) => (path == own).then_some(usize::MAX),
            RoutePath::Below(own) => {
                (path.starts_with(own.as_str()) || Some(path) == own.strip_suffix('/')).then_some(own.len())
            }
        }
    }
}

/// The route with the longest path that fits; among those the one that takes the method.
pub(super) fn choose<I, E>(routes: &[Route<I, E>], method: &str, path: &str) -> Choice {
    let best = routes.iter().filter_map(|route| route.path.fit(path)).max();
    let Some(best) = best else { return Choice::None };
    let fitting = routes.iter().enumerate().filter(|(_, route)| route.path.fit(path) == Some(best));
    let mut allowed = Vec::new();
    for (index, route) in fitting {
        match &route.methods {
            Methods::Any => return Choice::Route(index),
            Methods::These(own) if own.iter().any(|own| own == method) => return Choice::Route(index),
            Methods::These(own) => allowed.extend(own.iter().map(String::as_str)),
        }
    }
    Choice::WrongMethod(allowed.join(", "))
}

impl KeptRefusals {
    pub(super) fn add(&self, refusal: Refusal) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).add(refusal);
    }

    /// Newest first.
    pub fn list(&self) -> Vec<Refusal> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).list()
    }
}

impl<I, E> Route<I, E> {
    pub(super) fn refused(&self, at: Timestamp, peer: std::net::SocketAddr, failure: portway_model::Failure) {
        self.counters.refused(&failure.code);
        self.refusals.add(Refusal { at, peer, failure, bytes: bytes::Bytes::new() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(path: RoutePath, method: &str) -> Route<(), ()> {
        Route {
            path,
            methods: match method {
                "*" => Methods::Any,
                _ => Methods::These(vec![method.to_owned()]),
            },
            auth: None,
            serves: Serves::Source { endpoint: (), intake: () },
            counters: Counters::new(),
            body_bytes_max: 0,
            refusals: KeptRefusals::default(),
            traced: false,
        }
    }

    #[test]
    fn the_longest_path_wins_and_its_methods_count() {
        let routes = [
            route(RoutePath::Below("/".into()), "POST"),
            route(RoutePath::Below("/a/".into()), "POST"),
            route(RoutePath::Exact("/a/b".into()), "PUT"),
            route(RoutePath::Exact("/a/b".into()), "PATCH"),
        ];
        let chosen = |method, path| choose(&routes, method, path);
        assert_eq!(chosen("POST", "/"), Choice::Route(0));
        assert_eq!(chosen("POST", "/ab"), Choice::Route(0));
        assert_eq!(chosen("POST", "/a"), Choice::Route(1));
        assert_eq!(chosen("POST", "/a/x/y"), Choice::Route(1));
        assert_eq!(chosen("PATCH", "/a/b"), Choice::Route(3));
        assert_eq!(chosen("POST", "/a/b"), Choice::WrongMethod("PUT, PATCH".into()));
        assert_eq!(choose(&routes[2..], "PUT", "/a/b/"), Choice::None);
        let any = [route(RoutePath::Exact("/".into()), "*")];
        assert_eq!(choose(&any, "OPTIONS", "/"), Choice::Route(0));
    }
}
