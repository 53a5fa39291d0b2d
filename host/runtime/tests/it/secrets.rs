//! `secrets`: what is granted is given and told, everything else is denied and seen.

use std::sync::{Arc, Mutex};

use portway_model::TransformVerdict;
use portway_runtime::{
    Fault, Grant, Level, Observer, Opening, Recording, SecretAction, SecretGrant, SecretUse, SecretValue,
};
use zeroize::Zeroizing;

use crate::support::{batch, plugin};

/// Hears of uses, and says what recording them comes to.
#[derive(Default)]
struct Auditor {
    uses: Mutex<Vec<String>>,
    notices: Mutex<Vec<String>>,
    refuses: bool,
}

impl Observer for Auditor {
    fn log(&self, _level: Level, _text: &str) {}

    fn notice(&self, code: &str, text: &str) {
        self.notices.lock().unwrap().push(format!("{code}: {text}"));
    }

    fn fault(&self, _fault: &Fault) {}

    fn secret(&self, used: SecretUse<'_>) -> Option<Recording> {
        assert_eq!(used.digest.len(), 64);
        self.uses.lock().unwrap().push(format!("{} {}", used.action.as_str(), used.secret));
        let refuses = self.refuses;
        Some(Box::new(move || if refuses { Err("the disk is full".into()) } else { Ok(()) }))
    }
}

fn secret(name: &str, value: &str, action: SecretAction) -> Grant {
    let value = SecretValue::new(Zeroizing::new(value.as_bytes().to_vec()));
    Grant::Secret(SecretGrant { name: name.into(), value, action })
}

/// A puppet that is granted a secret for each of its slots.
fn granted(auditor: &Arc<Auditor>) -> Opening {
    let mut opening = Opening::new("lab", "archive", "{}");
    opening.observer = auditor.clone();
    opening.grants.0.insert("pass".into(), secret("TOKEN", "hunter2", SecretAction::Reveal));
    opening.grants.0.insert("key".into(), secret("KEY", "key", SecretAction::Sign));
    opening
}

/// What the puppet answers to one message.
async fn obey(opening: Opening, commands: &str) -> String {
    let puppet = plugin("plugins-test", "puppet-transform").await;
    let call = puppet.transformer(opening).unwrap().transform(&batch(&[commands])).await;
    match call.result.unwrap().remove(0) {
        TransformVerdict::Deliver(outputs) => String::from_utf8(outputs[0].body.to_vec()).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_granted_secret_is_read_or_signed_with_and_each_use_is_told() {
    let auditor = Arc::new(Auditor::default());
    let answer = obey(granted(&auditor), "reveal pass\nsign key hello\nsign key hello").await;
    // printf 'hello' | openssl dgst -sha256 -hmac key
    let signed = "9307b3b915efb5171ff14d8cb55fbcc798c6c0ef1456d66ded1a6aa723a58b7b";
    assert_eq!(answer, format!("hunter2; {signed}; {signed}"));
    assert_eq!(*auditor.uses.lock().unwrap(), ["reveal TOKEN", "sign KEY", "sign KEY"]);
    assert!(auditor.notices.lock().unwrap().is_empty());
}

#[tokio::test]
async fn what_is_not_granted_or_not_for_this_is_denied_and_noticed() {
    let auditor = Arc::new(Auditor::default());
    let asked = "reveal key\nsign pass hello\nreveal TOKEN\nreveal \u{1b}[2Jother";
    assert_eq!(obey(granted(&auditor), asked).await, "Denied; Denied; Denied; Denied");
    let mut nothing = Opening::new("lab", "archive", "{}");
    nothing.observer = auditor.clone();
    assert_eq!(obey(nothing, "reveal pass\nsign key hello").await, "Denied; Denied");
    assert!(auditor.uses.lock().unwrap().is_empty());
    let notices = auditor.notices.lock().unwrap();
    assert_eq!(notices.len(), 6);
    assert_eq!(notices[0], "secret-denied: asked to reveal the secret of slot `key`, which is not granted");
    assert!(notices[3].contains("`\\u{1b}[2Jother`"), "{}", notices[3]);
}

#[tokio::test]
async fn a_use_that_cannot_be_recorded_does_not_happen() {
    let auditor = Arc::new(Auditor { refuses: true, ..Auditor::default() });
    let answer = obey(granted(&auditor), "reveal pass\nsign key hello").await;
    assert_eq!(answer, "Unavailable(\"the disk is full\"); Unavailable(\"the disk is full\")");
}

#[tokio::test]
async fn other_secrets_are_other_grants_and_share_no_instance() {
    let auditor = Arc::new(Auditor::default());
    let mut other = granted(&auditor);
    other.grants.0.insert("pass".into(), secret("TOKEN", "another", SecretAction::Reveal));
    assert_eq!(obey(granted(&auditor), "reveal pass").await, "hunter2");
    assert_eq!(obey(other, "reveal pass").await, "another");
}

#[tokio::test]
async fn a_grant_of_the_wrong_type_is_refused() {
    let puppet = plugin("plugins-test", "puppet-transform").await;
    let mut opening = Opening::new("lab", "archive", "{}");
    opening.grants.0.insert("pass".into(), secret("TOKEN", "hunter2", SecretAction::Sign));
    let refused = puppet.transformer(opening).err().unwrap().to_string();
    assert!(refused.contains("slot `pass` wants a grant of type `reveal`"), "{refused}");
    assert!(!refused.contains("hunter2"), "{refused}");
}
