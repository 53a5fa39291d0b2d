//! Stream sources.

use std::cell::RefCell;
use std::marker::PhantomData;

use crate::glue::convert;
use crate::glue::services::portway::plugin::types as wit;
use crate::glue::source::{item, receipt};
use crate::{Attributes, Codec, Step, StreamSource};
use bindings::exports::portway::plugin::stream_source as exported;

pub mod bindings {
    //! Generated.

    wit_bindgen::generate!({
        path: "../wit",
        world: "portway:plugin/stream-source-plugin@0.1.0",
        with: {
            "portway:host/blobs@0.1.0": crate::glue::services::portway::host::blobs,
            "portway:host/connect@0.1.0": crate::glue::services::portway::host::connect,
            "portway:host/secrets@0.1.0": crate::glue::services::portway::host::secrets,
            "portway:host/state@0.1.0": crate::glue::services::portway::host::state,
            "portway:host/files@0.1.0": crate::glue::services::portway::host::files,
            "portway:host/http@0.1.0": crate::glue::services::portway::host::http,
            "portway:host/log@0.1.0": crate::glue::services::portway::host::log,
            "portway:host/progress@0.1.0": crate::glue::services::portway::host::progress,
            "portway:host/text@0.1.0": crate::glue::services::portway::host::text,
            "portway:plugin/types@0.1.0": crate::glue::services::portway::plugin::types,
        },
        pub_export_macro: true,
        export_macro_name: "export",
        default_bindings_module: "portway_sdk::glue::stream_source::bindings",
    });
}

/// What is exported for an author's type.
pub struct Plugin<T>(PhantomData<T>);

impl<T: StreamSource> exported::Guest for Plugin<T> {
    type Listener = Opened<T>;
    type Connection = Accepted<T::Codec>;
}

/// One interface's settings. The host never calls an instance that is in a call.
pub struct Opened<T>(RefCell<T>);

impl<T: StreamSource> exported::GuestListener for Opened<T> {
    fn open(context: wit::Context) -> Result<exported::Listener, wit::Failure> {
        let (settings, context) = convert::opening(context)?;
        let opened = T::open(settings, &context).map_err(convert::failure)?;
        Ok(exported::Listener::new(Opened(RefCell::new(opened))))
    }

    fn accept(&self, peer: Vec<(String, String)>, first: u64) -> Result<exported::Connection, wit::Failure> {
        let peer = Attributes::from(peer);
        let codec = self.0.borrow_mut().accept(&peer, first).map_err(convert::failure)?;
        Ok(exported::Connection::new(Accepted(RefCell::new(codec))))
    }

    fn settle(&self, receipts: Vec<wit::Receipt>) -> Result<exported::Reply, wit::Failure> {
        let receipts = receipts.into_iter().map(receipt).collect();
        let reply = self.0.borrow_mut().settle(receipts).map_err(convert::failure)?;
        Ok(exported::Reply { bytes: reply.bytes, close: reply.close })
    }
}

/// One connection's codec.
pub struct Accepted<C>(RefCell<C>);

impl<C: Codec> exported::GuestConnection for Accepted<C> {
    fn receive(&self, chunk: Vec<u8>) -> Result<exported::Step, wit::Failure> {
        self.0.borrow_mut().receive(&chunk).map(step).map_err(convert::failure)
    }

    fn finish(&self, why: String) -> Result<exported::Step, wit::Failure> {
        self.0.borrow_mut().finish(why.into()).map(step).map_err(convert::failure)
    }
}

fn step(step: Step) -> exported::Step {
    exported::Step { items: step.items.into_iter().map(item).collect(), keep_from: step.keep_from }
}
