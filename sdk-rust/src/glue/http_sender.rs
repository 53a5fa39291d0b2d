//! Senders by HTTP.

use std::cell::RefCell;
use std::marker::PhantomData;

use crate::glue::convert::{self, Clock};
use crate::glue::http;
use crate::glue::services::portway::plugin::types as wit;
use crate::{HttpReply, HttpSender, Plan, SendVerdict, judge_each, prepare_each};
use bindings::exports::portway::plugin::http_sender as exported;
use bindings::portway::plugin::sender as wit_sender;

pub mod bindings {
    //! Generated.

    wit_bindgen::generate!({
        path: "../wit",
        world: "portway:plugin/http-sender-plugin@0.1.0",
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
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export",
        default_bindings_module: "portway_sdk::glue::http_sender::bindings",
    });
}

/// What is exported for an author's type.
pub struct Plugin<T>(PhantomData<T>);

impl<T: HttpSender> exported::Guest for Plugin<T> {
    type Destination = Opened<T>;
}

/// One destination. The host never calls an instance that is in a call.
pub struct Opened<T>(RefCell<T>);

impl<T: HttpSender> exported::GuestDestination for Opened<T> {
    fn open(context: wit::Context) -> Result<exported::Destination, wit::Failure> {
        let (settings, context) = convert::opening(context)?;
        let opened = T::open(settings, &context).map_err(convert::failure)?;
        Ok(exported::Destination::new(Opened(RefCell::new(opened))))
    }

    fn prepare(&self, batch: wit::Batch) -> Result<Vec<exported::Plan>, wit::Trouble> {
        let (call, messages) = convert::batch(batch, Clock::Spared);
        let plans = prepare_each(&mut *self.0.borrow_mut(), &call, &messages).map_err(convert::trouble)?;
        Ok(plans.into_iter().zip(0..).map(|(plan, index)| plan_out(plan, index)).collect())
    }

    fn judge(&self, replies: Vec<exported::Reply>) -> Result<Vec<exported::Verdict>, wit::Trouble> {
        let replies = replies.into_iter().map(reply).collect();
        let verdicts = judge_each(&mut *self.0.borrow_mut(), replies).map_err(convert::trouble)?;
        Ok(verdicts.into_iter().map(verdict).collect())
    }
}

fn plan_out(plan: Plan, index: u32) -> exported::Plan {
    let ask = match plan {
        Plan::Ask(ask) => ask,
        Plan::Decided(decided) => return exported::Plan::Decided(verdict(decided)),
    };
    let request = match http::request_out(ask.request, index) {
        Ok(request) => request,
        Err(later) => return exported::Plan::Decided(wit_sender::Verdict::Retry(later)),
    };
    exported::Plan::Ask(exported::Ask { request, ticket: ask.ticket })
}

fn reply(reply: exported::Reply) -> HttpReply {
    HttpReply { outcome: http::outcome_in(reply.outcome), ticket: reply.ticket }
}

fn verdict(verdict: SendVerdict) -> wit_sender::Verdict {
    match verdict {
        SendVerdict::Sent(answer) => {
            let (code, text) = convert::answer(answer);
            wit_sender::Verdict::Sent(wit_sender::Answer { code, text })
        }
        SendVerdict::Untried => wit_sender::Verdict::Untried,
        SendVerdict::Retry(later) => wit_sender::Verdict::Retry(convert::later(later)),
        SendVerdict::Quarantine(failure) => wit_sender::Verdict::Quarantine(convert::failure(failure)),
    }
}
