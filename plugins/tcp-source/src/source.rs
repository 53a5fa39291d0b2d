//! The source as the host sees it: settings in, codecs and answers out.

use std::rc::Rc;

use portway_sdk::{
    Attributes, Codec, Context, Failure, FinishReason, Receipt, Step, StreamReply, StreamSource,
};

use crate::{FrameCodec, Settings, answer::Answers, codec::Rules};

/// One interface's TCP source.
#[derive(Debug)]
pub struct TcpSource {
    rules: Rc<Rules>,
    answers: Answers,
}

impl StreamSource for TcpSource {
    type Settings = Settings;
    type Codec = FrameCodec;

    fn open(settings: Settings, _context: &Context) -> Result<Self, Failure> {
        Ok(TcpSource { rules: Rc::new(Rules::new(&settings)?), answers: Answers::new(&settings) })
    }

    fn accept(&mut self, _peer: &Attributes, first: u64) -> Result<FrameCodec, Failure> {
        Ok(FrameCodec::new(Rc::clone(&self.rules), first))
    }

    fn settle(&mut self, receipts: Vec<Receipt>) -> Result<StreamReply, Failure> {
        self.answers.settle(&receipts)
    }
}

impl Codec for FrameCodec {
    fn receive(&mut self, chunk: &[u8]) -> Result<Step, Failure> {
        Ok(self.cut(chunk))
    }

    fn finish(&mut self, reason: FinishReason) -> Result<Step, Failure> {
        Ok(self.end(&reason))
    }
}
