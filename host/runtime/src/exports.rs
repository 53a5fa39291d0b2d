//! The exports of a component by its kind, found once and loaded with each instance.

use portway_bindings::exports::portway::plugin::{
    http_sender, http_source, poll_source, sender, stream_source, transform,
};
use portway_bindings::portway::plugin::types::{Context, Failure};
use wasmtime::component::{Instance, InstancePre, ResourceAny};
use wasmtime::{Store, bail};
use wasmtime_wasi_http::p2::bindings::exports::wasi::http::incoming_handler;

use crate::guest::Guest;
use crate::manifest::PluginKind;

/// Where the exports of a component are.
pub(crate) enum Indices {
    Transform(transform::GuestIndices),
    StreamSource(stream_source::GuestIndices),
    PollSource(poll_source::GuestIndices),
    HttpSource(http_source::GuestIndices),
    Sender(sender::GuestIndices),
    HttpSender(http_sender::GuestIndices),
    Respond(incoming_handler::GuestIndices),
}

/// The exports of an instance.
pub(crate) enum Exports {
    Transform(transform::Guest),
    StreamSource(stream_source::Guest),
    PollSource(poll_source::Guest),
    HttpSource(http_source::Guest),
    Sender(sender::Guest),
    HttpSender(http_sender::Guest),
    Respond(incoming_handler::Guest),
}

impl Indices {
    /// Fails if the component does not export what its kind must.
    pub fn find(kind: PluginKind, pre: &InstancePre<Guest>) -> wasmtime::Result<Indices> {
        Ok(match kind {
            PluginKind::Transform => Indices::Transform(transform::GuestIndices::new(pre)?),
            PluginKind::StreamSource => Indices::StreamSource(stream_source::GuestIndices::new(pre)?),
            PluginKind::PollSource => Indices::PollSource(poll_source::GuestIndices::new(pre)?),
            PluginKind::HttpSource => Indices::HttpSource(http_source::GuestIndices::new(pre)?),
            PluginKind::Sender => Indices::Sender(sender::GuestIndices::new(pre)?),
            PluginKind::HttpSender => Indices::HttpSender(http_sender::GuestIndices::new(pre)?),
            PluginKind::Respond => Indices::Respond(incoming_handler::GuestIndices::new(pre)?),
        })
    }

    /// Fails if the types of the exports are not the contract's.
    pub fn load(&self, store: &mut Store<Guest>, instance: &Instance) -> wasmtime::Result<Exports> {
        Ok(match self {
            Indices::Transform(indices) => Exports::Transform(indices.load(store, instance)?),
            Indices::StreamSource(indices) => Exports::StreamSource(indices.load(store, instance)?),
            Indices::PollSource(indices) => Exports::PollSource(indices.load(store, instance)?),
            Indices::HttpSource(indices) => Exports::HttpSource(indices.load(store, instance)?),
            Indices::Sender(indices) => Exports::Sender(indices.load(store, instance)?),
            Indices::HttpSender(indices) => Exports::HttpSender(indices.load(store, instance)?),
            Indices::Respond(indices) => Exports::Respond(indices.load(store, instance)?),
        })
    }
}

impl Exports {
    /// Opens the kind's resource.
    pub async fn open(
        &self,
        store: &mut Store<Guest>,
        context: &Context,
    ) -> wasmtime::Result<Result<ResourceAny, Failure>> {
        match self {
            Exports::Transform(guest) => guest.transformer().call_open(store, context).await,
            Exports::StreamSource(guest) => guest.listener().call_open(store, context).await,
            Exports::PollSource(guest) => guest.poller().call_open(store, context).await,
            Exports::HttpSource(guest) => guest.endpoint().call_open(store, context).await,
            Exports::Sender(guest) => guest.destination().call_open(store, context).await,
            Exports::HttpSender(guest) => guest.destination().call_open(store, context).await,
            Exports::Respond(_) => bail!("a component that responds is not opened"),
        }
    }

    pub fn transform(&self) -> wasmtime::Result<&transform::Guest> {
        match self {
            Exports::Transform(guest) => Ok(guest),
            _ => bail!("the plugin is no transform"),
        }
    }

    pub fn stream_source(&self) -> wasmtime::Result<&stream_source::Guest> {
        match self {
            Exports::StreamSource(guest) => Ok(guest),
            _ => bail!("the plugin is no stream source"),
        }
    }

    pub fn poll_source(&self) -> wasmtime::Result<&poll_source::Guest> {
        match self {
            Exports::PollSource(guest) => Ok(guest),
            _ => bail!("the plugin is no poll source"),
        }
    }

    pub fn http_source(&self) -> wasmtime::Result<&http_source::Guest> {
        match self {
            Exports::HttpSource(guest) => Ok(guest),
            _ => bail!("the plugin is no HTTP source"),
        }
    }

    pub fn sender(&self) -> wasmtime::Result<&sender::Guest> {
        match self {
            Exports::Sender(guest) => Ok(guest),
            _ => bail!("the plugin is no sender"),
        }
    }

    pub fn http_sender(&self) -> wasmtime::Result<&http_sender::Guest> {
        match self {
            Exports::HttpSender(guest) => Ok(guest),
            _ => bail!("the plugin is no HTTP sender"),
        }
    }

    pub fn respond(&self) -> wasmtime::Result<&incoming_handler::Guest> {
        match self {
            Exports::Respond(guest) => Ok(guest),
            _ => bail!("the plugin does not respond"),
        }
    }
}
