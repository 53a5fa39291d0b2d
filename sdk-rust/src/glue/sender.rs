//! Senders.

use std::cell::RefCell;
use std::marker::PhantomData;

use crate::glue::convert::{self, Clock};
use crate::glue::services::portway::plugin::types as wit;
use crate::{SendVerdict, Sender};
use bindings::exports::portway::plugin::sender as exported;

pub mod bindings {
    //! Generated.

    wit_bindgen::generate!({
        path: "../wit",
        world: "portway:plugin/sender-plugin@0.1.0",
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
        default_bindings_module: "portway_sdk::glue::sender::bindings",
    });
}

/// What is exported for an author's type.
pub struct Plugin<T>(PhantomData<T>);

impl<T: Sender> exported::Guest for Plugin<T> {
    type Destination = Opened<T>;
}

/// One destination. The host never calls an instance that is in a call.
pub struct Opened<T>(RefCell<T>);

impl<T: Sender> exported::GuestDestination for Opened<T> {
    fn open(context: wit::Context) -> Result<exported::Destination, wit::Failure> {
        let (settings, context) = convert::opening(context)?;
        let opened = T::open(settings, &context).map_err(convert::failure)?;
        Ok(exported::Destination::new(Opened(RefCell::new(opened))))
    }

    fn send(&self, batch: wit::Batch) -> Result<Vec<exported::Verdict>, wit::Trouble> {
        let (call, messages) = convert::batch(batch, Clock::Read);
        let verdicts = self.0.borrow_mut().send_batch(&call, messages).map_err(convert::trouble)?;
        Ok(verdicts.into_iter().map(verdict).collect())
    }
}

fn verdict(verdict: SendVerdict) -> exported::Verdict {
    match verdict {
        SendVerdict::Sent(answer) => {
            let (code, text) = convert::answer(answer);
            exported::Verdict::Sent(exported::Answer { code, text })
        }
        SendVerdict::Untried => exported::Verdict::Untried,
        SendVerdict::Retry(later) => exported::Verdict::Retry(convert::later(later)),
        SendVerdict::Quarantine(failure) => exported::Verdict::Quarantine(convert::failure(failure)),
    }
}
