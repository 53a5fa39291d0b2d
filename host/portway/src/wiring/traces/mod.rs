//! Traces of messages: what a project wants of them, and the two who make spans.
//!
//! Where a project wants none there is no [`Traces`], and nobody measures, keeps or sends anything.

mod receipt;
mod run;

use std::sync::Arc;

use portway_admin::views;
use portway_config::{Project, TraceSettings};
use portway_model::{Attributes, Cost};
use portway_net::http::{Connector, HttpGrant};
use portway_sources::adapters::Witness;
use portway_traces::{
    ATTRIBUTE, ExportSettings, Exporter, Loss, Share, Traceparent, Tracer, TracerSettings, Value,
};

use super::openings;
pub use receipt::Receipts;
pub use run::{Called, RunTrace};

/// See the file.
pub struct Traces {
    tracer: Tracer,
    /// Whether requests say which trace their messages belong to.
    pub incoming: bool,
    /// Whether senders say it.
    outgoing: bool,
}

impl Traces {
    /// What the project wants, and what sends it; none: nothing. `store` names the store.
    pub fn of(project: &Project, store: &str, connector: Connector) -> Option<(Arc<Traces>, Exporter)> {
        let settings = project.traces.as_ref()?;
        let of_tracer = TracerSettings {
            store: store.to_owned(),
            share: Share::of_million(settings.sample.millionths()),
            queue_max: settings.queue_max as usize,
        };
        let (tracer, exporter) = Tracer::new(of_tracer, export(settings, store), connector);
        let traces = Traces { tracer, incoming: settings.incoming, outgoing: settings.outgoing };
        Some((Arc::new(traces), exporter))
    }

    /// Who hears of the messages of an interface's source.
    pub fn witness(self: &Arc<Self>, interface: &str, plugin: &str) -> Arc<dyn Witness> {
        Arc::new(Receipts::new(self.clone(), interface, plugin))
    }

    /// For the API.
    pub fn view(&self) -> views::Traces {
        let counts = self.tracer.counts();
        let lost = Loss::ALL.iter().zip(counts.lost);
        let lost = lost.map(|(why, count)| views::Count { reason: why.as_str().to_owned(), count });
        views::Traces { sent: counts.sent, lost: lost.filter(|lost| lost.count > 0).collect() }
    }
}

fn export(settings: &TraceSettings, store: &str) -> ExportSettings {
    let headers = settings.headers.iter();
    let collector = HttpGrant {
        headers: headers.map(|(name, value)| (name.as_str().to_owned(), value.reveal().to_owned())).collect(),
        timeout: settings.timeout,
        addresses: openings::policy(settings.addresses),
        tls_roots: settings.tls_roots.as_ref().map(|roots| roots.value.as_path().to_owned()),
        ..HttpGrant::new(settings.endpoint.value.clone())
    };
    let resource = [
        ("service.name", settings.service_name.as_str()),
        ("service.version", env!("CARGO_PKG_VERSION")),
        ("service.instance.id", store),
    ];
    ExportSettings {
        resource: resource.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        interval: settings.interval,
        ..ExportSettings::of(collector)
    }
}

/// Says in the attributes which trace a message belongs to. One that has no room for it goes on in
/// a trace of its own.
fn belong_to(attributes: &mut Attributes, parent: &Traceparent) {
    let pair = vec![(ATTRIBUTE.to_owned(), parent.to_string())];
    let laid_over = Attributes::new(pair).and_then(|ours| attributes.overlay(&ours));
    if let Ok(all) = laid_over {
        *attributes = all;
    }
}

/// What plugins used, as attributes of a span.
fn cost_pairs(cost: Cost) -> [(&'static str, Value); 2] {
    [
        ("portway.fuel", cost.fuel.into()),
        ("portway.plugin_time_ms", (cost.time.as_secs_f64() * 1_000.0).into()),
    ]
}
