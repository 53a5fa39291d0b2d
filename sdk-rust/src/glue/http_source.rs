//! HTTP sources.

use std::cell::RefCell;
use std::marker::PhantomData;

use crate::glue::convert;
use crate::glue::services::portway::plugin::types as wit;
use crate::glue::source::{item, receipt};
use crate::{Decision, HttpAnswer, HttpRequest, HttpSource};
use bindings::exports::portway::plugin::http_source as exported;

pub mod bindings {
    //! Generated.

    wit_bindgen::generate!({
        path: "../wit",
        world: "portway:plugin/http-source-plugin@0.1.0",
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
        default_bindings_module: "portway_sdk::glue::http_source::bindings",
    });
}

/// What is exported for an author's type.
pub struct Plugin<T>(PhantomData<T>);

impl<T: HttpSource> exported::Guest for Plugin<T> {
    type Endpoint = Opened<T>;
}

/// One interface's settings. The host never calls an instance that is in a call.
pub struct Opened<T>(RefCell<T>);

impl<T: HttpSource> exported::GuestEndpoint for Opened<T> {
    fn open(context: wit::Context) -> Result<exported::Endpoint, wit::Failure> {
        let (settings, context) = convert::opening(context)?;
        let opened = T::open(settings, &context).map_err(convert::failure)?;
        Ok(exported::Endpoint::new(Opened(RefCell::new(opened))))
    }

    fn receive(&self, request: exported::Request) -> Result<exported::Decision, wit::Failure> {
        let request = HttpRequest {
            method: request.method,
            target: request.target,
            headers: request.headers,
            peer: request.peer.into(),
            body: convert::body_in(request.body),
        };
        let decision = self.0.borrow_mut().receive(request).map_err(convert::failure)?;
        Ok(match decision {
            Decision::Accept(accepted) => {
                let items = accepted.items.into_iter().map(item).collect();
                exported::Decision::Accept(exported::Accepted { items, ticket: accepted.ticket })
            }
            Decision::Refuse(answer) => exported::Decision::Refuse(response(answer)),
            Decision::Answer(answer) => exported::Decision::Answer(response(answer)),
        })
    }

    fn settle(
        &self,
        ticket: Vec<u8>,
        receipts: Vec<wit::Receipt>,
    ) -> Result<exported::Response, wit::Failure> {
        let receipts = receipts.into_iter().map(receipt).collect();
        self.0.borrow_mut().settle(&ticket, receipts).map(response).map_err(convert::failure)
    }
}

fn response(answer: HttpAnswer) -> exported::Response {
    exported::Response { status: answer.status, headers: answer.headers, body: answer.body }
}
