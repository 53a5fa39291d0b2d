//! Transforms.

use std::cell::RefCell;
use std::marker::PhantomData;

use crate::glue::convert::{self, Clock};
use crate::glue::services::portway::plugin::types as wit;
use crate::{Output, Transform, TransformVerdict};
use bindings::exports::portway::plugin::transform as exported;

pub mod bindings {
    //! Generated.

    wit_bindgen::generate!({
        path: "../wit",
        world: "portway:plugin/transform-plugin@0.1.0",
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
        default_bindings_module: "portway_sdk::glue::transform::bindings",
    });
}

/// What is exported for an author's type.
pub struct Plugin<T>(PhantomData<T>);

impl<T: Transform> exported::Guest for Plugin<T> {
    type Transformer = Opened<T>;
}

/// One destination's transform. The host never calls an instance that is in a call.
pub struct Opened<T>(RefCell<T>);

impl<T: Transform> exported::GuestTransformer for Opened<T> {
    fn open(context: wit::Context) -> Result<exported::Transformer, wit::Failure> {
        let (settings, context) = convert::opening(context)?;
        let opened = T::open(settings, &context).map_err(convert::failure)?;
        Ok(exported::Transformer::new(Opened(RefCell::new(opened))))
    }

    fn transform(&self, batch: wit::Batch) -> Result<Vec<exported::Verdict>, wit::Trouble> {
        let (call, messages) = convert::batch(batch, Clock::Spared);
        let verdicts = self.0.borrow_mut().transform_batch(&call, messages).map_err(convert::trouble)?;
        Ok(verdicts.into_iter().map(verdict).collect())
    }
}

fn verdict(verdict: TransformVerdict) -> exported::Verdict {
    match verdict {
        TransformVerdict::Pass => exported::Verdict::Pass,
        TransformVerdict::Filter(reason) => exported::Verdict::Filter(reason),
        TransformVerdict::Quarantine(failure) => exported::Verdict::Quarantine(convert::failure(failure)),
        TransformVerdict::Retry(later) => exported::Verdict::Retry(convert::later(later)),
        TransformVerdict::Deliver(outputs) => {
            let outputs: Result<Vec<_>, _> = outputs.into_iter().map(output).collect();
            outputs.map_or_else(exported::Verdict::Retry, exported::Verdict::Deliver)
        }
    }
}

fn output(output: Output) -> Result<exported::Output, wit::Later> {
    Ok(exported::Output {
        key: output.key,
        attributes: output.attributes.into_pairs(),
        body: convert::body_out(output.body)?,
    })
}
