//! Poll sources.

use std::cell::RefCell;
use std::marker::PhantomData;

use crate::glue::convert;
use crate::glue::services::portway::plugin::types as wit;
use crate::glue::source::{item, receipt};
use crate::{PollSource, Query};
use bindings::exports::portway::plugin::poll_source as exported;

pub mod bindings {
    //! Generated.

    wit_bindgen::generate!({
        path: "../wit",
        world: "portway:plugin/poll-source-plugin@0.1.0",
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
        default_bindings_module: "portway_sdk::glue::poll_source::bindings",
    });
}

/// What is exported for an author's type.
pub struct Plugin<T>(PhantomData<T>);

impl<T: PollSource> exported::Guest for Plugin<T> {
    type Poller = Opened<T>;
}

/// One interface's settings. The host never calls an instance that is in a call.
pub struct Opened<T>(RefCell<T>);

impl<T: PollSource> exported::GuestPoller for Opened<T> {
    fn open(context: wit::Context) -> Result<exported::Poller, wit::Failure> {
        let (settings, context) = convert::opening(context)?;
        let opened = T::open(settings, &context).map_err(convert::failure)?;
        Ok(exported::Poller::new(Opened(RefCell::new(opened))))
    }

    fn poll(&self, query: exported::Query) -> Result<exported::Found, wit::Trouble> {
        let query = Query {
            cursor: query.cursor,
            items_max: query.items_max,
            bytes_max: query.bytes_max,
            wait_max_ms: query.wait_max_ms,
            unfinished: query.unfinished,
        };
        let found = self.0.borrow_mut().poll(query).map_err(convert::trouble)?;
        let items = found.items.into_iter().map(item).collect();
        Ok(exported::Found { items, cursor: found.cursor, again_ms: found.again_ms })
    }

    fn settle(&self, cursor: Vec<u8>, receipts: Vec<wit::Receipt>) -> Result<(), wit::Trouble> {
        let receipts = receipts.into_iter().map(receipt).collect();
        self.0.borrow_mut().settle(&cursor, receipts).map_err(convert::trouble)
    }
}
