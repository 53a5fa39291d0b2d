//! Makes one JSON document of another: renames, picks, fills templates, converts.
//!
//! The settings are judged as a whole when the plugin is opened; a message then only fails by what is
//! in it. What a map may say is fixed in the README and by the cases.

mod date;
mod judge;
mod made;
mod make;
mod map;
mod node;
mod place;
mod settings;
mod step;
mod template;
mod text;

use portway_json::{Output, read};
use portway_sdk::{Context, Failure, Message, Problem, Transform, TransformVerdict};

use crate::map::Map;

/// The transform of one destination.
#[derive(Debug)]
pub struct JsonMap {
    map: Map,
}

impl Transform for JsonMap {
    /// As they are written: what a template may hold is for no derived reader.
    type Settings = serde_json::Value;

    fn open(settings: serde_json::Value, _context: &Context) -> Result<Self, Failure> {
        Ok(JsonMap { map: settings::map(&settings)? })
    }

    fn transform(&mut self, message: Message) -> Result<TransformVerdict, Problem> {
        let text = message.body.text()?;
        let document = read(&text)?;
        let made = self.map.apply(&document)?;
        let mut out = Output::default();
        made.write(&mut out);
        Ok(TransformVerdict::deliver(out.finish()?))
    }
}

portway_sdk::export_transform!(JsonMap);
