//! The routes of a driver, which can be exchanged while requests are in hand: each request goes on
//! with the routes it began with.

use std::sync::{Arc, PoisonError, RwLock};

use portway_net::listen::ListenStatus;

use super::{HttpHandle, Route, Shared};

/// The routes of now.
pub(super) struct Current<I, E>(RwLock<Arc<Vec<Route<I, E>>>>);

/// Exchanges the routes of a driver. Its connections stay open.
pub struct RouteTable<I, E> {
    shared: Arc<Shared<I, E>>,
    listener: ListenStatus,
}

impl<I, E> Current<I, E> {
    pub fn new(routes: Vec<Route<I, E>>) -> Self {
        Current(RwLock::new(Arc::new(routes)))
    }

    pub fn get(&self) -> Arc<Vec<Route<I, E>>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, routes: Vec<Route<I, E>>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(routes);
    }
}

impl<I, E> RouteTable<I, E> {
    pub(super) fn new(shared: Arc<Shared<I, E>>, listener: ListenStatus) -> Self {
        RouteTable { shared, listener }
    }

    /// Requests that come from now on go by these routes.
    pub fn set(&self, routes: Vec<Route<I, E>>) {
        self.shared.routes.set(routes);
    }

    /// What can be seen of a route.
    pub fn handle(&self, route: &Route<I, E>) -> HttpHandle {
        HttpHandle::new(route, &self.listener, &self.shared.strays)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_goes_on_with_the_routes_it_began_with() {
        let current: Current<(), ()> = Current::new(Vec::new());
        let before = current.get();
        let route = || Route {
            path: super::super::RoutePath::Below("/".into()),
            methods: super::super::Methods::Any,
            auth: None,
            serves: super::super::Serves::Source { endpoint: (), intake: () },
            counters: crate::counters::Counters::new(),
            body_bytes_max: 0,
            refusals: super::super::KeptRefusals::default(),
            traced: false,
        };
        current.set(vec![route(), route()]);
        assert_eq!((before.len(), current.get().len()), (0, 2));
    }
}
